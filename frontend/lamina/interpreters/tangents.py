"""Arithmetic on tangents and cotangents that may be symbolic zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.core import dtypes
from lamina.core.avals import ShapedArray
from lamina.core.tangents import Zero
from lamina.core.trace import is_evaluating


def zeros_like_aval(aval: ShapedArray) -> Any:
    """An array of zeros of this type; float0 zeros live in NumPy, for they hold nothing.

    aval  a ShapedArray: shape and dtype.

    >>> aval = lamina.extend.core.ShapedArray((2,), np.dtype("float32"))
    >>> lamina.interpreters.ad.zeros_like_aval(aval).tolist()
    [0.0, 0.0]
    """
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    from lamina import lax
    from lamina.lax.checks import scalar_of

    zero = scalar_of(aval, 0)
    if not aval.shape and not is_evaluating():
        return zero  # a literal of the program
    return lax.full(aval.shape, zero)


def instantiate_zero(x: Any) -> Any:
    """The array for a symbolic zero; other values as they are.

    x  a tangent or cotangent.

    >>> print(lamina.interpreters.ad.instantiate_zeros(jnp.ones(2)))
    [1. 1.]
    """
    if type(x) is not Zero:
        return x
    zeros = zeros_like_aval(x.aval)
    if x.aval.placed is None or x.aval.dtype == dtypes.float0:
        return zeros
    from lamina import lax

    return lax.as_typed(zeros, x.aval)


def add_tangents(x: Any, y: Any) -> Any:
    """x + y, where either may be None or Zero.

    x, y  tangents or cotangents of one type: arrays, Zero for one that vanishes, None for none.

    >>> add = lamina.interpreters.ad.add_tangents
    >>> add(None, 2.0), float(add(1.0, 2.0))
    (2.0, 3.0)
    """
    if x is None or type(x) is Zero:
        return y if y is not None else x
    if y is None or type(y) is Zero:
        return x
    from lamina.lax import add_any

    return add_any(x, y)
