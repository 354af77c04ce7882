"""The modified Bessel functions I0 and I1, for i0 of numpy and i0, i1 of scipy.special."""

from __future__ import annotations

from typing import Any

from lamina import lax
from lamina.control_flow import custom_jvp
from lamina.core import dtypes
from lamina.core.trace import get_aval
from lamina.numpy.promotion import Array, literal, pick


@custom_jvp
def bessel_i0(x: Any) -> Array:
    """I0 of floats."""
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i0e(x))


@custom_jvp
def bessel_i1(x: Any) -> Array:
    """I1 of floats."""
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i1e(x))


# |x|, which the values go by way of, has no derivative at 0; these have.


@bessel_i0.defjvp
def _i0_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """I0' = I1."""
    (x,), (dx,) = primals, tangents
    return bessel_i0(x), lax.mul(dx, bessel_i1(x))


@bessel_i1.defjvp
def _i1_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """I1' = I0 - I1 / x; near 0, I1 / x is 1/2 + x**2 / 16, and the next term less than rounding."""
    (x,), (dx,) = primals, tangents
    out = bessel_i1(x)
    near = lax.lt(lax.abs(x), literal(x, dtypes.finfo(get_aval(x).dtype).eps ** 0.25))
    series = lax.add(lax.mul(lax.mul(x, x), literal(x, 1 / 16)), literal(x, 0.5))
    ratio = pick(near, series, lax.div(out, pick(near, literal(x, 1), x)))
    return out, lax.mul(dx, lax.sub(bessel_i0(x), ratio))
