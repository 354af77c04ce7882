"""Functions of |x| in f32 by pieces: 32 short polynomials whose coefficients stand in registers.

A piece is a quarter of an octave, told by the last bits of the exponent and the first two of the
mantissa; the lowest octave is one piece with all that is smaller. The centre of a piece lies where the
function is within 1/60 ulp of an f32.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.passes.math.lookups import ENTRIES, lookup
from lamina.passes.math.terms import Term, fma

_PIECE_BITS = 21  # of an f32 come after those that tell the piece
_LOWEST = 2.0**-4
_FIRST = (127 - 4) << 2  # piece of _LOWEST

Row = tuple[float, ...]


def by_pieces(name: str, rows: Sequence[Row], size: Term) -> Term:
    """The polynomial of the piece that a number of at least 0 and below 16 lies in.

    A row is a centre c and the coefficients of t = size - c, from the constant upwards. The first row
    holds below 1/8, the others for the quarters of octaves from there; the last for all that follow.
    """
    place = (size < _LOWEST).select(_LOWEST, size).bits() >> _PIECE_BITS
    columns = list(zip(*_in_places(rows), strict=True))
    centre, *coefficients = (
        lookup(f"{name}_{i}", column, place) for i, column in enumerate(columns)
    )
    t = size - centre
    *rest, total = coefficients
    for coefficient in reversed(rest):
        total = fma(t, total, coefficient)
    return total


def _in_places(rows: Sequence[Row]) -> list[Row]:
    """The row of each piece, where its number's last five bits are."""
    first, *others = rows
    pieces = [first] * 4 + list(others)
    pieces += pieces[-1:] * (ENTRIES - len(pieces))
    return [pieces[(place - _FIRST) % ENTRIES] for place in range(ENTRIES)]
