"""Vectors made of the elements of several: transposed squares, rows interleaved into one and taken apart again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects.vendors import ir, vector
from lamina.passes.emit import transposition
from lamina.passes.emit.intrinsics import call_intrinsic
from lamina.passes.emit.transposition import LANE_BYTES


def transposed(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The columns of as many vectors as each has elements, a power of two."""
    lane = 8 * LANE_BYTES // ir.VectorType(rows[0].type).element_type.width
    return transposition.transposed(rows, lane, shuffled, _fenced)


def shuffled(a: ir.Value, b: ir.Value, picks: Sequence[int]) -> ir.Value:
    """Elements of two vectors by their numbers."""
    return vector.ShuffleOp(a, b, picks).result


def _fenced(vector_: ir.Value) -> ir.Value:
    """The same vector, which LLVM does not look through; it takes no instruction. (There is one of floats only.)"""
    if not isinstance(ir.VectorType(vector_.type).element_type, ir.FloatType):
        return vector_
    return call_intrinsic("llvm.arithmetic.fence", [vector_], vector_.type)


def interleaved(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Vectors that hold the first elements of all rows, then the second ones, and so on."""
    count = least_factor(len(rows))
    if count == len(rows):
        return _dealt(rows, lambda place: (place % count, place // count))
    parts = [interleaved(rows[first::count]) for first in range(count)]
    return [value for together in zip(*parts, strict=True) for value in interleaved(together)]


def deinterleaved(vectors: Sequence[ir.Value]) -> list[ir.Value]:
    """The rows that `interleaved` makes these vectors of."""
    count = least_factor(len(vectors))
    lanes = ir.VectorType(vectors[0].type).shape[0]
    if count == len(vectors):

        def found(place: int) -> tuple[int, int]:
            row, lane = divmod(place, lanes)
            return divmod(lane * count + row, lanes)

        return _dealt(vectors, found)
    groups = [deinterleaved(vectors[at : at + count]) for at in range(0, len(vectors), count)]
    parts = [deinterleaved(part) for part in zip(*groups, strict=True)]
    return [value for together in zip(*parts, strict=True) for value in together]


def _dealt(
    vectors: Sequence[ir.Value], found: Callable[[int], tuple[int, int]]
) -> list[ir.Value]:
    """As many vectors again, whose elements are where `found` says: in which vector, in which lane."""
    lanes = ir.VectorType(vectors[0].type).shape[0]
    results = []
    for first in range(0, len(vectors) * lanes, lanes):
        places = [found(first + lane) for lane in range(lanes)]
        made = vectors[0]
        for number in range(1, len(vectors)):
            before = [place for which, place in places] if number == 1 else range(lanes)
            mask = [
                lanes + place if which == number else before[lane] if which < number else lane
                for lane, (which, place) in enumerate(places)
            ]
            made = vector.ShuffleOp(made, vectors[number], mask).result
        results.append(made)
    return results


def least_factor(number: int) -> int:
    """The least factor of a number beside 1."""
    return next((n for n in range(2, number) if number % n == 0), number)
