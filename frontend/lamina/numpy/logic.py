"""Comparisons and logic, elementwise; closeness and equality of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.trace import get_aval, is_array_like
from lamina.core.type_promotion import wider_type
from lamina.core.wrapping import renamed
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    check_arraylike,
    convert,
    literal,
    pick,
    promote_args,
    promote_args_numeric,
    promote_shapes,
)  # fmt: skip


# ---- comparisons -------------------------------------------------------------------------------
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x == y.

    x, y  numbers or arrays that broadcast together
    >>> jnp.equal(jnp.array([1, 2]), 2).tolist()
    [False, True]
    """
    return lax.eq(*promote_args("equal", x, y))


def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x != y.

    x, y  numbers or arrays that broadcast together
    >>> jnp.not_equal(jnp.array([1, 2]), 2).tolist()
    [True, False]
    """
    return lax.ne(*promote_args("not_equal", x, y))


def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x < y. Complex numbers compare by real part, then by imaginary part.

    x, y  numbers or arrays that broadcast together
    >>> jnp.less(jnp.array([1, 2]), 2).tolist()
    [True, False]
    """
    return _ordered(lax.lt, *promote_args("less", x, y))


def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x <= y. Complex numbers compare by real part, then by imaginary part.

    x, y  numbers or arrays that broadcast together
    >>> jnp.less_equal(jnp.array([1, 3]), 2).tolist()
    [True, False]
    """
    return _ordered(lax.le, *promote_args("less_equal", x, y))


def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x > y. Complex numbers compare by real part, then by imaginary part.

    x, y  numbers or arrays that broadcast together
    >>> jnp.greater(jnp.array([1, 3]), 2).tolist()
    [False, True]
    """
    return _ordered(lax.gt, *promote_args("greater", x, y))


def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x >= y. Complex numbers compare by real part, then by imaginary part.

    x, y  numbers or arrays that broadcast together
    >>> jnp.greater_equal(jnp.array([1, 2]), 2).tolist()
    [False, True]
    """
    return _ordered(lax.ge, *promote_args("greater_equal", x, y))


def _ordered(compare: Callable[..., Array], x: Any, y: Any) -> Array:
    if get_aval(x).dtype.kind != "c":
        return compare(x, y)
    first, second = (lax.real(x), lax.real(y)), (lax.imag(x), lax.imag(y))
    return pick(lax.eq(*first), compare(*second), compare(*first))


# ---- logic -------------------------------------------------------------------------------------
def truth(x: ArrayLike) -> Any:
    """x as booleans: whether it is not zero."""
    return x if get_aval(x).dtype == np.bool_ else lax.ne(x, literal(x, 0))


def _truths(name: str, *args: ArrayLike) -> list[Any]:
    check_arraylike(name, *args)
    return promote_shapes(name, *map(truth, args))


def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether both x and y are nonzero.

    x, y  numbers or arrays that broadcast together
    >>> jnp.logical_and(jnp.array([1, 0]), True).tolist()
    [True, False]
    """
    return lax.bitwise_and(*_truths("logical_and", x, y))


def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x or y is nonzero.

    x, y  numbers or arrays that broadcast together
    >>> jnp.logical_or(jnp.array([1, 0]), False).tolist()
    [True, False]
    """
    return lax.bitwise_or(*_truths("logical_or", x, y))


def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether exactly one of x and y is nonzero.

    x, y  numbers or arrays that broadcast together
    >>> jnp.logical_xor(jnp.array([1, 0]), True).tolist()
    [False, True]
    """
    return lax.bitwise_xor(*_truths("logical_xor", x, y))


def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is zero.

    x  an array or number
    >>> jnp.logical_not(jnp.array([1, 0])).tolist()
    [False, True]
    """
    check_arraylike("logical_not", x)
    return lax.bitwise_not(truth(x))


# ---- bits --------------------------------------------------------------------------------------
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x & y of integers or booleans.

    x, y  integers or booleans that broadcast together; TypeError of floats
    >>> jnp.bitwise_and(12, 10)
    Array(8, dtype=int32, weak_type=True)
    """
    return lax.bitwise_and(*promote_args("bitwise_and", x, y))


def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x | y of integers or booleans.

    x, y  integers or booleans that broadcast together; TypeError of floats
    >>> jnp.bitwise_or(12, 10)
    Array(14, dtype=int32, weak_type=True)
    """
    return lax.bitwise_or(*promote_args("bitwise_or", x, y))


def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ^ y of integers or booleans.

    x, y  integers or booleans that broadcast together; TypeError of floats
    >>> jnp.bitwise_xor(12, 10)
    Array(6, dtype=int32, weak_type=True)
    """
    return lax.bitwise_xor(*promote_args("bitwise_xor", x, y))


def invert(x: ArrayLike, /) -> Array:
    """~x of integers or booleans.

    x  integers or booleans; TypeError of floats
    >>> jnp.invert(jnp.array([0, 5])).tolist()
    [-1, -6]
    """
    return lax.bitwise_not(*promote_args("invert", x))


