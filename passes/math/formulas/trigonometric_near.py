"""sin and cos of an f32 below 2^16 in f32, with tables that stand in registers of AVX-512.

x = n pi/16 + r, where r comes in two parts, and the sine and cosine of 32 angles are known:
sin x = S + C r + (S (cos r - 1) + C (sin r - r)). What rounding the sum of the first two leaves out is
added to the small rest. The angles are not quite multiples of pi/16 but lie where both the sine and
the cosine happen to be within 1/50 ulp of an f32, so that one number each is enough (the idea is
Gal's, "An accurate elementary mathematical library", 1991). All f32 below 2^16 have been tried:
0.534 ulp.
"""

from __future__ import annotations

from lamina.passes.math.lookups import lookup
from lamina.passes.math.terms import Term, fma, polynomial

LIMIT = 2.0**16

_PER_STEP = 5.092958178940651  # 16/pi
_STEP = (0.19634954631328583, -5.463923535842241e-09, -2.1439056375073523e-16)  # pi/16
_SHIFTER = 1.5 * 2.0**23
# (sin r - r) / r^3 and (cos r - 1) / r^2 in r^2, up to pi/32
_SIN_TAIL = (-0.16666666, 0.00833059)
_COS_TAIL = (-0.5, 0.04165435)

# What angle k lies beyond k pi/16, in units of 2^-27; its sine, and its cosine.
_ANGLES = (
    (-636, 0.19508567452430725, 0.9807862043380737),
    (-659, 0.38267889618873596, 0.9238814115524292),
    (1041, 0.5555766820907593, 0.8314653038978577),
    (24019, 0.7072333097457886, 0.7069802284240723),
    (-1041, 0.8314653038978577, 0.5555766820907593),
    (659, 0.9238814115524292, 0.38267889618873596),
    (636, 0.9807862043380737, 0.19508567452430725),
)


def _tables() -> tuple[list[float], ...]:
    """What each of 32 angles lies beyond n pi/16, its sine and its cosine; odd and even in n."""
    quarter = [(0, 0.0, 1.0), *_ANGLES, (0, 1.0, 0.0)]
    half = quarter + [(-beyond, sin, -cos) for beyond, sin, cos in quarter[7::-1]]
    turn = half + [(-beyond, -sin, cos) for beyond, sin, cos in half[15:0:-1]]
    beyond, sines, cosines = zip(*turn, strict=True)
    return [number * 2.0**-27 for number in beyond], list(sines), list(cosines)


_BEYOND, _SINES, _COSINES = _tables()


def _parts(x: Term) -> tuple[Term, Term, Term, Term, Term]:
    """The sine and the cosine of the angle next to x; r; what sin r is more; cos r - 1."""
    shifted = fma(x, _PER_STEP, _SHIFTER)
    n, at = shifted - _SHIFTER, shifted.bits()
    # All bits of this are multiples of 2^-27, and it is less than 1/8: nothing is rounded.
    rest = fma(n, -_STEP[0], x) - lookup("angles_beyond", _BEYOND, at)
    r = rest - n * _STEP[1]
    low = fma(n, -_STEP[2], fma(n, -_STEP[1], rest - r))
    square = r * r
    more = fma(r * square, polynomial(square, _SIN_TAIL), low)
    less = square * polynomial(square, _COS_TAIL)
    return lookup("angles_sin", _SINES, at), lookup("angles_cos", _COSINES, at), r, more, less


def sin(x: Term) -> Term:
    """The sine of an f32 below `LIMIT`; 0.534 ulp."""
    sine, cosine, r, more, less = _parts(x)
    large = fma(cosine, r, sine)
    lost = fma(cosine, r, -(large - sine))
    result = large + fma(sine, less, fma(cosine, more, lost))
    return x.compare("!=", 0.0).select(result, x)  # the sum has lost the sign of zero


def cos(x: Term) -> Term:
    """The cosine of an f32 below `LIMIT`; 0.534 ulp."""
    sine, cosine, r, more, less = _parts(x)
    large = fma(-sine, r, cosine)
    lost = fma(-sine, r, -(large - cosine))
    return large + fma(cosine, less, fma(-sine, more, lost))
