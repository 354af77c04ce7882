"""Floor and ceiling where the machine takes denormals for zero.

The processor's own rounding does the work; with denormals-are-zero set it misses only numbers
between zero and the least normal one, which are told by their bits.
"""

from __future__ import annotations

from lamina.passes.math.terms import Term

_MANTISSA_BITS = {32: 23, 64: 52}


def floor(x: Term) -> Term:
    """The integer at or below x; -1 for negative denormals."""
    return _is_denormal(x, negative=True).select(-1.0, x.rounded_down())


def ceil(x: Term) -> Term:
    """The integer at or above x; 1 for positive denormals."""
    return _is_denormal(x, negative=False).select(1.0, x.rounded_up())


def _is_denormal(x: Term, negative: bool) -> Term:
    """Whether x is a denormal of this sign: its bits lie between those of zero and 2^-126."""
    least_normal = 1 << _MANTISSA_BITS[x.lane.width]
    first = 1 + (negative << x.lane.width - 1)
    return (x.bits() - first).compare("u<", least_normal - 1)
