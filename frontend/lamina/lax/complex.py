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
    """x + iy, elementwise, for float32 or float64 parts."""
    return complex_p.bind(x, y)


def real(x: Any) -> Array:
    """The real part of complex x."""
    return real_p.bind(x)


def imag(x: Any) -> Array:
    """The imaginary part of complex x."""
    return imag_p.bind(x)


def conj(x: Any) -> Array:
    """The complex conjugate, of complex dtype for real x too."""
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
