"""tanh."""

from __future__ import annotations

from lamina.passes.math.formulas.exponential import expm1, expm1_of_positive
from lamina.passes.math.terms import Term


def tanh(x: Term) -> Term:
    """The hyperbolic tangent, as (e^2x - 1) / (e^2x + 1); 2.4 ulp."""
    size = x.magnitude()
    twice = size + size
    if x.lane.width == 64:
        grown = expm1((twice > 40.0).select(40.0, twice))
    else:
        grown = expm1_of_positive((twice > 20.0).select(20.0, twice))
    return (grown / (grown + 2.0)).with_sign_of(x)
