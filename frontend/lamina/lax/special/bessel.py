"""The modified Bessel functions I0 and I1, scaled by exp(-|x|)."""

from __future__ import annotations

from typing import Any

from lamina import lax
from lamina.core import Primitive
from lamina.core.array_class import Array
from lamina.lax.checks import FLOAT, scalar_like
from lamina.lax.elementwise_rules import elementwise
from lamina.lax.special.program import chebyshev, program, where

# Chebyshev series, computed with mpmath: of exp(-x) I0(x) on [0, 8] in x/4 - 1, and of
# sqrt(x) exp(-x) I0(x) on [8, inf] in 16/x - 1; of exp(-x) I1(x) / x and sqrt(x) exp(-x) I1(x).
_I0_NEAR = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13,
    7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16,
    3.3307945188222384e-17, -4.4153416464793395e-18, 5.669178006921496e-19,
)  # fmt: skip
_I0_FAR = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11,
    -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15,
    -3.425485619677219e-16, -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17,
    -4.830504485944182e-18, -7.233180487874754e-18, 9.92147541217369e-19, 1.1936508908459817e-18,
)  # fmt: skip
_I1_NEAR = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499,
    0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532,
    0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05,
    3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08,
    9.381537386495773e-09, -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14,
    7.600684294735406e-15, -1.1055969477353864e-15, 1.5536319577362018e-16, -2.1114212143581583e-17,
    2.777914112760966e-18, -3.5415817725403253e-19,
)  # fmt: skip
_I1_FAR = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.814403072437008e-15, -1.8803547755107825e-15, 3.308202310920928e-16,
    2.96262899764595e-16, -3.2095259219934275e-17, -4.6503053684893555e-17, 4.414348323071436e-18,
    7.517296310841796e-18, -9.314178867326742e-19, -1.24219327519515e-18,
)  # fmt: skip


def bessel_i0e(x: Any) -> Array:
    """exp(-|x|) I0(x).

    x  an array of floats, of any shape.

    >>> print(lamina.lax.bessel_i0e(jnp.array([0.25, 0.5])).round(3))
    [0.791 0.645]
    """
    return bessel_i0e_p.bind(x)


def bessel_i1e(x: Any) -> Array:
    """exp(-|x|) I1(x).

    x  an array of floats, of any shape.

    >>> print(lamina.lax.bessel_i1e(jnp.array([0.25, 0.5])).round(3))
    [0.098 0.156]
    """
    return bessel_i1e_p.bind(x)


def _i0e(x: Any) -> Any:
    size, middle = lax.abs(x), scalar_like(x, 8)
    near = chebyshev(lax.min(size, middle) * 0.25 - 1.0, _I0_NEAR)
    large = lax.max(size, middle)
    far = chebyshev(16.0 / large - 1.0, _I0_FAR) * lax.rsqrt(large)
    return where(size <= 8.0, near, far)


def _i1e(x: Any) -> Any:
    size, middle = lax.abs(x), scalar_like(x, 8)
    near = x * chebyshev(lax.min(size, middle) * 0.25 - 1.0, _I1_NEAR)
    large = lax.max(size, middle)
    far = lax.sign(x) * chebyshev(16.0 / large - 1.0, _I1_FAR) * lax.rsqrt(large)
    return where(size <= 8.0, near, far)


def _i1e_derivative(ans: Any, x: Any) -> Any:
    """I1' = I0 - I1 / x, whose limit at 0 is 1/2, and the factor's."""
    one, zero = scalar_like(x, 1), scalar_like(x, 0)
    at_zero = lax.eq(x, lax.full_like(x, zero))
    divisor = lax.select(at_zero, lax.full_like(x, one), x)
    slope = lax.sub(bessel_i0e(x), lax.mul(ans, lax.add(lax.sign(x), lax.div(one, divisor))))
    return lax.select(at_zero, lax.full_like(x, scalar_like(x, 0.5)), slope)


bessel_i0e_p: Primitive = elementwise(
    "bessel_i0e", program(_i0e, stable=True), FLOAT,
    derivatives=[
        lambda g, ans, x: lax.mul(g, lax.sub(bessel_i1e(x), lax.mul(lax.sign(x), ans))),
    ],
)  # fmt: skip
bessel_i1e_p: Primitive = elementwise(
    "bessel_i1e", program(_i1e, stable=True), FLOAT,
    derivatives=[lambda g, ans, x: lax.mul(g, _i1e_derivative(ans, x))],
)  # fmt: skip
