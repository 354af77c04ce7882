"""Polynomials, elementwise: polynomial, one_minus_square. Their derivatives are polynomials again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive, ShapedArray, Zero, get_aval, is_undefined_primal
from lamina.core.array_class import Array
from lamina.core.tangents import UnknownOperand
from lamina.core.trace import Tracer
from lamina.lax import hlo
from lamina.lax.checks import NUMBER, scalar_like
from lamina.lax.elementwise_rules import (
    broadcast_shapes,
    elementwise,
    elementwise_abstract_eval,
    spread_values,
    unbroadcast,
)

_MOST_UNROLLED = 64
"""Coefficients of a polynomial that is written out; a longer one is a loop over them."""
_STEPS_TOGETHER = 16


# ---- user functions ----------------------------------------------------------------------------
def polynomial(x: Any, coeffs: Sequence[Any], *, unroll: int | None = None) -> Array:
    """a0 + a1 x + a2 x^2 + ..., elementwise, by Horner's rule.

    x       an array of numbers.
    coeffs  (a0, a1, ...), the constant first: scalars, or arrays of x's rank whose sizes are x's or
            1. They take x's dtype. Without any the result is zeros.
    unroll  how many coefficients are written out one by one; more are gone through by `lax.scan`,
            so many in a step. By default 64, and 16 in a step.

    The derivative by x is the polynomial's derivative, evaluated in the same way. Raises TypeError
    for shapes that do not fit.

    >>> lamina.lax.polynomial(3.0, [1.0, 5.0, 2.0])
    Array(34., dtype=float32, weak_type=True)
    """
    dtype = get_aval(x).dtype
    given = [
        scalar_like(x, c)
        if not isinstance(c, Tracer) and not np.ndim(c)
        else lax.convert_element_type(c, dtype)
        for c in coeffs
    ]
    if not given:
        return lax.full_like(x, 0)
    shape = broadcast_shapes("polynomial", [get_aval(v) for v in (x, *given)])
    if len(given) == 1:
        rank = len(np.shape(given[0]))
        return lax.broadcast_in_dim(given[0], shape, range(len(shape) - rank, len(shape)))
    if len(given) <= (_MOST_UNROLLED if unroll is None else unroll):
        return polynomial_p.bind(x, *given)
    of_all = broadcast_shapes("polynomial", [get_aval(c) for c in given])
    rank = len(of_all)
    rows = [
        lax.broadcast_in_dim(c, (1, *of_all), range(1 + rank - len(np.shape(c)), 1 + rank))
        for c in reversed(given)
    ]
    return lax.scan(
        lambda total, c: (lax.add(lax.mul(total, x), c), None),
        lax.full(shape, 0, dtype),
        lax.concatenate(rows, 0),
        unroll=max(_STEPS_TOGETHER if unroll is None else unroll, 1),
    )[0]


def one_minus_square(x: Any) -> Array:
    """1 - x**2, elementwise, as (1 + x)(1 - x), which keeps its digits where |x| is near 1.

    x  an array of numbers.

    >>> lamina.lax.one_minus_square(0.5)
    Array(0.75, dtype=float32, weak_type=True)
    """
    return one_minus_square_p.bind(x)


# ---- polynomial --------------------------------------------------------------------------------
def _abstract_eval(*avals: ShapedArray) -> ShapedArray:
    return elementwise_abstract_eval("polynomial", [NUMBER] * len(avals), None)(*avals)


def _lowering(ctx: Any, *values: Any) -> Any:
    x, *coeffs = spread_values(ctx, values)
    total = coeffs.pop()
    for c in reversed(coeffs):
        total = hlo.add(hlo.multiply(total, x), c)
    return total


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    x, *coeffs = primals
    dx, *dcoeffs = tangents
    out = polynomial_p.bind(x, *coeffs)
    terms = []
    if type(dx) is not Zero:
        by_x = polynomial(x, [lax.mul(scalar_like(c, k), c) for k, c in enumerate(coeffs) if k])
        terms.append(lax.mul(dx, by_x))
    if any(type(d) is not Zero for d in dcoeffs):
        given = [lax.full_like(c, 0) if type(d) is Zero else d for c, d in zip(coeffs, dcoeffs)]
        terms.append(polynomial_p.bind(x, *given))
    if not terms:
        return out, Zero(get_aval(out).to_tangent_aval())
    return out, terms[0] if len(terms) == 1 else lax.add_any(*terms)


def _transpose(ct: Any, x: Any, *coeffs: Any) -> list[Any]:
    if is_undefined_primal(x):
        raise UnknownOperand("x")
    cts: list[Any] = [None]
    term = ct  # ct * x**k
    for k, c in enumerate(coeffs):
        if k:
            term = lax.mul(term, x)
        cts.append(unbroadcast(c.aval, term) if is_undefined_primal(c) else None)
    return cts


polynomial_p: Primitive = elementwise(
    "polynomial", _lowering, abstract_eval=_abstract_eval, jvp=_jvp, transpose=_transpose
)


# ---- one_minus_square --------------------------------------------------------------------------
def _one_minus_square_lowering(ctx: Any, x: Any) -> Any:
    aval = ctx.avals_in[0]
    one = hlo.full(1, aval.shape, aval.dtype)
    return hlo.multiply(hlo.add(one, x), hlo.subtract(one, x))


# By the product rule the derivative would be (1 - x) - (1 + x), which is 0 for small x.
one_minus_square_p: Primitive = elementwise(
    "one_minus_square", _one_minus_square_lowering, NUMBER,
    derivatives=[lambda g, ans, x: lax.mul(g, lax.mul(scalar_like(x, -2), x))],
)  # fmt: skip
