"""python -m lamina.as_jax program.py arguments ...  (or `-m module`): run it with lamina as jax."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main(arguments: list[str]) -> None:
    """Run a program as `python` would. Exits with a message where none is named."""
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    if not arguments or not Path(arguments[0]).is_file():
        named = f"no file {arguments[0]!r}\n" if arguments else ""
        sys.exit(f"{named}usage: python -m lamina.as_jax program.py [argument ...]")
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
