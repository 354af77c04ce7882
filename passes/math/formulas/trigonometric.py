"""sin, cos, tan and atan2 of f32; the first three are right for every argument, however large.

Their reduction is done in f64 and in half turns: x / pi, less the nearest integer by a fused step,
so that nothing is lost before what is left is small. For large x, 1/pi is without those leading
bits that contribute multiples of two half turns, so that what is left has enough bits for the
largest x. Five ranges of exponents have a constant of two parts each; which, is chosen by
comparisons, since reading a table takes longer than all the rest. Below `NEAR` there is nothing to
choose: `near` makes a third less work of a function there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from lamina.passes.math.terms import Term, fma, polynomial

_PI_INVERSE_BITS = 256
_PI_INVERSE = 0x517CC1B727220A94FE13ABE8FA9A6EE06DB14ACC9E21C820FF28B1D5EF5DE2B0  # 1/pi 2^256
_MANTISSA_BITS = 23
_RANGES = (44, 65, 86, 107)  # exponents from which on more bits of 1/pi are left out
NEAR = 2.0 ** _RANGES[0]
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


def _pi_inverse(first_exponent: int) -> tuple[float, float]:
    """1/pi in two f64, without the bits that make whole turns of numbers from 2^first_exponent on."""
    left = _PI_INVERSE
    if first_exponent > _MANTISSA_BITS:
        left %= 1 << (_PI_INVERSE_BITS + 1 + _MANTISSA_BITS - first_exponent)
    cut = left.bit_length() - 53
    high = left >> cut << cut
    return math.ldexp(high, -_PI_INVERSE_BITS), math.ldexp(left - high, -_PI_INVERSE_BITS)


def near(function: Callable[..., Term]) -> Callable[[Term], Term]:
    """A function of this module for arguments below `NEAR`: the same bits."""
    return functools.partial(function, ranges=())


def _in_half_turns(
    x: Term, ranges: tuple[int, ...], times: float = 1.0
) -> tuple[Term, Term, Term]:
    """x in f64, and what it is to be multiplied by, in two parts, to count so many per half turn."""
    wide, size = x.resized(64), x.magnitude()
    high, low = (wide.like(part * times) for part in _pi_inverse(0))
    for exponent in ranges:
        is_beyond = size >= 2.0**exponent
        parts = _pi_inverse(exponent)
        high = is_beyond.select(parts[0] * times, high)
        low = is_beyond.select(parts[1] * times, low)
    return wide, high, low


def sin(x: Term, ranges: tuple[int, ...] = _RANGES) -> Term:
    """The sine of an f32; 0.501 ulp."""
    wide, high, low = _in_half_turns(x, ranges)
    shifted = fma(wide, high, _SHIFTER)
    angle = fma(wide, low, fma(wide, high, -(shifted - _SHIFTER)))
    return _sin_with_sign(angle, shifted.bits())


def cos(x: Term, ranges: tuple[int, ...] = _RANGES) -> Term:
    """The cosine of an f32; 0.501 ulp. It is the sine half a half turn further."""
    wide, high, low = _in_half_turns(x, ranges)
    shifted = fma(wide, high, -0.5) + _SHIFTER
    angle = fma(wide, low, fma(wide, high, -((shifted - _SHIFTER) + 0.5)))
    return _sin_with_sign(angle, shifted.bits() + 1)


def _sin_with_sign(angle: Term, half_turns: Term) -> Term:
    y = polynomial(angle * angle, _SIN_HALF_TURNS) * angle
    return (y.bits() ^ (half_turns << 63)).as_float().resized(32)


def sin_beside_cos(x: Term, ranges: tuple[int, ...] = _RANGES) -> Term:
    """The sine where the cosine is wanted, too: most of the work is the same; 0.501 ulp."""
    sine, cosine, quarters = _sine_and_cosine(x, ranges)
    y = _is_odd(quarters).select(cosine, sine)
    return (y.bits() ^ ((quarters & 2) << 62)).as_float().resized(32)


def cos_beside_sin(x: Term, ranges: tuple[int, ...] = _RANGES) -> Term:
    """The cosine where the sine is wanted, too; 0.501 ulp."""
    sine, cosine, quarters = _sine_and_cosine(x, ranges)
    y = _is_odd(quarters).select(sine, cosine)
    return (y.bits() ^ (((quarters + 1) & 2) << 62)).as_float().resized(32)


def tan(x: Term, ranges: tuple[int, ...] = _RANGES) -> Term:
    """The tangent of an f32; 0.501 ulp."""
    sine, cosine, quarters = _sine_and_cosine(x, ranges)
    is_odd = _is_odd(quarters)
    return (is_odd.select(-cosine, sine) / is_odd.select(sine, cosine)).resized(32)


def _sine_and_cosine(x: Term, ranges: tuple[int, ...]) -> tuple[Term, Term, Term]:
    """Of what is left of x over the nearest quarter turn; and the number of quarter turns."""
    wide, high, low = _in_half_turns(x, ranges, times=2.0)
    shifted = fma(wide, high, _SHIFTER)
    angle = fma(wide, low, fma(wide, high, -(shifted - _SHIFTER)))
    square = angle * angle
    sine = polynomial(square, _SIN_QUARTER_TURNS) * angle
    return sine, polynomial(square, _COS_QUARTER_TURNS), shifted.bits()


def _is_odd(number: Term) -> Term:
    return (number & 1).compare("!=", 0)


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
