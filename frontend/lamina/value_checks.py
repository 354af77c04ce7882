"""debug_nans and debug_infs: looks at what programs give, and finds the operation at fault."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import config
from lamina.core import dtypes, tree
from lamina.core.jaxpr import ClosedJaxpr, eval_jaxpr
from lamina.core.primitive import Primitive
from lamina.core.source_info import current


def active() -> bool:
    """Whether results are to be checked."""
    return config.debug_nans.value or config.debug_infs.value


def _found(result: Any) -> str | None:
    """nan or inf, if a result holds one that is looked for."""
    for x in tree.leaves(result):
        if not dtypes.is_inexact(x.dtype):
            continue
        array = np.asarray(x)
        if array.dtype.kind not in "fc":
            array = array.astype(np.float32)
        if config.debug_nans.value and np.isnan(array).any():
            return "nan"
        if config.debug_infs.value and np.isinf(array).any():
            return "inf"
    return None


def checked(
    name: str, entry: Callable[[Any], Any], args: Sequence[Any], closed: ClosedJaxpr
) -> Any:
    """What a program gives. Where that holds a NaN it is run again op by op.

    Raises FloatingPointError naming the first operation whose result holds one.
    """
    result = entry(args)
    found = _found(result)
    if found is None:
        return result
    print(
        f"Invalid {found} value encountered in the output of {name}. Running it op by op.",
        file=sys.stderr,
    )
    eval_jaxpr(closed.jaxpr, closed.consts, *args)
    raise FloatingPointError(
        f"invalid value ({found}) encountered in {name}, and in none of its operations run alone"
    )


def checked_primitive(
    primitive: Primitive, params: dict[str, Any], entry: Callable[[Any], Any], args: list[Any]
) -> Any:
    """What one operation gives; for loops and branches, what the operations in them give.

    Raises FloatingPointError naming the operation and the user's line.
    """
    result = entry(args)
    found = _found(result)
    if found is None:
        return result
    if primitive.in_python is not None:
        primitive.in_python(*args, **params)
    where = current()
    line = f"\nat {where.summary()}: {where.frames[0].text}" if where.raw else ""
    raise FloatingPointError(f"invalid value ({found}) encountered in {primitive.name}{line}")
