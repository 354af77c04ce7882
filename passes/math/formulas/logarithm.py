"""log and log1p.

In f32 they take the steps that XLA's CPU compiler takes, fused where it fuses, so that random numbers
made with them (normal, gumbel, categorical) have the bits that jax.random gives.
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.passes.math.limits import limits_in_512
from lamina.passes.math.terms import Term, fma, polynomial
from lamina.records import Record


class _Format(Record):
    mantissa: int
    smallest_normal: float
    root_half: int  # the bits of sqrt(1/2)
    ln2_high: float
    ln2_low: float


_FORMATS = {
    32: _Format(23, 2.0**-126, 0x3F3504F3, 0.693359375, -0.00021219444170128554),
    64: _Format(52, 2.0**-1022, 0x3FE6A09E667F3BCD, 0.6931471803691238, 1.9082149292705877e-10),
}
# (2 artanh(s) / s - 2) / s^2 in s^2
_ARTANH_TAIL_64 = (
    0.6666666666666734, 0.39999999999416824, 0.28571428741974886, 0.22222198610585936,
    0.1818356259195083, 0.15314090328137853, 0.14795592326405235,
)  # fmt: skip
# log(1 + x) = x - x^2/2 + x^3 P(x)/Q(x) up to sqrt(2) - 1, after Cephes
_LOG1P_SMALL = 0.41421356237309504880
_LOG1P_NUMERATOR = (
    2.0039553499201281259648e1, 5.7112963590585538103336e1, 6.0949667980987787057556e1,
    2.9911919328553073277375e1, 6.5787325942061044846969e0, 4.9854102823193375972212e-1,
    4.5270000862445199635215e-5,
)  # fmt: skip
_LOG1P_DENOMINATOR = (
    6.0118660497603843919306e1, 2.1642788614495947685003e2, 3.0909872225312059774938e2,
    2.2176239823732856465394e2, 8.3047565967967209469434e1, 1.5062909083473192043167e1, 1.0,
)  # fmt: skip
# (log(1 + f) - f + f^2/2) / f^3, as three polynomials in f^3
_LOG_TAIL_32 = (
    (1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2),
    (-1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1),
    (3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1),
)


def _split(x: Term) -> tuple[Term, Term]:
    """m - 1 and e with x = m 2^e and m between the roots of 1/2 and 2; for normal numbers."""
    format_ = _FORMATS[x.lane.width]
    offset = x.bits() - format_.root_half
    mantissa = (offset & ((1 << format_.mantissa) - 1)) + format_.root_half
    return mantissa.as_float() - 1.0, (offset >> format_.mantissa).to_float()


def _split_any(x: Term) -> tuple[Term, Term]:
    """The same, for denormal numbers too."""
    format_ = _FORMATS[x.lane.width]
    scale = format_.mantissa + 1
    is_denormal = x < format_.smallest_normal
    f, exponent = _split(is_denormal.select(x * 2.0**scale, x))
    return f, is_denormal.select(exponent - float(scale), exponent)


def log(x: Term) -> Term:
    """The natural logarithm; 1.2 ulp in f32, 1 in f64."""
    f, exponent = _split_any(x)
    return _limits(x, (_log_32 if x.lane.width == 32 else _log_64)(f, exponent))


def _limits(x: Term, y: Term) -> Term:
    """y = log(x), put right for zero, negative numbers, infinity and NaN."""
    y = (x < float("inf")).select(y, x)
    outside = x.equals(0.0).select(float("-inf"), x.like(float("nan")))
    return (x <= 0.0).select(outside, y)


def _limits_in_512(x: Term, y: Term) -> Term:
    return limits_in_512("log", _limits, 0x03530422, x, y)


def log_in_512(x: Term) -> Term:
    """The same as `log` in f32, where AVX-512 puts its limits right."""
    return _limits_in_512(x, _log_32(*_split(x)))


def log1p_in_512(x: Term) -> Term:
    """The same as `log1p` in f32, where AVX-512 puts its limits right."""
    return _log1p_32(x, _limits_in_512)


def _log_32(f: Term, exponent: Term) -> Term:
    format_ = _FORMATS[32]
    square = f * f
    cube = square * f
    high, middle, low = (polynomial(f, part) for part in _LOG_TAIL_32)
    y = fma(cube, fma(cube, high, middle), low)
    y = fma(cube, y, exponent * format_.ln2_low)
    return fma(exponent, format_.ln2_high, fma(square, -0.5, f) + y)


def _log_64(f: Term, exponent: Term) -> Term:
    format_ = _FORMATS[64]
    # log(1 + f) = 2 artanh(s), written so that f itself is added last and exactly
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    tail = polynomial(z, _ARTANH_TAIL_64) * z
    low = fma(s, half_square + tail, exponent * format_.ln2_low)
    return fma(exponent, format_.ln2_high, f - (half_square - low))


def log1p(x: Term) -> Term:
    """log(1 + x), also for small x; 2.5 ulp in f32, 2 in f64."""
    return _log1p_32(x) if x.lane.width == 32 else _log1p_64(x)


def _log1p_32(x: Term, limits: Callable[[Term, Term], Term] = _limits) -> Term:
    one_more = x + 1.0
    large = limits(one_more, _log_32(*_split(one_more)))
    square = x * x
    ratio = polynomial(x, _LOG1P_NUMERATOR) / polynomial(x, _LOG1P_DENOMINATOR)
    small = x + fma(square, -0.5, (x * square) * ratio)
    return (x.magnitude() < _LOG1P_SMALL).select(small, large)


def _log1p_64(x: Term) -> Term:
    one_more = x + 1.0
    lost = (x - (one_more - 1.0)) / one_more
    rounded = log(one_more)
    is_finite = (one_more > 0.0) & (x < float("inf"))
    return is_finite.select(rounded + lost, rounded).with_sign_of(x)
