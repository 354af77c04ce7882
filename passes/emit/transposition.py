"""Squares of elements transposed in vectors, by shuffles that processors do without a vector of indices.

Registers of x86 are made of lanes of 128 bits, and what stays in lanes, or moves whole ones, is an instruction with
its order inside. So squares are transposed within lanes first, by log2(elements of a lane) rounds of unpacking, then
the lanes are. Other orders take as many shuffles, but each by indices in a register.

LLVM tries to merge each shuffle with all that lead to it, a tree as deep as there are rounds. It finds nothing, and
for 16 x 16 elements that is two thirds of code generation. So it is not shown the first rounds from the others:
`fence` is a value that is the same and that LLVM does not look through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

V = TypeVar("V")
Shuffle = Callable[[V, V, list[int]], V]
"""Elements of two vectors by their numbers; those of the second follow on those of the first."""

LANE_BYTES = 16  # shape


def transposed(rows: Sequence[V], lane: int, shuffle: Shuffle[V], fence: Callable[[V], V]) -> list[V]:
    """The columns of as many rows as each has elements, a power of two; `lane` elements make a lane."""
    count = len(rows)
    lane = min(lane, count)
    groups = [transposed_in_lanes(rows[at : at + lane], lane, count, shuffle) for at in range(0, count, lane)]
    if 1 < lane < count:
        groups = [[fence(row) for row in group] for group in groups]
    by_place = [_lanes_transposed(list(group), lane, count, shuffle) for group in zip(*groups, strict=True)]
    return [column for columns in zip(*by_place, strict=True) for column in columns]


def transposed_in_lanes(rows: Sequence[V], lane: int, count: int, shuffle: Shuffle[V]) -> list[V]:
    """In each lane of `lane` vectors of `count` elements, the square of what lies there transposed."""
    return _unpacked(list(rows), 1, lane, count, shuffle)


def _unpacked(rows: list[V], unit: int, lane: int, count: int, shuffle: Shuffle[V]) -> list[V]:
    if len(rows) == 1:
        return rows
    columns = []
    for half in (0, lane // 2):
        picks = [
            which + begin + half + at + place
            for begin in range(0, count, lane)
            for at in range(0, lane // 2, unit)
            for which in (0, count)
            for place in range(unit)
        ]
        pairs = zip(rows[::2], rows[1::2], strict=True)
        columns += _unpacked([shuffle(a, b, picks) for a, b in pairs], 2 * unit, lane, count, shuffle)
    return columns


def _lanes_transposed(vectors: list[V], lane: int, count: int, shuffle: Shuffle[V]) -> list[V]:
    """The same of whole lanes, of which each vector has as many as there are vectors."""
    if len(vectors) == 1:
        return vectors
    found = []
    for parity in (0, lane):
        picks = [
            which + begin + place
            for which in (0, count)
            for begin in range(parity, count, 2 * lane)
            for place in range(lane)
        ]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        found.append(_lanes_transposed([shuffle(a, b, picks) for a, b in pairs], lane, count, shuffle))
    return [vector for pair in zip(*found, strict=True) for vector in pair]
