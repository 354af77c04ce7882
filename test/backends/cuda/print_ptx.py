"""What the tests of PTX share: prints that of a small function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "lowering")]

from print_ir import array_type  # noqa: E402
from support.cuda_program import Program  # noqa: E402


def print_ptx(*types: str, arch: str = "sm_90a") -> Callable[[Any], Any]:
    """A decorator: prints the PTX of a function of arrays of these types under its name."""

    def decorate(function: Any) -> Any:
        print(f"\nTEST: {function.__name__}")
        program = Program(function, *map(array_type, types), arch=arch)
        for name, kernel in program.kernels.items():
            print(f"// kernel {name}\n{kernel.ptx}")
        return function

    return decorate
