"""What the tests of vector code share: prints the kernels of a small function and their inner loops."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "lowering")]

from inner_loops import Loop, inner_loops  # noqa: E402
from print_ir import array_type  # noqa: E402

import lamina  # noqa: E402
from lamina.backends.target import Target  # noqa: E402


def print_loops(*types: str, narrow: str | None = None) -> Callable[[Any], Any]:
    """A decorator: prints the kernels of a function of arrays of these types, and of each innermost
    loop of their optimised LLVM IR what it computes.

    narrow  what the processor has for products of narrow numbers, instead of what this one has.
    """

    def decorate(function: Any) -> Any:
        target = None if narrow is None else _with_products(narrow)
        compiled = lamina.jit(function).lower(*map(array_type, types)).compile(target=target)
        print(f"\nTEST: {function.__name__}")
        for kernel in json.loads(compiled.as_text("manifest"))["kernels"]:
            print(f"kernel {kernel['kind']} {kernel.get('library', '')}: {' '.join(kernel['ops'])}")
        for loop in inner_loops(compiled.as_text("llvm")):
            print(_heading(loop))
            for line in loop.lines:
                if not line.strip().startswith(_ADDRESSES) and " = getelementptr " not in line:
                    print(f"  {line.strip().removeprefix('tail ')}")
        return function

    return decorate


_ADDRESSES = ("br ", "switch ", "%sunkaddr", "%scevgep")


_NARROW = ("amx-int8", "amx-bf16", "amx-tile", "avx512bf16", "avx512vnni")


def _with_products(narrow: str) -> Target:
    """This machine with these features of `_NARROW` alone: code for it is made, and not run."""
    host = Target.host()
    others = [word for word in host.features.split(",") if word[1:] not in _NARROW]
    own = [f"+{name}" if name in narrow.split() else f"-{name}" for name in _NARROW]
    return dataclasses.replace(host, features=",".join(sorted([*others, *own], key=lambda word: word[1:])))


def _heading(loop: Loop) -> str:
    if any("@llvm.x86.tdp" in line for line in loop.lines):
        return "tiles:"
    if loop.widest_bits >= Target.host().vector_bits:
        return "full vectors:"
    if any("@llvm.mem" in line for line in loop.lines):
        return "copies:"
    return "some vectors:" if loop.vectors else "no vectors:"
