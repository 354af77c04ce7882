"""sin, cos, tan and atan2 of f64; the first three are right for every argument, however large.

As in f32, x / pi is x times a table entry from which the bits that make whole turns are left out;
here the entry has four parts, and the products are kept exactly until the whole turns are gone. One
entry serves eight exponents. Below `NEAR`, the nearest multiple of pi/2 is taken away in three parts
(Cody and Waite), which takes a fifth of the operations and reads no table.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from lamina.passes.math.terms import Term, fma, polynomial, table, two_product, two_sum

_PI_INVERSE_BITS = 1280
_PI_INVERSE = int(
    "517cc1b727220a94fe13abe8fa9a6ee06db14acc9e21c820ff28b1d5ef5de2b0db92371d2126e9700324977504e8c90e"
    "7f0ef58e5894d39f74411afa975da24274ce38135a2fbf209cc8eb1cc1a99cfa4e422fc5defc941d8ffc4bffef02cc07"
    "f79788c5ad05368fb69b3f6793e584dba7a31fb34f2ff516ba93dd63f5f2f8bd9e839cfbc529497535fdafd88fc6ae84"
    "2b0198237e3db5d5f867de104d7a1b0e",
    16,
)  # 1/pi 2^1280
_FIRST_REDUCED = 1075  # the biased exponent of 2^52, from which on all f64 are integers
_EXPONENTS_PER_ROW = 8
_PARTS = 4
_SHIFTER = 1.5 * 2.0**52
NEAR = 2.0**32
_HALF_PI_PARTS = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
"""pi/2 as a sum. The first part has 51 bits: an integer below 2^50 times it, taken from an f64 that is less
than 1 away, leaves an f64. The third makes up for the last bits of the second."""
_PI = (3.141592653589793, 1.2246467991473532e-16)
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
# (sin(r) / r - 1) / r^2 in r^2, on +-pi/4
_SIN_TAIL = (
    -0.16666666666666666, 0.008333333333333042, -0.00019841269840962473, 2.7557319073984934e-06,
    -2.5052070923455864e-08, 1.6054311649667324e-10, -7.389468013882511e-13,
)  # fmt: skip
# (cos(r) - 1 + r^2/2) / r^4 in r^2, on +-pi/4
_COS_TAIL = (
    0.041666666666666595, -0.0013888888888873338, 2.480158728899748e-05,
    -2.755731421529868e-07, 2.087570511481125e-09, -1.1358732757255093e-11,
)  # fmt: skip
# (atan(q) / q - 1) / q^2 in q^2, up to tan(pi/8)
_ATAN_TAIL = (
    -0.333333333333332, 0.19999999999953655, -0.1428571428019672, 0.11111110783315574,
    -0.09090897751625443, 0.07692060093662714, -0.06663102656260052, 0.05847879554469355,
    -0.05039263742575603, 0.038063614361738475, -0.01790628832708259,
)  # fmt: skip


@functools.cache
def _pi_inverse_table() -> list[list[float]]:
    rows = []
    for shift in range(0, 2047 - _FIRST_REDUCED, _EXPONENTS_PER_ROW):
        left = (_PI_INVERSE << shift) % (1 << (_PI_INVERSE_BITS + 1))
        parts = []
        for _ in range(_PARTS):
            cut = max(left.bit_length() - 53, 0)
            parts.append(math.ldexp(left >> cut, cut - _PI_INVERSE_BITS))
            left &= (1 << cut) - 1
        rows.append(parts)
    return rows


def _quarter_turns(x: Term) -> tuple[Term, Term, Term]:
    """2 x / pi less the nearest integer, in two parts; and that integer, in its term's low bits.

    The integer is right but for multiples of four.
    """
    exponent = x.bits().logical_right(52) & 0x7FF
    beyond = (exponent < _FIRST_REDUCED).select(_FIRST_REDUCED, exponent) - _FIRST_REDUCED
    row = beyond.logical_right(3)
    scale = ((1023 - (row << 3)) << 52).as_float()
    parts = table("pi_inverse_64", _pi_inverse_table(), row, 64)
    scaled = x * (scale + scale)
    first, first_low = two_product(scaled, parts[0])
    second, second_low = two_product(scaled, parts[1])
    third, third_low = two_product(scaled, parts[2])
    first = fma((first * 0.25).rounded(), -4.0, first)
    second, low_a = two_sum(first_low, second)
    turns, low_b = two_sum(first, second)
    shifted = turns + _SHIFTER
    rest = turns - (shifted - _SHIFTER)
    low, low_c = two_sum(low_b, low_a)
    third, low_d = two_sum(second_low, third)
    low, low_e = two_sum(low, third)
    rest, low = two_sum(rest, low)
    tiny = ((low_c + low_d) + low_e) + fma(scaled, parts[3], third_low)
    return rest, low + tiny, shifted.bits()


def _reduced(x: Term) -> tuple[Term, Term, Term]:
    """x less the nearest multiple of pi/2, in two parts; and the multiple, in its term's low bits."""
    rest, low, quarters = _quarter_turns(x)
    angle, angle_low = two_product(rest, _HALF_PI[0])
    return angle, angle_low + fma(rest, _HALF_PI[1], low * _HALF_PI[0]), quarters


