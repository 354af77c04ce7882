"""sin, cos, tan and atan2 of f32; the first three are right for every argument, however large.

Their reduction is done in f64 and in half turns: x / pi is x times a table entry that depends on
x's exponent only. The entry is 1/pi without those leading bits that contribute multiples of two
half turns for every x of that exponent, so that what is left has enough bits for the largest x. Its
first part has 29 bits: its product with the 24 bits of x is exact.
"""

from __future__ import annotations

import functools

from lamina.passes.math.terms import Term, fma, polynomial, table

_PI_INVERSE_BITS = 256
_PI_INVERSE = 0x517CC1B727220A94FE13ABE8FA9A6EE06DB14ACC9E21C820FF28B1D5EF5DE2B0  # 1/pi 2^256
_FIRST_REDUCED = 150  # the biased exponent of 2^23, from which on all f32 are integers
_HIGH_BITS = 29
_SHIFTER = 1.5 * 2.0**52

# In the square of the angle, the angle in half turns (sin) or quarter turns (tan), up to 1/4.
_SIN_HALF_TURNS = (
    3.1415926535225185, -5.167712761931426, 2.550163233787978,
    -0.5992512497392631, 0.08204607795005706, -0.007021468189833314,
)  # fmt: skip
_SIN_QUARTER_TURNS = (
    1.5707963267876777, -0.6459640960911192, 0.07969258157566905,
    -0.00468125865319794, 0.00015819059757816412,
)  # fmt: skip
_COS_QUARTER_TURNS = (
    0.9999999999433555, -1.2337005394777845, 0.2536691805982741,
    -0.02085992158115301, 0.0009033307558494125,
)  # fmt: skip

# (atan(q) / q - 1) / q^2 in q^2, up to 1
_ATAN_TAIL = (
    -0.33333298563957214, 0.1999852955341339, -0.1426401436328888, 0.10950861126184464,
    -0.08399207890033722, 0.05787887051701546, -0.0310935340821743, 0.010866271331906319,
    -0.0017821441870182753,
)  # fmt: skip
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08)


@functools.cache
def _pi_inverse_table() -> list[list[float]]:
    rows = []
    for shift in range(256 - _FIRST_REDUCED):
        period = 1 << (_PI_INVERSE_BITS + 1)
        left = (_PI_INVERSE << shift) % period
        cut = max(left.bit_length() - _HIGH_BITS, 0)
        high = left >> cut << cut
        scale = 2.0 ** -(_PI_INVERSE_BITS + shift)
        rows.append([high * scale, (left - high) * scale])
    return rows


def _half_turns(x: Term) -> tuple[Term, Term]:
    """x / pi, less an even integer, as an exact f64 and a small correction of it."""
    exponent = x.bits().logical_right(23) & 0xFF
    row = (exponent < _FIRST_REDUCED).select(_FIRST_REDUCED, exponent) - _FIRST_REDUCED
    high, low = table("pi_inverse", _pi_inverse_table(), row, 64)
    wide = x.resized(64)
    return wide * high, wide * low


def sin(x: Term) -> Term:
    """The sine of an f32; 0.55 ulp."""
    turns, correction = _half_turns(x)
    shifted = turns + _SHIFTER
    angle = (turns - (shifted - _SHIFTER)) + correction
    return _sin_with_sign(angle, shifted.bits())


def cos(x: Term) -> Term:
    """The cosine of an f32; 0.55 ulp. It is the sine half a half turn further."""
    turns, correction = _half_turns(x)
    shifted = (turns - 0.5) + _SHIFTER
    angle = (turns - ((shifted - _SHIFTER) + 0.5)) + correction
    return _sin_with_sign(angle, shifted.bits() + 1)


def _sin_with_sign(angle: Term, half_turns: Term) -> Term:
    y = polynomial(angle * angle, _SIN_HALF_TURNS) * angle
    return (y.bits() ^ (half_turns << 63)).as_float().resized(32)


def tan(x: Term) -> Term:
    """The tangent of an f32; 0.55 ulp."""
    turns, correction = _half_turns(x)
    quarters = turns + turns
    shifted = quarters + _SHIFTER
    angle = fma(correction, 2.0, quarters - (shifted - _SHIFTER))
    square = angle * angle
    sine = polynomial(square, _SIN_QUARTER_TURNS) * angle
    cosine = polynomial(square, _COS_QUARTER_TURNS)
    is_odd = (shifted.bits() & 1).compare("!=", 0)
    return (is_odd.select(-cosine, sine) / is_odd.select(sine, cosine)).resized(32)


def atan2(y: Term, x: Term) -> Term:
    """The angle of the point (x, y) in f32; 3 ulp."""
    height, width = y.magnitude(), x.magnitude()
    is_steep = height > width
    longer, shorter = is_steep.select(height, width), is_steep.select(width, height)
    ratio = shorter / longer
    ratio = longer.equals(0.0).select(0.0, ratio)
    ratio = shorter.equals(float("inf")).select(1.0, ratio)
    square = ratio * ratio
    angle = fma(polynomial(square, _ATAN_TAIL) * square, ratio, ratio)
    angle = is_steep.select((_HALF_PI[0] - angle) + _HALF_PI[1], angle)
    is_left = x.bits() < 0
    angle = is_left.select((2 * _HALF_PI[0] - angle) + 2 * _HALF_PI[1], angle)
    is_nan = y.compare("uno", x)
    return is_nan.select(float("nan"), angle).with_sign_of(y)
