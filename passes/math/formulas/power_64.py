"""x to the y in f64: logarithm, product and exponential with parts that together hold 100 bits."""

from __future__ import annotations

from lamina.passes.math.terms import Term, fast_two_sum, fma, polynomial, two_product, two_sum

_INFINITY = float("inf")
_SHIFTER = 1.5 * 2.0**52
_ROOT_HALF = 0x3FE6A09E667F3BCD
_TWO_LOG2_E = (2.8853900817779268, 4.0710547481862066e-17)
_THIRD = (0.3333333333333333, 1.850371707708594e-17)
_LN2 = (0.6931471805599453, 2.3190468138462996e-17)
# (artanh(s) / s - 1 - s^2/3) / s^4 in s^2
_ARTANH_TAIL = (
    0.20000000000001128, 0.1428571428504969, 0.11111111259992995, 0.09090892179884127,
    0.07693378868657372, 0.06628403494219735, 0.06598219458758477,
)  # fmt: skip
# (2^r - 1 - r log 2) / r^2 on +-1/2
_EXP2_TAIL = (
    0.24022650695910122, 0.05550410866481904, 0.009618129107595996, 0.0013333558146725799,
    0.00015403530458021596, 1.5252733876881266e-05, 1.321543338617627e-06,
    1.0177919340127605e-07, 7.074315139922939e-09, 4.491566074579453e-10,
)  # fmt: skip


def magnitude_of_power(size: Term, exponent: Term) -> Term:
    """size to the exponent, for a size that is not negative and an exponent up to 2^64; 1 ulp.

    What is small waits for the polynomials, what is large for nothing: alone in a loop, a power takes as long as its
    chain of dependent steps.
    """
    log, log_low = _log2(size)
    product, product_low = two_product(exponent, log)
    product_low = fma(exponent, log_low, product_low)
    shifted = product + _SHIFTER
    rest, rest_low = two_sum(product - (shifted - _SHIFTER), product_low)
    linear, linear_low = two_product(rest, _LN2[0])
    linear_low = linear_low + fma(rest_low, _LN2[0], rest * _LN2[1])
    y = 1.0 + (linear + fma(polynomial(rest, _EXP2_TAIL), rest * rest, linear_low))
    # The power of two in two steps: alone it may be beyond the range where the product is not.
    whole = (shifted.bits() << 52) >> 52
    half = whole >> 1
    first, second = ((part + 1023) << 52 for part in (half, whole - half))
    y = (y * first.as_float()) * second.as_float()
    # Where there is no such log, or the result is out of range, y is any number.
    log = size.equals(0.0).select(-_INFINITY, (size < _INFINITY).select(log, size))
    product = exponent * log
    y = (product > 1100.0).select(_INFINITY, y)
    y = (product < -1100.0).select(0.0, y)
    return product.is_nan().select(product, y)


def _log2(size: Term) -> tuple[Term, Term]:
    """The logarithm of a normal number in two parts."""
    offset = size.bits() - _ROOT_HALF
    mantissa = ((offset & ((1 << 52) - 1)) + _ROOT_HALF).as_float()
    whole = (offset >> 52).resized(32).to_float().resized(64)
    numerator = mantissa - 1.0
    denominator, denominator_low = fast_two_sum(mantissa.like(1.0), mantissa)
    # One division, and what it and the product by it left out: a second one would have to wait for the first.
    inverse = 1.0 / denominator
    s = numerator * inverse
    s_low = (fma(-s, denominator, numerator) - s * denominator_low) * inverse
    square, square_low = two_product(s, s)
    square_low = fma(s + s, s_low, square_low)
    third, third_low = two_product(square, _THIRD[0])
    third_low = third_low + fma(square, _THIRD[1], square_low * _THIRD[0])
    # What is left is below 2^-17 of the logarithm: its sum with exponent times logarithm stays near one half.
    fourth_power = square * square
    third, extra = fast_two_sum(third, fourth_power * _ARTANH_TAIL[0])
    third_low = fma(polynomial(square, _ARTANH_TAIL[1:]) * square, fourth_power, third_low + extra)
    # log = 2 log2(e) s (1 + s^2/3 + s^4 (...))
    first, first_low = two_product(s, _TWO_LOG2_E[0])
    first_low = first_low + fma(s, _TWO_LOG2_E[1], s_low * _TWO_LOG2_E[0])
    second, second_low = two_product(first, third)
    second_low = fma(first_low, third, second_low)
    log, extra = fast_two_sum(first, second)
    low = extra + (first_low + second_low)
    log, extra = fast_two_sum(whole, log)
    return log, fma(first, third_low, low + extra)