def _reduced_near(x: Term) -> tuple[Term, Term, Term]:
    """The same for |x| < `NEAR`."""
    shifted = fma(x, 1.0 / _HALF_PI[0], _SHIFTER)
    quarters = shifted - _SHIFTER
    first, second, third = _HALF_PI_PARTS
    rest = fma(quarters, -first, x)  # exact
    product, product_low = two_product(quarters, -second)
    angle, angle_low = two_sum(rest, product)
    return angle, angle_low + fma(quarters, -third, product_low), shifted.bits()


Reduction = Callable[[Term], tuple[Term, Term, Term]]


def near(function: Callable[..., Term]) -> Callable[[Term], Term]:
    """A function of this module for arguments below `NEAR`."""
    return functools.partial(function, reduce=_reduced_near)


def _sine_and_cosine(x: Term, reduce: Reduction) -> tuple[Term, Term, Term]:
    """Of what is left of x over the nearest quarter turn; and the number of quarter turns."""
    angle, angle_low, quarters = reduce(x)
    square = angle * angle
    sine = angle + fma(polynomial(square, _SIN_TAIL) * square, angle, angle_low)
    half_square, half_square_low = two_product(angle, angle * 0.5)
    near_one = 1.0 - half_square
    rounded_away = ((1.0 - near_one) - half_square) - half_square_low
    tail = fma(polynomial(square, _COS_TAIL) * square, square, -(angle * angle_low))
    return sine, near_one + (rounded_away + tail), quarters


def _is_odd(number: Term) -> Term:
    return (number & 1).compare("!=", 0)


def sin(x: Term, reduce: Reduction = _reduced) -> Term:
    """The sine; 0.9 ulp."""
    sine, cosine, quarters = _sine_and_cosine(x, reduce)
    y = _is_odd(quarters).select(cosine, sine).bits() ^ ((quarters & 2) << 62)
    return (x.magnitude() < 2.0**-27).select(x, y.as_float())


def cos(x: Term, reduce: Reduction = _reduced) -> Term:
    """The cosine; 0.9 ulp."""
    sine, cosine, quarters = _sine_and_cosine(x, reduce)
    y = _is_odd(quarters).select(sine, cosine).bits() ^ (((quarters + 1) & 2) << 62)
    return y.as_float()


def tan(x: Term, reduce: Reduction = _reduced) -> Term:
    """The tangent; 2.5 ulp."""
    sine, cosine, quarters = _sine_and_cosine(x, reduce)
    is_odd = _is_odd(quarters)
    y = is_odd.select(-cosine, sine) / is_odd.select(sine, cosine)
    return (x.magnitude() < 2.0**-27).select(x, y)


def atan2(y: Term, x: Term) -> Term:
    """The angle of the point (x, y); 2 ulp."""
    height, width = y.magnitude(), x.magnitude()
    is_steep = height > width
    longer, shorter = is_steep.select(height, width), is_steep.select(width, height)
    # Scaled, so that neither sum nor quotient leaves the range.
    is_large = longer > 2.0**1000
    scale = is_large.select(2.0**-60, longer.like(1.0))
    scale = (longer < 2.0**-900).select(2.0**100, scale)
    both_infinite = shorter.equals(float("inf"))
    longer = both_infinite.select(1.0, longer * scale)
    shorter = both_infinite.select(1.0, shorter * scale)
    # atan(s / l) = pi/4 + atan((s - l) / (s + l)), for ratios above tan(pi/8)
    is_diagonal = shorter > longer * 0.41421356237309503
    numerator = is_diagonal.select(shorter - longer, shorter)
    denominator = is_diagonal.select(shorter + longer, longer)
    ratio = numerator / denominator
    ratio = longer.equals(0.0).select(0.0, ratio)
    square = ratio * ratio
    tail = polynomial(square, _ATAN_TAIL) * square * ratio
    eighth = is_diagonal.select(_HALF_PI[0] / 2, ratio.like(0.0))
    eighth_low = is_diagonal.select(_HALF_PI[1] / 2, tail.like(0.0))
    angle = eighth + (ratio + (tail + eighth_low))
    angle = is_steep.select((_HALF_PI[0] - angle) + _HALF_PI[1], angle)
    is_left = x.bits() < 0
    angle = is_left.select((_PI[0] - angle) + _PI[1], angle)
    is_nan = y.compare("uno", x)
    return is_nan.select(float("nan"), angle).with_sign_of(y)
