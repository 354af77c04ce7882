"""Error and gamma functions, elementwise: erf erfc erf_inv lgamma polygamma zeta."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive
from lamina.core.array_class import Array
from lamina.lax import hlo
from lamina.lax.checks import FLOAT, scalar_like
from lamina.lax.elementwise_rules import (
    chlo_lowering,
    computed_in,
    elementwise,
    function_of_one,
)


def erf(x: Any) -> Array:
    """The error function.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.erf(jnp.array([0.25, 0.5])).round(3))
    [0.276 0.52 ]
    """
    return erf_p.bind(x)


def erfc(x: Any) -> Array:
    """1 - erf(x), accurate for large x.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.erfc(jnp.array([0.25, 0.5])).round(3))
    [0.724 0.48 ]
    """
    return erfc_p.bind(x)


def erf_inv(x: Any) -> Array:
    """The inverse of erf on (-1, 1).

    x  an array of floats, of any shape.

    >>> print(lamina.lax.erf_inv(jnp.array([0.25, 0.5])).round(3))
    [0.225 0.477]
    """
    return erf_inv_p.bind(x)


def lgamma(x: Any) -> Array:
    """log |gamma(x)|.

    x  an array of floats, of any shape.

    >>> print(lamina.lax.lgamma(jnp.array([0.25, 0.5])).round(3))
    [1.288 0.572]
    """
    return lgamma_p.bind(x)


def polygamma(m: Any, x: Any) -> Array:
    """The derivative of order m of digamma, elementwise: (-1) ** (m + 1) * m! * zeta(m + 1, x).

    m  the order, as a float: 0 gives digamma itself. There is no derivative by it.
    x  an array of m's dtype.

    Raises TypeError for integers and where dtypes differ. SciPy's polygamma is
    lamina.scipy.special.polygamma, which takes integers m.

    >>> print(lax.polygamma(1.0, jnp.array([1.0, 2.0])))
    [1.644934   0.64493406]
    """
    return polygamma_p.bind(m, x)


def zeta(x: Any, q: Any) -> Array:
    """The Hurwitz zeta function, elementwise: the sum of (n + q) ** -x over n = 0, 1, 2, ...

    x  the exponent, floats; the sum is finite for x > 1.
    q  floats of x's dtype, which broadcast with x; 1 gives Riemann's zeta function.

    Raises TypeError for other dtypes.

    >>> print(lax.zeta(2.0, jnp.array([1.0, 2.0])))
    [1.644934   0.64493406]
    """
    return zeta_p.bind(x, q)


# ---- primitives --------------------------------------------------------------------------------
def _gaussian(scale: float, x: Any) -> Any:
    return lax.mul(scalar_like(x, scale), lax.exp(lax.neg(lax.square(x))))


def _erf_lowering(ctx: Any, x: Any) -> Any:
    """CHLO's, which has no formula for floats of 8 bits and fewer."""
    dtype = ctx.avals_in[0].dtype
    wide = np.dtype(np.float32) if dtype.itemsize == 1 else dtype
    return computed_in(wide, dtype, x, lambda v: hlo.chlo("erf", [v], v.type))


erf_p: Primitive = function_of_one(
    "erf", _erf_lowering, lambda ans, x: _gaussian(2 / math.sqrt(math.pi), x), FLOAT,
)  # fmt: skip


