"""Where arrays are put together from parts: the seams of concatenations and pads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from math import prod

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.facts import ints

_LEAST_ROW = 8  # elements of parts that lie side by side, on average
_MOST_COLUMNS = 8  # of an array that is put together from columns, each of which is done in vectors

Cuts = dict[int, frozenset[int]]
"""By dimension, the indices at which a part begins, 0 apart."""


def cuts_of(op: ir.Operation) -> Cuts | None:
    """The seams of an op's result; None if it is not put together from boxes, or from boxes whose rows
    are shorter than what it takes to begin one. What is put together along the last dimension from a few
    columns has a seam between any two of them (`linalg-compute-columns`)."""
    if op.name == "stablehlo.concatenate":
        dim = ir.IntegerAttr(op.attributes["dimension"]).value
        if _is_interleaved(op, dim) and not _has_columns(op):
            return None
        return _within(op, {dim: accumulate(operand.type.shape[dim] for operand in op.operands)})
    if op.name != "stablehlo.pad" or any(ints(op, "interior_padding")):
        return None
    lows = ints(op, "edge_padding_low")
    if min([*lows, *ints(op, "edge_padding_high")], default=0) < 0:
        return None
    ends = op.operands[0].type.shape
    return _within(op, {dim: (low, low + ends[dim]) for dim, low in enumerate(lows)})


def joined(first: Cuts, second: Cuts) -> Cuts:
    """The seams of both."""
    return first | {dim: first.get(dim, frozenset()) | cuts for dim, cuts in second.items()}


def parts(cuts: Cuts) -> int:
    """How many boxes an array is cut into."""
    return prod(len(of_dim) + 1 for of_dim in cuts.values())


def _is_interleaved(concatenate: ir.Operation, dim: int) -> bool:
    shape = concatenate.results[0].type.shape
    count = len(concatenate.operands)
    return dim == len(shape) - 1 > 0 and count > 1 and shape[dim] < _LEAST_ROW * count


def _has_columns(op: ir.Operation) -> bool:
    """Whether rows of the result are few elements, of a type that vectors are made of."""
    of = op.results[0].type
    *rows, columns = of.shape
    return prod(rows) > 1 and columns <= _MOST_COLUMNS and getattr(of.element_type, "width", 0) >= 8


def _within(op: ir.Operation, places: Mapping[int, Iterable[int]]) -> Cuts:
    shape = op.results[0].type.shape
    found = {dim: frozenset(c for c in cuts if 0 < c < shape[dim]) for dim, cuts in places.items()}
    last = len(shape) - 1
    if found.get(last) and _has_columns(op):
        found[last] = frozenset(range(1, shape[last]))
    return {dim: cuts for dim, cuts in found.items() if cuts}
