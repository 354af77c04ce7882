"""Where arrays are put together from parts: the boundaries of concatenations and pads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import lcm, prod
from typing import NamedTuple

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import ints, made_by

_LEAST_ROW = 8  # code: elements of parts that lie side by side, on average
_MOST_COLUMNS = 8  # code: of an array that is put together from columns, each of which is done in vectors
MOST_BOXES = 128  # code: that one op is cut into: each is a loop nest, and 3 ** 5 are compiled for half a minute


class Boundaries(NamedTuple):
    """Where along a dimension parts begin, 0 apart; of `step` elements each is another part's."""

    at: frozenset[int]
    step: int = 1


class Rotation(NamedTuple):
    """An array of which indices along a dimension begin at a place and go on from the first after the last."""

    operand: ir.Value
    dim: int
    begin: int


_NO_BOUNDARIES = Boundaries(frozenset())
Cuts = dict[int, Boundaries]
"""The boundaries of each dimension that has any."""


def cuts_of(op: ir.Operation) -> Cuts | None:
    """The boundaries of an op's result; None if it is not put together from boxes, or from very many, or from
    boxes whose rows are shorter than what it takes to begin one. What is put together along the last
    dimension from a few columns, or padded between its elements, has a boundary between any two of them
    (`linalg-compute-columns`)."""
    if op.name == "stablehlo.concatenate":
        dim = ir.IntegerAttr(op.attributes["dimension"]).value
        if _is_interleaved(op, dim) and not has_columns(op):
            return None
        ends = accumulate(operand.type.shape[dim] for operand in op.operands)
        return _within(op, {dim: Boundaries(frozenset(ends))})
    return _cuts_of_pad(op) if op.name == "stablehlo.pad" else None


def rotation_of(op: ir.Operation) -> Rotation | None:
    """What a concatenation of both parts of an array, the last one first, turns by how much."""
    if op.name != "stablehlo.concatenate" or len(op.operands) != 2:
        return None
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    last, first = (made_by(operand, "stablehlo.slice") for operand in op.operands)
    if last is None or first is None:
        return None
    of = last.operands[0]
    if first.operands[0] != of or of.type != op.results[0].type:
        return None
    begin, end = ints(last, "start_indices")[dim], ints(last, "limit_indices")[dim]
    is_all = end == of.type.shape[dim] and ints(first, "limit_indices")[dim] == begin
    return Rotation(of, dim, begin) if is_all and not any(ints(first, "start_indices")) else None


def _cuts_of_pad(pad: ir.Operation) -> Cuts | None:
    lows = ints(pad, "edge_padding_low")
    if min([*lows, *ints(pad, "edge_padding_high")], default=0) < 0:
        return None
    before, after = pad.operands[0].type.shape, pad.results[0].type.shape
    found: Cuts = {}
    for dim, (low, gap) in enumerate(zip(lows, ints(pad, "interior_padding"), strict=True)):
        size, step = before[dim], gap + 1
        if step == 1 or size < 2:
            found[dim] = Boundaries(frozenset((low, low + size)))
            continue
        if dim == len(before) - 1 and (step > _MOST_COLUMNS or not _is_of_vectors(pad)):
            return None
        begin = low - low % step
        steps = size if begin + size * step <= after[dim] else size - 1
        found[dim] = Boundaries(frozenset((begin, begin + steps * step)), step)
    return _within(pad, found)


def joined(first: Cuts, second: Cuts) -> Cuts:
    """The boundaries of both."""
    found = dict(first)
    for dim, boundaries in second.items():
        known = first.get(dim, _NO_BOUNDARIES)
        found[dim] = Boundaries(known.at | boundaries.at, lcm(known.step, boundaries.step))
    return found


def moved(cuts: Cuts, by: Sequence[int]) -> Cuts | None:
    """The boundaries of a part, in the array in which it begins there; None where parts are side by side element by
    element."""
    if any(boundaries.step > 1 or boundaries.at >= {1, 2} for boundaries in cuts.values()):
        return None
    return {dim: Boundaries(frozenset(by[dim] + at for at in boundaries.at)) for dim, boundaries in cuts.items()}


def parts(cuts: Cuts) -> int:
    """How many boxes an array is cut into."""
    return prod((len(boundaries.at) + 1) * boundaries.step for boundaries in cuts.values())


def _is_interleaved(concatenate: ir.Operation, dim: int) -> bool:
    shape = concatenate.results[0].type.shape
    count = len(concatenate.operands)
    return dim == len(shape) - 1 > 0 and count > 1 and shape[dim] < _LEAST_ROW * count


def has_columns(op: ir.Operation) -> bool:
    """Whether rows of the result are few elements, of a type that vectors are made of."""
    *rows, columns = op.results[0].type.shape
    return prod(rows) > 1 and columns <= _MOST_COLUMNS and _is_of_vectors(op)


def _is_of_vectors(op: ir.Operation) -> bool:
    return getattr(op.results[0].type.element_type, "width", 0) >= 8


def _within(op: ir.Operation, cuts: Cuts) -> Cuts | None:
    shape = op.results[0].type.shape
    found = {
        dim: Boundaries(frozenset(at for at in boundaries.at if 0 < at < shape[dim]), boundaries.step)
        for dim, boundaries in cuts.items()
    }
    last = len(shape) - 1
    if found.get(last, _NO_BOUNDARIES) != _NO_BOUNDARIES and has_columns(op):
        found[last] = Boundaries(frozenset(range(1, shape[last])))
    found = {dim: boundaries for dim, boundaries in found.items() if boundaries != _NO_BOUNDARIES}
    return found if parts(found) <= MOST_BOXES else None
