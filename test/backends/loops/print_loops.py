"""What the tests of vector code share: prints the kernels of a small function and their inner loops."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "lowering")]

from print_ir import array_type  # noqa: E402
from support.inner_loops import Loop, inner_loops  # noqa: E402

import lamina  # noqa: E402
from lamina.backends.target import Target  # noqa: E402

_WITH_AVX512 = "x86-64-v4"


def print_loops(*types: str, processor: str = _WITH_AVX512, **options: Any) -> Callable[[Any], Any]:
    """A decorator: prints the kernels of a function of arrays of these types, and of each innermost
    loop of their optimised LLVM IR what it computes.

    processor  what code is made for, whatever this machine has: as in `Target.parse("cpu:...")`.
    options    of `jit`'s `compiler_options`.
    """

    def decorate(function: Any) -> Any:
        target = Target.parse(f"cpu:{processor}")
        compiled = lamina.jit(function, compiler_options=options).lower(*map(array_type, types)).compile(target=target)
        print(f"\nTEST: {function.__name__}")
        for kernel in json.loads(compiled.as_text("manifest"))["kernels"]:
            print(f"kernel {kernel['kind']} {kernel.get('library', '')}: {' '.join(kernel['ops'])}")
        for loop in inner_loops(compiled.as_text("llvm")):
            print(_heading(loop, target))
            for line in loop.lines:
                if not line.strip().startswith(_ADDRESSES) and " = getelementptr " not in line:
                    print(f"  {line.strip().removeprefix('tail ')}")
        return function

    return decorate


_ADDRESSES = ("br ", "switch ", "%sunkaddr", "%scevgep")


def _heading(loop: Loop, target: Target) -> str:
    if any("@llvm.x86.tdp" in line for line in loop.lines):
        return "tiles:"
    if loop.widest_bits >= target.vector_bits:
        return "full vectors:"
    if any("@llvm.mem" in line for line in loop.lines):
        return "copies:"
    return "some vectors:" if loop.vectors else "no vectors:"
