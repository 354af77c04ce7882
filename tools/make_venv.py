"""Makes a virtual environment with lamina in it, from a Python that has nothing but its library.

    python3 tools/make_venv.py .venv test        # with lamina[test], editable
    python3 tools/make_venv.py build/clean       # empty but for pip

Run by the Makefile. Uses the standard library only, because nothing else is there yet. Says what to
install where the machine lacks a compiler or Python's headers.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import urllib.request
import venv
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


def main(folder: str, extra: str | None = None) -> None:
    """Creates or completes the environment in `folder`, with lamina and its extra `extra`."""
    check_machine()
    home = Path(folder)
    python = home / "bin" / "python"
    if not (home / "bin" / "pip").exists():
        make_environment(home, python)
    if extra is None:
        return
    project = tomllib.loads((REPO / "pyproject.toml").read_text())
    # Built in the environment itself, so that `make build` can build again without downloading.
    needed = [*project["build-system"]["requires"], "cmake", "ninja"]
    run(python, "-m", "pip", "install", "-q", "--no-compile", *needed)
    editable = f"{REPO}[{extra}]"
    run(python, "-m", "pip", "install", "-q", "--no-compile", "--no-build-isolation", "-e", editable)


def check_machine() -> None:
    """Stops with the command that helps where something is missing that PyPI does not have."""
    if not (3, 11) <= sys.version_info[:2] < (3, 14):
        sys.exit(f"lamina runs on Python 3.11 to 3.13, this is {sys.version.split()[0]}")
    if shutil.which("c++") is None and shutil.which("g++") is None:
        sys.exit("no C++ compiler found: on Debian, `apt install g++`")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        sys.exit(f"{header} is missing: on Debian, `apt install python3-dev`")


def make_environment(home: Path, python: Path) -> None:
    """A virtual environment with pip, which Debian's Python may lack: then it comes from PyPI."""
    bundled = importlib.util.find_spec("ensurepip") is not None
    venv.create(home, with_pip=bundled, symlinks=True)
    if bundled:
        return
    with urllib.request.urlopen("https://pypi.org/pypi/pip/json", timeout=60) as answer:
        files = json.load(answer)["urls"]
    url = next(file["url"] for file in files if file["packagetype"] == "bdist_wheel")
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder) / url.rsplit("/", 1)[-1]
        with urllib.request.urlopen(url, timeout=60) as answer:
            wheel.write_bytes(answer.read())
        run(python, f"{wheel}/pip", "install", "-q", wheel)


def run(*command: object) -> None:
    """Runs a command; leaves with its exit code where it fails."""
    code = subprocess.run([str(part) for part in command], check=False).returncode
    if code != 0:
        sys.exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
