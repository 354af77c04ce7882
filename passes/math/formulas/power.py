"""x to the y."""

from __future__ import annotations

from lamina.passes.math.formulas.power_64 import magnitude_of_power
from lamina.passes.math.terms import Term, fma, polynomial, two_product

_INFINITY = float("inf")
_SHIFTER = 1.5 * 2.0**52
_ROOT_HALF = 0x3FE6A09E667F3BCD
# 2 artanh(s) / (s log 2) in s^2, for s = (m - 1) / (m + 1) and m between the roots of 1/2 and 2
_LOG2_ARTANH = (
    2.88539008177785, 0.9617966941134773, 0.5770779423200417,
    0.41220925734837827, 0.31990547688663834, 0.2829035167408683,
)  # fmt: skip
_EXP2 = (
    0.9999999999616186, 0.6931471807288099, 0.24022651198783926, 0.055504103524855485,
    0.009618027169606505, 0.0013333923251948258, 0.00015469312567263714, 1.5201673835585734e-05,
)  # fmt: skip


def power(x: Term, y: Term) -> Term:
    """x to the y; 0.51 ulp in f32, through f64, and 1 ulp in f64. Special values are those of C."""
    base, exponent = x.resized(64), y.resized(64)
    size = base.magnitude()
    # Beyond this the result is 0, 1 or infinite, and infinity times zero can't arise.
    largest = 2.0**50 if x.lane.width == 32 else 2.0**64
    exponent = (exponent > largest).select(largest, exponent)
    exponent = (exponent < -largest).select(-largest, exponent)
    if x.lane.width == 32:
        magnitude = _exp2(exponent * _log2(size))
    else:
        magnitude = magnitude_of_power(size, exponent)

    half = exponent * 0.5
    is_integer = exponent.rounded().equals(exponent)
    is_odd = is_integer & (half.rounded().equals(half) ^ True)
    # The sign bit, so that minus zero counts as negative.
    sign = is_odd.select(base.bits() & (1 << 63), 0)
    result = (magnitude.bits() ^ sign).as_float()

    has_no_root = (base < 0.0) & (size < _INFINITY) & (is_integer ^ True)
    result = has_no_root.select(float("nan"), result)
    is_one = base.equals(1.0) | exponent.equals(0.0)
    return is_one.select(1.0, result).resized(x.lane.width)


def three_halves(x: Term, _: Term) -> Term:
    """x to the 1.5: x times its root, in f64 with what both roundings left out. 0.51 ulp, and 1 where a result
    of f64 is below 1e-290. Special values are power's."""
    if x.lane.width == 32:
        wide = x.resized(64)
        return x.equals(-_INFINITY).select(_INFINITY, (wide * wide.root()).resized(32))
    root = x.root()
    product, lost = two_product(x, root)
    missing = fma(-root, root, x)  # of the square; half of it by the root is the root's, times x
    mended = product + fma(missing, root * 0.5, lost)
    result = (product < _INFINITY).select(mended, product)
    return x.equals(-_INFINITY).select(_INFINITY, result)


def inverse_three_halves(x: Term, _: Term) -> Term:
    """x to the -1.5, the inverse of x times its root; 0.51 ulp, and 1 at the ends of f64's range. Special values are
    power's."""
    if x.lane.width == 32:
        wide = x.resized(64)
        return x.equals(-_INFINITY).select(0.0, (1.0 / (wide * wide.root())).resized(32))
    # The product and its inverse are normal numbers wherever the result is one.
    is_small, is_large = x < 2.0**-600, x > 2.0**600
    scaled = x * is_small.select(2.0**200, is_large.select(2.0**-200, x.like(1.0)))
    root = scaled.root()
    product, lost = two_product(scaled, root)
    lost = fma(fma(-root, root, scaled), root * 0.5, lost)
    quotient = 1.0 / product
    missing = fma(-quotient, product, 1.0) - quotient * lost
    is_finite = (quotient < _INFINITY) & (product < _INFINITY)
    quotient = is_finite.select(fma(missing, quotient, quotient), quotient)
    result = quotient * is_small.select(2.0**300, is_large.select(2.0**-300, x.like(1.0)))
    return x.equals(-_INFINITY).select(0.0, result)


def _log2(size: Term) -> Term:
    offset = size.bits() - _ROOT_HALF
    mantissa = ((offset & ((1 << 52) - 1)) + _ROOT_HALF).as_float()
    s = (mantissa - 1.0) / (mantissa + 1.0)
    whole = (offset >> 52).resized(32).to_float().resized(64)
    y = fma(s, polynomial(s * s, _LOG2_ARTANH), whole)
    y = (size < _INFINITY).select(y, size)
    return size.equals(0.0).select(-_INFINITY, y)


def _exp2(x: Term) -> Term:
    """2 to the x, beyond the range of f32 on both sides; NaN for NaN."""
    x = (x > 300.0).select(300.0, x)
    x = (x < -300.0).select(-300.0, x)
    shifted = x + _SHIFTER
    fraction = x - (shifted - _SHIFTER)
    return (polynomial(fraction, _EXP2).bits() + (shifted.bits() << 52)).as_float()
