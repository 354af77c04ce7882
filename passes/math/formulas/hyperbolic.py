"""tanh."""

from __future__ import annotations

from lamina.passes.math.formulas.exponential import exp_in_range, expm1
from lamina.passes.math.terms import Term, fma, polynomial

# (tanh(x) / x - 1) / x^2 in x^2, up to 0.625
_TANH_TAIL_32 = (
    -0.3333328068256378, 0.13331405818462372, -0.05373651534318924,
    0.02062816731631756, -0.0056922961957752705,
)  # fmt: skip


def tanh(x: Term) -> Term:
    """The hyperbolic tangent; 1.5 ulp in f32, 2 in f64."""
    size = x.magnitude()
    twice = size + size
    twice = (twice > 40.0).select(40.0, twice)
    if x.lane.width == 64:
        grown = expm1(twice)
        return (grown / (grown + 2.0)).with_sign_of(x)
    far = 1.0 - 2.0 / (exp_in_range(twice) + 1.0)
    square = x * x
    near = fma(polynomial(square, _TANH_TAIL_32) * square, size, size)
    return (size > 0.625).select(far, near).with_sign_of(x)
