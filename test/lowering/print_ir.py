"""What the lowering tests share: prints the StableHLO of a small function."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import lamina
from lamina.core import dtypes


def array_type(text: str) -> lamina.ShapeDtypeStruct:
    """The array type that jaxprs print as `text`, such as f32[2,3]."""
    name, sizes = re.fullmatch(r"([\w<>]+)\[([\d,]*)\]", text).groups()  # type: ignore[union-attr]
    shape = tuple(int(n) for n in sizes.split(",") if n)
    return lamina.ShapeDtypeStruct(shape, dtypes.from_short_name(name))


def print_ir(*types: str) -> Callable[[Any], Any]:
    """A decorator: prints the StableHLO of a function of arrays of these types under its name."""

    def decorate(fun: Any) -> Any:
        print(f"\nTEST: {fun.__name__}")
        print(lamina.jit(fun).lower(*map(array_type, types)).as_text())
        return fun

    return decorate
