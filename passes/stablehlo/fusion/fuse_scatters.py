"""Which ops a scatter of `stablehlo-fuse` does itself, one element after the other, where it needs its
indices and updates: a few cheap ones on one array, which is then read in place of their result."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lamina.dialects.vendors import stablehlo_ext
from lamina.passes.stablehlo.analysis.facts import CONSTANT
from lamina.passes.stablehlo.fusion.fuse_ops import Seen, SeenValue, is_free, is_in_memory
from lamina.passes.stablehlo.lower.scatter_copies import ScatterCopies

_MOST_OPS = 8  # code: before the indices, or the updates


def done_one_by_one(op: Seen, block: Sequence[Seen]) -> frozenset[Seen]:
    """The ops of a block that an update may do: none, if it is no scatter or needs elements twice."""
    if op.name != "stablehlo.scatter" or len(op.results) != 1 or not _needs_each_once(op):
        return frozenset()
    _, indices, updates = op.operands
    return _before(indices, block) | _before(updates, block)


def _needs_each_once(op: Seen) -> bool:
    """Whether a scatter is of windows, or by tasks that have copies of the elements. Else tasks look at
    all indices, and take longer for each than vectors do."""
    numbers = stablehlo_ext.ScatterDimensionNumbers(op.op.attributes["scatter_dimension_numbers"])
    window = prod(op.operands[2].shape[dim] for dim in numbers.update_window_dims)
    return window > 1 or ScatterCopies.of(op.op) is not None


def _before(value: SeenValue, block: Sequence[Seen]) -> frozenset[Seen]:
    """The most cheap ops that make a value of one array that is in memory anyway, or of none."""
    found: list[Seen] = []
    free: list[Seen] = []
    most: frozenset[Seen] = frozenset()
    open_ = {value}
    while len(found) < _MOST_OPS:
        # Users come after what they use: the last is that of nobody else who is still to be found.
        last = max(open_, key=lambda v: -1 if v.maker is None else v.maker, default=None)
        if last is None or last.maker is None:
            break
        op = block[last.maker]
        if not (op.elementwise and op.cheap):
            break
        open_.remove(last)
        found.append(op)
        for operand in op.operands:
            if not operand.shape or is_free(operand, block):
                if operand.maker is not None and block[operand.maker].name != CONSTANT:
                    free.append(block[operand.maker])
            else:
                open_.add(operand)
        if len(open_) <= 1 and all(is_in_memory(v, block) for v in open_):
            most = frozenset((*found, *free))
    return most
