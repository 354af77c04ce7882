"""Complex numbers and their parts: complex real imag conj.

Cotangents pair with tangents without conjugation, as in JAX: <ct, t> = sum of ct * t.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive, dtypes
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.checks import COMPLEX, Accepted, dtype_of
from lamina.lax.elementwise_rules import builder, elementwise, linear_in_each

_PARTS = Accepted(frozenset(map(np.dtype, ("float32", "float64"))), "float32, float64")
_PARTS_OR_COMPLEX = Accepted(_PARTS.dtypes | COMPLEX.dtypes, "float32, float64, complexfloating")


def complex(x: Any, y: Any) -> Array:
    """x + iy, elementwise: complex64 of float32 parts, complex128 of float64 parts.

    x, y  arrays of one of these dtypes and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError for other dtypes and where they differ.

    >>> print(lax.complex(jnp.array([1.0, 2.0]), jnp.array([0.5, 0.0])))
    [1.+0.5j 2.+0.j ]
    """
    return complex_p.bind(x, y)


def real(x: Any) -> Array:
    """The real part of x, elementwise: float32 of complex64, float64 of complex128.

    x  an array of complex numbers.

    Raises TypeError for other dtypes; lamina.numpy.real takes real numbers, too.

    >>> print(lax.real(jnp.array([1 + 2j, 3])))
    [1. 3.]
    """
    return real_p.bind(x)


def imag(x: Any) -> Array:
    """The imaginary part of x, elementwise: float32 of complex64, float64 of complex128.

    x  an array of complex numbers.

    Raises TypeError for other dtypes; lamina.numpy.imag takes real numbers, too.

    >>> print(lax.imag(jnp.array([1 + 2j, 3])))
    [2. 0.]
    """
    return imag_p.bind(x)


def conj(x: Any) -> Array:
    """The complex conjugate of x, elementwise. The result is complex where x is real, too.

    x  an array of complex numbers, float32 or float64.

    Raises TypeError for other dtypes.

    >>> print(lax.conj(jnp.array([1 + 2j, 3 - 1j])))
    [1.-2.j 3.+1.j]
    """
    return conj_p.bind(x, input_dtype=dtype_of(x))


def _zero(x: Any) -> Any:
    return lax.full_like(x, 0)


complex_p: Primitive = elementwise(
    "complex", builder("complex"), _PARTS, _PARTS, result=dtypes.complex_dtype,
    derivatives=[
        lambda g, ans, x, y: complex(g, _zero(g)),
        lambda g, ans, x, y: complex(_zero(g), g),
    ],
    transpose=linear_in_each(lambda ct, *_: real(ct), lambda ct, *_: imag(lax.neg(ct))),
)  # fmt: skip
real_p: Primitive = elementwise(
    "real", builder("real"), COMPLEX, result=dtypes.real_dtype,
    derivatives=[lambda g, ans, x: real(g)],
    transpose=linear_in_each(lambda ct, _: complex(ct, _zero(ct))),
)  # fmt: skip
imag_p: Primitive = elementwise(
    "imag", builder("imag"), COMPLEX, result=dtypes.real_dtype,
    derivatives=[lambda g, ans, x: imag(g)],
    transpose=linear_in_each(lambda ct, _: complex(_zero(ct), lax.neg(ct))),
)  # fmt: skip


def _conj_lowering(ctx: Any, x: Any, *, input_dtype: np.dtype) -> Any:
    if not dtypes.is_complex(input_dtype):
        zero = hlo.full(0, ctx.avals_in[0].shape, input_dtype)
        return hlo.complex(x, zero)
    return hlo.complex(hlo.real(x), hlo.negate(hlo.imag(x)))


def _conj_transpose(ct: Any, x: Any, *, input_dtype: np.dtype) -> list[Any]:
    out = conj(ct)
    return [out if dtypes.is_complex(input_dtype) else real(out)]


conj_p: Primitive = elementwise(
    "conj", _conj_lowering, _PARTS_OR_COMPLEX, result=dtypes.complex_dtype,
    derivatives=[lambda g, ans, x, *, input_dtype: conj(g)],
    transpose=_conj_transpose,
)  # fmt: skip
