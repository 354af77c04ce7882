"""What once brought a process down, and the fuzzer itself on a few cases."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_FOUND = sorted(path for path in (_HERE / "found").iterdir())
_COMPILE = """
import sys
import lamina
from lamina.dialects.parse_error import ParseError
from lamina.passes.framework.base import CompileError
try:
    lamina.compile_stablehlo(open(sys.argv[1], "rb").read())
except (ParseError, CompileError, ValueError, MemoryError) as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("path", _FOUND, ids=lambda path: path.name)
def test_what_was_found_is_refused_or_compiled(path):
    done = subprocess.run(
        [sys.executable, "-c", _COMPILE, str(path)],
        env=os.environ | {"LAMINA_CACHE": "0", "LAMINA_VERIFY": "0"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-500:]


def _fuzz(*arguments, cwd):
    command = [sys.executable, str(_HERE / "fuzz.py"), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)


def test_a_few_cases_of_each_kind(tmp_path):
    done = _fuzz("--cases", "12", "--seed", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    for target in ("text", "bytecode", "artifact", "store"):
        assert f"{target}: 12 cases" in done.stdout


def test_a_case_that_takes_too_long_is_reported(tmp_path):
    done = _fuzz("--cases", "5", "--limit", "0.001", "text", cwd=tmp_path)
    assert done.returncode == 1 and "takes longer than 0.001 s" in done.stdout
