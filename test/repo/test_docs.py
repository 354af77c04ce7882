"""The programs in docs/ run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
RUNNABLE = ("control-flow.md",)


@pytest.mark.parametrize("page", RUNNABLE)
def test_its_programs_run_one_after_the_other(page, tmp_path):
    programs = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert programs
    file = tmp_path / "program.py"
    file.write_text("\n".join(programs))
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 0, done.stderr
