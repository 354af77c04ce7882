"""debug_nans and debug_infs: looks at what programs give, and finds the operation at fault."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import config
from lamina.array import ArrayImpl
from lamina.core import dtypes, tree
from lamina.core.jaxpr import ClosedJaxpr, JaxprEqn, eval_jaxpr
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


_run_again: list[JaxprEqn | None] = []
"""Of each program that is run again op by op, its equation where it has just one."""


def _same(eqn: JaxprEqn, other: JaxprEqn | None) -> bool:
    return other is not None and other.primitive is eqn.primitive and other.params == eqn.params


def checked(
    name: str,
    entry: Callable[[Any], Any],
    args: Sequence[Any],
    closed: ClosedJaxpr,
    donated: Sequence[bool] = (),
) -> Any:
    """What a program gives. Where that holds a NaN it is run again op by op. Of donated arguments it gets
    copies, since they may be needed once more.

    Raises FloatingPointError naming the first operation whose result holds one.
    """
    alone = closed.jaxpr.eqns[0] if len(closed.jaxpr.eqns) == 1 else None
    given = [
        x.copy() if isinstance(x, ArrayImpl) and any(donated[i : i + 1]) else x
        for i, x in enumerate(args)
    ]
    result = entry(given)
    found = _found(result)
    if found is None:
        return result
    if alone is not None and any(_same(alone, eqn) for eqn in _run_again):
        # The operation has a program of its own, this one: nothing is to be found by another try.
        raise FloatingPointError(
            f"Invalid value ({found}) encountered in sharded computation {name}{_line()}"
        )
    print(
        f"Invalid {found} value encountered in the output of {name}. Running it op by op.",
        file=sys.stderr,
    )
    _run_again.append(alone)
    try:
        eval_jaxpr(closed.jaxpr, closed.consts, *args)
    finally:
        _run_again.pop()
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
    raise FloatingPointError(f"invalid value ({found}) encountered in {primitive.name}{_line()}")


def _line() -> str:
    where = current()
    return f"\nat {where.summary()}: {where.frames[0].text}" if where.raw else ""
