"""tanh, as (e^2x - 1) / (e^2x + 1)."""

from __future__ import annotations

import math

from lamina.passes.math.formulas.exponential import expm1
from lamina.passes.math.terms import Term, fma

_SATURATED = 10.0  # from here on all results of f32 are 1
# Rounds to an integer n, which then stands in the low bits as n + 127: an exponent to be shifted up.
_SHIFTER = 1.5 * 2.0**23 + 127
# ((e^2r - 1) / 2 - r) / r^2 - 1 over r, on +-log(2)/4
_TAIL = (0.6666616797447205, 0.3333302438259125, 0.1338663101196289, 0.04462897405028343)


def tanh(x: Term) -> Term:
    """The hyperbolic tangent; 2.4 ulp."""
    if x.lane.width == 64:
        twice = x.magnitude() * 2.0
        grown = expm1((twice > 40.0).select(40.0, twice))
        return (grown / (grown + 2.0)).with_sign_of(x)
    size = x.magnitude()
    size = (size > _SATURATED).select(_SATURATED, size)
    # size = n log(2) / 2 + r. One constant for log(2) will do: large n come where tanh is flat.
    shifted = fma(size, 2 / math.log(2), _SHIFTER)
    r = fma(shifted - _SHIFTER, -math.log(2) / 2, size)
    power = (shifted.bits() << 23).as_float()
    # Pairs of steps side by side: what limits a chain of these is its length.
    square = r * r
    high = fma(fma(r, _TAIL[3], _TAIL[2]), square, fma(r, _TAIL[1], _TAIL[0]))
    grown = fma(fma(high, r, 1.0), square, r)
    half = fma(power, grown, fma(power, 0.5, -0.5))  # of e^2x - 1
    return (half / (half + 1.0)).with_sign_of(x)