def _erfc_lowering(ctx: Any, x: Any) -> Any:
    """CHLO's, whose e^(-x^2) has the relative error that rounding makes in x^2: taken out again."""
    value = chlo_lowering("erfc")(ctx, x)
    aval = ctx.avals_in[0]
    if aval.dtype.itemsize < 4:
        return value
    exponent, mantissa = (8, 11) if aval.dtype == np.float32 else (11, 25)
    high = hlo.reduce_precision(x, exponent, mantissa)  # half of the digits: its products are exact
    low = hlo.subtract(x, high)
    rest = hlo.subtract(hlo.multiply(x, x), hlo.multiply(high, high))
    rest = hlo.subtract(rest, hlo.multiply(hlo.add(high, high), low))
    rest = hlo.subtract(rest, hlo.multiply(low, low))
    better = hlo.add(value, hlo.multiply(value, rest))
    one = hlo.full(1, aval.shape, aval.dtype)
    # Beyond, the result is zero, and squares may be infinite.
    there = hlo.and_(
        hlo.compare(x, one, "GT"), hlo.compare(x, hlo.full(30, aval.shape, aval.dtype), "LT")
    )
    return hlo.select(there, better, value)


erfc_p: Primitive = function_of_one(
    "erfc", _erfc_lowering, lambda ans, x: _gaussian(-2 / math.sqrt(math.pi), x), FLOAT,
)  # fmt: skip
erf_inv_p: Primitive = function_of_one(
    "erf_inv", chlo_lowering("erf_inv"),
    lambda ans, x: lax.mul(scalar_like(ans, math.sqrt(math.pi) / 2), lax.exp(lax.square(ans))), FLOAT,
)  # fmt: skip
# lgamma has JAX's bits: counts of random.poisson depend on them.
lgamma_p: Primitive = function_of_one(
    "lgamma", chlo_lowering("lgamma"), lambda ans, x: lax.digamma(x), FLOAT
)


def _by_order(name: str) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise NotImplementedError(f"{name} has no derivative with respect to its order")

    return refuse


polygamma_p: Primitive = elementwise(
    "polygamma", chlo_lowering("polygamma"), FLOAT, FLOAT,
    derivatives=[
        _by_order("polygamma"),
        lambda g, ans, m, x: lax.mul(g, polygamma(lax.add(m, scalar_like(m, 1)), x)),
    ],
)  # fmt: skip
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)
"""B(2k) / (2k)! for k = 1, 2, ..."""


def _zeta_by_exponent(g: Any, ans: Any, x: Any, q: Any) -> Any:
    """The derivative by x: that of the terms below ten and, for the others, of the Euler-Maclaurin formula
    from q + 10 on (DLMF 25.11.28)."""
    number = lambda v: scalar_like(x, v)  # noqa: E731

    def power(base: Any, exponent: Any) -> tuple[Any, Any]:
        return lax.pow(base, lax.neg(exponent)), lax.log(base)

    total = lax.full_like(ans, 0)
    for n in range(10):
        value, log = power(lax.add(q, number(n)), x)
        total = lax.sub(total, lax.mul(value, log))
    end = lax.add(q, number(10))
    value, log = power(end, x)
    before = lax.reciprocal(lax.sub(x, number(1)))
    tail = lax.mul(lax.mul(end, before), lax.add(log, before))
    tail = lax.add(tail, lax.mul(number(0.5), log))
    # The product of x + i for i = 0, 1, ...; the sum of their inverses; end ** (1 - 2k).
    factor, sums, scale = x, lax.reciprocal(x), lax.reciprocal(end)
    for k, coefficient in enumerate(_BERNOULLI):
        if k:
            for i in (2 * k - 1, 2 * k):
                factor = lax.mul(factor, lax.add(x, number(i)))
                sums = lax.add(sums, lax.reciprocal(lax.add(x, number(i))))
            scale = lax.div(scale, lax.square(end))
        term = lax.mul(lax.mul(number(coefficient), factor), scale)
        tail = lax.add(tail, lax.mul(term, lax.sub(log, sums)))
    return lax.mul(g, lax.sub(total, lax.mul(value, tail)))


zeta_p: Primitive = elementwise(
    "zeta", chlo_lowering("zeta"), FLOAT, FLOAT,
    derivatives=[
        _zeta_by_exponent,
        lambda g, ans, x, q: lax.mul(
            lax.neg(lax.mul(g, x)), zeta(lax.add(x, scalar_like(x, 1)), q)
        ),
    ],
)  # fmt: skip
