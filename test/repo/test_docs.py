"""The programs in docs/ run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
RUNNABLE = ("control-flow.md", "adding-a-primitive.md", "one-kernel.md")


@pytest.mark.parametrize("page", RUNNABLE)
def test_its_programs_run_one_after_the_other(page, tmp_path):
    programs = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert programs
    file = tmp_path / "program.py"
    file.write_text("\n".join(programs))
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path, timeout=600
    )
    assert done.returncode == 0, done.stderr


def test_programs_for_another_machine_run_each_in_a_process_of_its_own(tmp_path):
    blocks = re.findall(
        r"```(python|sh)\n(.*?)```", (DOCS / "ahead-of-time.md").read_text(), re.DOTALL
    )
    assert len(blocks) == 5
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for language, source in blocks:
        command = [sys.executable, "-c"] if language == "python" else ["sh", "-ec"]
        done = subprocess.run(
            [*command, source], capture_output=True, text=True, cwd=tmp_path, timeout=600,
            env={**os.environ, "PATH": paths},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_the_whole_pass_of_adding_a_pass_does_what_the_page_says(tmp_path):
    text = (DOCS / "adding-a-pass.md").read_text()
    [source] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    program = re.search(r"```mlir\n(.*?)```", text, re.DOTALL)
    command = re.search(r"```sh\nlamina-opt (.*?)\n```", text)
    assert program is not None and command is not None
    (tmp_path / "my_pass.py").write_text(source)
    (tmp_path / "f.mlir").write_text(program[1])
    done = subprocess.run(
        [Path(sys.executable).with_name("lamina-opt"), *command[1].split()],
        capture_output=True, text=True, cwd=tmp_path, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "return %arg0" in done.stdout and "negate" not in done.stdout
