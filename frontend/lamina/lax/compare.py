"""Comparisons, elementwise: eq ne lt le gt ge. NaN is unequal to everything."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive, dtypes, get_aval
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.checks import ANY, Accepted, accepted, check_same_dtypes
from lamina.lax.elementwise_rules import elementwise, elementwise_lowering
from lamina.lax.random_keys import random_unwrap


def eq(x: Any, y: Any) -> Array:
    """x == y, elementwise: an array of booleans. NaN is equal to nothing.

    x, y  arrays of one dtype and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError where dtypes or ranks differ.

    >>> print(lax.eq(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.nan])))
    [ True False]
    """
    return _of_keys(x, y) if dtypes.is_key(get_aval(x).dtype) else eq_p.bind(x, y)


def ne(x: Any, y: Any) -> Array:
    """x != y, elementwise: an array of booleans. NaN differs from everything, itself included.

    x, y  arrays of one dtype and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError where dtypes or ranks differ.

    >>> print(lax.ne(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.nan])))
    [False  True]
    """
    return lax.bitwise_not(_of_keys(x, y)) if dtypes.is_key(get_aval(x).dtype) else ne_p.bind(x, y)


def lt(x: Any, y: Any) -> Array:
    """x < y, elementwise: an array of booleans, False where either is NaN.

    x, y  arrays of one dtype (no complex one) and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError where dtypes or ranks differ and for complex numbers, which have no order.

    >>> print(lax.lt(jnp.array([1, 2, 3]), 2))
    [ True False False]
    """
    return lt_p.bind(x, y)


def le(x: Any, y: Any) -> Array:
    """x <= y, elementwise: an array of booleans, False where either is NaN.

    x, y  arrays of one dtype (no complex one) and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError where dtypes or ranks differ and for complex numbers, which have no order.

    >>> print(lax.le(jnp.array([1, 2, 3]), 2))
    [ True  True False]
    """
    return le_p.bind(x, y)


def gt(x: Any, y: Any) -> Array:
    """x > y, elementwise: an array of booleans, False where either is NaN.

    x, y  arrays of one dtype (no complex one) and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError where dtypes or ranks differ and for complex numbers, which have no order.

    >>> print(lax.gt(jnp.array([1, 2, 3]), 2))
    [False False  True]
    """
    return gt_p.bind(x, y)


def ge(x: Any, y: Any) -> Array:
    """x >= y, elementwise: an array of booleans, False where either is NaN.

    x, y  arrays of one dtype (no complex one) and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError where dtypes or ranks differ and for complex numbers, which have no order.

    >>> print(lax.ge(jnp.array([1, 2, 3]), 2))
    [False  True  True]
    """
    return ge_p.bind(x, y)


def _of_keys(x: Any, y: Any) -> Any:
    """Whether keys have equal words."""
    check_same_dtypes("eq", (get_aval(x), get_aval(y)))
    shape = get_aval(x).shape or get_aval(y).shape  # scalars stand next to arrays
    x, y = (v if get_aval(v).shape else lax.broadcast(v, shape) for v in (x, y))
    same = eq(random_unwrap(x), random_unwrap(y))
    return lax.reduce_and(same, (same.ndim - 1,))


def _comparison(name: str, accept: Accepted) -> Primitive:
    lowering = elementwise_lowering(lambda x, y: hlo.compare(x, y, name.upper()))
    return elementwise(name, lowering, accept, accept, result=lambda _: np.dtype(bool))


ORDERED = accepted("integer", "bool", "floating")

eq_p: Primitive = _comparison("eq", ANY)
ne_p: Primitive = _comparison("ne", ANY)
lt_p: Primitive = _comparison("lt", ORDERED)
le_p: Primitive = _comparison("le", ORDERED)
gt_p: Primitive = _comparison("gt", ORDERED)
ge_p: Primitive = _comparison("ge", ORDERED)
