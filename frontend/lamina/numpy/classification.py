"""Kinds of numbers, elementwise: isnan, isinf, isfinite, signbit, and nan_to_num."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.lax.convert import convert as convert_weakly
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray, full_like
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    check_arraylike,
    convert,
    literal,
    pick,
    promote_args,
    promote_args_inexact,
    refuse_out,
)  # fmt: skip


def _all(x: ArrayLike, value: bool) -> Array:
    return full_like(x, value, dtype=bool)


def _strong(x: Any) -> Any:
    """Booleans that are not weak, whatever they were found from."""
    return convert(x, np.dtype(bool))


def isnan(x: ArrayLike, /) -> Array:
    """Whether a value is NaN (either part of a complex value).

    x  an array or number

    >>> jnp.isnan(jnp.array([1.0, jnp.nan])).tolist()
    [False, True]
    """
    (x,) = promote_args_inexact("isnan", x)
    return lax.ne(x, x)


def isinf(x: ArrayLike, /) -> Array:
    """Whether a value is an infinity (either part of a complex value).

    x  an array or number

    >>> jnp.isinf(jnp.array([1.0, -jnp.inf])).tolist()
    [False, True]
    """
    check_arraylike("isinf", x)
    dtype = get_aval(x).dtype
    if dtype.kind == "c":
        return lax.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    return _strong(_isinf(x)) if dtypes.is_float(dtype) else _all(x, False)


@compiled
def _isinf(x: Any) -> Array:
    return lax.eq(lax.abs(x), literal(x, np.inf))


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether a value is positive infinity.

    x    an array or number
    out  must be None: arrays cannot be written to

    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf])).tolist()
    [True, False]
    """
    refuse_out("isposinf", out)
    return _is_infinity("isposinf", x, np.inf)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether a value is negative infinity.

    x    an array or number
    out  must be None: arrays cannot be written to

    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf])).tolist()
    [False, True]
    """
    refuse_out("isneginf", out)
    return _is_infinity("isneginf", x, -np.inf)


def _is_infinity(name: str, x: ArrayLike, value: float) -> Array:
    check_arraylike(name, x)
    dtype = get_aval(x).dtype
    if dtype.kind == "c":
        raise ValueError(f"{name} is not well defined for complex-valued inputs")
    return _strong(lax.eq(x, literal(x, value))) if dtypes.is_float(dtype) else _all(x, False)


def isfinite(x: ArrayLike, /) -> Array:
    """Whether a value is neither NaN nor an infinity (both parts of a complex value).

    x  an array or number

    >>> jnp.isfinite(jnp.array([1.0, jnp.nan])).tolist()
    [True, False]
    """
    check_arraylike("isfinite", x)
    dtype = get_aval(x).dtype
    if dtype.kind == "c":
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x) if dtypes.is_float(dtype) else _all(x, True)


def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero.

    x  an array or number

    >>> jnp.isreal(jnp.array([1.0, 1j])).tolist()
    [True, False]
    """
    check_arraylike("isreal", x)
    aval = get_aval(x)
    if aval.dtype.kind != "c":
        out = _all(x, True)
        return convert_weakly(out, out.dtype, True) if aval.weak_type else out
    part = lax.imag(x)
    return lax.eq(part, literal(part, 0))


def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero.

    x  an array or number

    >>> jnp.iscomplex(jnp.array([1.0, 1j])).tolist()
    [False, True]
    """
    return lax.bitwise_not(isreal(x))


def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set: negative values, -0.0 and negative NaNs.

    x  a real array or number

    >>> jnp.signbit(jnp.array([1.0, -0.0])).tolist()
    [False, True]
    """
    (x,) = promote_args("signbit", x)
    dtype = get_aval(x).dtype
    if dtype.kind == "c":
        raise ValueError("signbit is not well-defined for complex values.")
    if dtype == np.bool_ or dtypes.is_unsigned(dtype):
        return _all(x, False)
    if dtypes.is_integer(dtype):
        return _strong(lax.lt(x, literal(x, 0)))
    return _strong(_signbit(x))


@compiled
def _signbit(x: Any) -> Array:
    dtype = get_aval(x).dtype
    if dtype in (*dtypes.FLOAT8, *dtypes.FLOAT46):  # exact in float32, which has an integer type of its size
        x, dtype = lax.convert_element_type(x, np.float32), np.dtype(np.float32)
    bits = lax.bitcast_convert_type(x, np.dtype(f"int{dtype.itemsize * 8}"))
    return lax.lt(bits, literal(bits, 0))


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """x with NaN replaced by 0 and infinities by the largest finite numbers, or by those given.

    x                    an array or number
    copy                 without effect
    nan, posinf, neginf  what replaces each

    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan])).tolist()
    [1.0, 0.0]
    """
    check_arraylike("nan_to_num", x)
    x = asarray(x)
    dtype = x.dtype
    if not dtypes.is_inexact(dtype):
        return x
    if dtype.kind == "c":
        return lax.complex(
            *(nan_to_num(p, copy, nan, posinf, neginf) for p in (lax.real(x), lax.imag(x)))
        )
    limits = dtypes.finfo(dtype)
    return _nan_to_num(x, nan, float(limits.max) if posinf is None else posinf,
                       float(limits.min) if neginf is None else neginf)  # fmt: skip


@compiled
def _nan_to_num(x: Any, nan: Any, posinf: Any, neginf: Any) -> Array:
    dtype = get_aval(x).dtype
    x = pick(lax.ne(x, x), convert(nan, dtype), x)
    x = pick(lax.eq(x, literal(x, np.inf)), convert(posinf, dtype), x)
    return pick(lax.eq(x, literal(x, -np.inf)), convert(neginf, dtype), x)