bitwise_not = renamed(invert, "bitwise_not")
bitwise_invert = renamed(invert, "bitwise_invert")


def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x << y; 0 once y reaches the width of the type.

    x, y  integers or booleans that broadcast together; TypeError of floats
    >>> jnp.left_shift(jnp.array([1, 3]), 2).tolist()
    [4, 12]
    """
    return lax.shift_left(*_shift_args("left_shift", x, y))


def right_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x >> y, keeping the sign of signed x.

    x, y  integers or booleans that broadcast together; TypeError of floats
    >>> jnp.right_shift(jnp.array([9, -8]), 2).tolist()
    [2, -2]
    """
    x, y = _shift_args("right_shift", x, y)
    if dtypes.is_unsigned(get_aval(x).dtype):
        return lax.shift_right_logical(x, y)
    return lax.shift_right_arithmetic(x, y)


def _shift_args(name: str, x: ArrayLike, y: ArrayLike) -> list[Any]:
    return promote_args_numeric(name, x, y)


bitwise_left_shift = renamed(left_shift, "bitwise_left_shift")
bitwise_right_shift = renamed(right_shift, "bitwise_right_shift")


def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits set in |x|, as uint8.

    x  integers; TypeError of floats
    >>> jnp.bitwise_count(jnp.array([7, 8])).tolist()
    [3, 1]
    """
    from lamina.numpy.arithmetic import absolute

    (x,) = promote_args("bitwise_count", x)
    if get_aval(x).dtype == np.bool_:
        x = lax.convert_element_type(x, np.uint8)
    return lax.convert_element_type(lax.population_count(absolute(x)), np.uint8)


# ---- closeness ---------------------------------------------------------------------------------
def isclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
            equal_nan: bool = False) -> Array:  # fmt: skip
    """Whether |a - b| <= atol + rtol |b|, elementwise; infinities are close to themselves.

    a, b        numbers or arrays that broadcast together
    rtol, atol  the relative and the absolute tolerance
    equal_nan   whether NaN is close to NaN
    >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.1])).tolist()
    [True, False]
    """
    check_arraylike("isclose", a, b)
    if dtypes.is_key(get_aval(a).dtype) and get_aval(a).dtype == get_aval(b).dtype:
        return equal(a, b)
    a, b = promote_args("isclose", a, b)
    dtype = get_aval(a).dtype
    if not dtypes.is_inexact(dtype):
        to = dtypes.inexact_dtype(
            wider_type(dtype, np.dtype(np.int8))
            if dtype == np.bool_
            else dtype
        )
        a, b = convert(a, to), convert(b, to)
    return _isclose(a, b, rtol, atol, equal_nan=bool(equal_nan))


@compiled(static=("equal_nan",))
def _isclose(a: Any, b: Any, rtol: Any, atol: Any, *, equal_nan: bool) -> Array:
    from lamina.numpy.classification import isfinite

    real = dtypes.real_dtype(get_aval(a).dtype)
    allowed = lax.add(convert(atol, real), lax.mul(convert(rtol, real), lax.abs(b)))
    close = lax.bitwise_and(isfinite(b), lax.le(lax.abs(lax.sub(a, b)), allowed))
    close = lax.bitwise_or(lax.eq(a, b), close)
    if equal_nan:
        close = lax.bitwise_or(close, lax.bitwise_and(lax.ne(a, a), lax.ne(b, b)))
    return close


def allclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
             equal_nan: bool = False) -> Array:  # fmt: skip
    """Whether all elements are close (see isclose).

    a, b        numbers or arrays that broadcast together
    rtol, atol  the relative and the absolute tolerance
    equal_nan   whether NaN is close to NaN
    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.0]))
    Array(True, dtype=bool)
    """
    from lamina.numpy.reductions import all as all_

    return all_(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    a1, a2     arrays
    equal_nan  whether NaN equals NaN
    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2]))
    Array(True, dtype=bool)
    """
    from lamina.numpy.classification import isnan
    from lamina.numpy.creation import asarray
    from lamina.numpy.reductions import all as all_

    if not (is_array_like(a1) and is_array_like(a2)):
        try:
            a1, a2 = asarray(a1), asarray(a2)
        except Exception:
            return asarray(False)
    if np.shape(a1) != np.shape(a2):
        return asarray(False)
    same = equal(a1, a2)
    if equal_nan:
        same = logical_or(same, logical_and(isnan(a1), isnan(a2)))
    return all_(same)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether two arrays broadcast to one shape and have equal elements there.

    a1, a2  arrays
    >>> jnp.array_equiv(jnp.array([1, 1]), 1)
    Array(True, dtype=bool)
    """
    from lamina.numpy.creation import asarray
    from lamina.numpy.reductions import all as all_

    try:
        a1, a2 = asarray(a1), asarray(a2)
        np.broadcast_shapes(a1.shape, a2.shape)
    except Exception:
        return asarray(False)
    return all_(equal(a1, a2))
