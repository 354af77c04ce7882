"""exp and expm1: reduction by multiples of log 2, a polynomial, and the power of two again.

exp in f32 has the coefficients of XLA's CPU compiler (those of Cephes), and nearly always its bits.
"""

from __future__ import annotations

from lamina.passes.math.terms import Term, fma, polynomial
from lamina.records import Record

_LOG2_E = 1.4426950408889634


class _Format(Record):
    """What the formulas need to know about a float width."""

    mantissa: int
    bias: int
    ln2_high: float  # few enough bits that its product with an exponent is exact
    ln2_low: float
    lowest: float  # exp of it is the smallest normal number
    highest: float  # exp of it is still finite
    exp_tail: tuple[float, ...]  # (exp(r) - 1 - r) / r^2 on +-log(2)/2
    expm1_tail: tuple[float, ...]

    @property
    def shifter(self) -> float:
        """Adding it rounds to an integer, which then stands in the low bits."""
        return 1.5 * 2.0**self.mantissa


_EXP_TAIL_64 = (
    0.5, 0.16666666666666688, 0.041666666666666824, 0.008333333333313892,
    0.0013888888888777817, 0.0001984126990337807, 2.480158755967755e-05, 2.7557228616041238e-06,
    2.7557066683602936e-07, 2.511420859421978e-08, 2.0984548048370857e-09,
)  # fmt: skip
_FORMATS = {
    32: _Format(
        mantissa=23,
        bias=127,
        ln2_high=0.693359375,
        ln2_low=-2.12194440e-4,
        lowest=-87.33654022216797,
        highest=88.72283172607422,
        exp_tail=(
            0.5, 1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3,
            1.9875691500e-4,
        ),
        expm1_tail=(
            0.5, 0.1666666567325592, 0.04166646674275398,
            0.008333642967045307, 0.001393504673615098, 0.00019664541468955576,
        ),
    ),
    64: _Format(
        mantissa=52,
        bias=1023,
        ln2_high=0.6931471803691238,
        ln2_low=1.9082149292705877e-10,
        lowest=-708.3964185322641,
        highest=709.782712893384,
        exp_tail=_EXP_TAIL_64,
        expm1_tail=_EXP_TAIL_64,
    ),
}  # fmt: skip


def _reduce(x: Term) -> tuple[Term, Term, Term]:
    """r in +-log(2)/2, its rounding error and n with x = n log 2 + r + error.

    n comes as an integer in the exponent's place.
    """
    format_ = _FORMATS[x.lane.width]
    shifted = fma(x, _LOG2_E, format_.shifter)
    n = shifted - format_.shifter
    exact = fma(n, -format_.ln2_high, x)
    r = fma(n, -format_.ln2_low, exact)
    error = fma(n, -format_.ln2_low, exact - r)
    return r, error, shifted.bits() << format_.mantissa


def exp_in_range(x: Term) -> Term:
    """exp where the result is a normal number; anything elsewhere."""
    r, _, exponent = _reduce(x)
    tail = polynomial(r, _FORMATS[x.lane.width].exp_tail)
    return ((fma(tail, r * r, r) + 1.0).bits() + exponent).as_float()


def exp(x: Term) -> Term:
    """e to the x; 1 ulp. Results that would be denormal are zero."""
    format_ = _FORMATS[x.lane.width]
    y = exp_in_range(x)
    y = (x < format_.lowest).select(0.0, y)
    # Past the end this is infinity, and NaN for NaN.
    return (x <= format_.highest).select(y, x + float("inf"))


def expm1(x: Term) -> Term:
    """e to the x, less one, also for small x; 0.9 ulp."""
    format_ = _FORMATS[x.lane.width]
    negligible = -(format_.mantissa + 1.0)
    inside = (x < negligible).select(negligible, x)
    too_large = format_.highest + 0.25
    inside = (inside > too_large).select(too_large, inside)
    r, error, exponent = _reduce(inside)
    tail = fma(polynomial(r, format_.expm1_tail), r * r, error)
    # Half of 2^n is finite for every n that is left; 2^n is not. What rounding loses of the larger
    # terms, (2^n - 1) / 2 and 2^n r / 2, is added to the smallest.
    half_scale = (exponent + ((format_.bias - 1) << format_.mantissa)).as_float()
    constant = half_scale - 0.5
    linear = fma(half_scale, r, constant)
    lost = fma(half_scale, r, constant - linear) + ((half_scale - constant) - 0.5)
    half = linear + fma(half_scale, tail, lost)
    # Half of the smallest normal numbers would be flushed to zero.
    tiny = x.magnitude() < 2.0**-100
    return tiny.select(x, half + half).with_sign_of(x)
