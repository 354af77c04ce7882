"""The remainder of a division of f32 towards zero, exactly, in f64.

    a = |x|;  for s = 5, 4, 3, 2, 1, 0:  a = a mod (|y| 2^(48 s))

By a reciprocal, a quotient below 2^49 is found to one unit; what is left of a then is a number of 25
bits, which a fused multiplication and addition gives as it is. So are all remainders there are, since
f32 reaches over 277 powers of two. Denormals, which the machine takes for zero, are read and written
as integers.
"""

from __future__ import annotations

from lamina.passes.math.terms import Term, fma

_STEP = 48  # bits of a quotient
_STEPS = 6
_LEAST_NORMAL = 1 << 23  # as bits
_UNIT = 2.0**-149


def remainder(x: Term, y: Term) -> Term:
    """x - y trunc(x / y), with the sign of x; NaN where x is infinite or y zero."""
    a, b = _size(x), _size(y)
    reciprocal = 1.0 / b
    left = a
    for step in reversed(range(_STEPS)):
        divisor = b * 2.0 ** (_STEP * step)
        quotient = (left * (reciprocal * 2.0 ** (-_STEP * step))).rounded_down()
        left = fma(-quotient, divisor, left)
        left = (left < 0.0).select(left + divisor, left)
        left = (left >= divisor).select(left - divisor, left)
    left = (a < b).select(a, left)  # also where b is infinite
    infinity = float("inf")
    defined = (a < infinity) & (b > 0.0)
    return defined.select(_number(left).with_sign_of(x), float("nan"))


def _size(x: Term) -> Term:
    """|x| in f64."""
    bits = x.bits() & 0x7FFFFFFF
    of_denormal = bits.resized(64).to_float() * _UNIT
    is_denormal = bits.resized(64) < _LEAST_NORMAL
    return is_denormal.select(of_denormal, bits.as_float().resized(64))


def _number(a: Term) -> Term:
    """A number that f32 has, from f64."""
    is_denormal = a < 2.0**-126
    safe = is_denormal.select(a, 0.0)
    units = (safe * 2.0**149 + 2.0**52).bits().resized(32) & (_LEAST_NORMAL - 1)
    rounded = a.resized(32)
    whole = is_denormal.select(rounded.lane.constant(0, "float"), rounded)
    return (whole.bits() | units).as_float()
