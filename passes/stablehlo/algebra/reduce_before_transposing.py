"""Reduce arrays as they lie in memory, and transpose what is left of them.

    %0 = stablehlo.transpose %x, dims = [1, 0]        %0 = stablehlo.multiply %x, %x
    %1 = stablehlo.multiply %0, %0               ->   %1 = stablehlo.reduce %0 across dimensions = [0]
    %2 = stablehlo.reduce %1 across dimensions = [1]

A reduction that reads an array turned strides through it, each element a cache line of its own, or lays it
out first. Looks through element-wise ops that nobody else reads, up to arrays that are all turned in one
way, to what is repeated, and to counts. Leaves alone what is also read as it lies, what others read turned (a
softmax is one kernel), and reductions that leave more than a fourth of an array, where that would have to be
turned. What reads some arrays turned and others not, and leaves one element, is reduced along rows first: those
are read by tiles.

example: test/passes/stablehlo/algebra/reduce_before_transposing.mlir
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.algebra.reduce_further import reducer_in_steps
from lamina.passes.stablehlo.analysis.facts import defining, ints, made_by, size_of, splat_of
from lamina.passes.stablehlo.canonicalize.raise_views import ops_above
from lamina.passes.stablehlo.canonicalize.rewriting import replace
from lamina.passes.stablehlo.canonicalize.rules.reshaped import reduced

_TRANSPOSE, _BROADCAST, _IOTA = (f"stablehlo.{name}" for name in ("transpose", "broadcast_in_dim", "iota"))
_LEAST_LESS = 4  # rounding
_LEAST_ROW = 16  # rounding


class ReduceBeforeTransposing(Pass):
    """The pass `stablehlo-reduce-before-transposing`."""

    only_with = frozenset(("stablehlo.transpose",))

    def run(self, module: ir.Module) -> None:
        turned = {tuple(shape_of(op.result.type)) for op in find_ops(module, _TRANSPOSE)}
        for op in find_ops(module, "stablehlo.reduce"):
            if tuple(shape_of(op.operands[0].type)) not in turned:
                continue
            arrays = list(op.operands)[: len(op.results)]
            above = ops_above(arrays, op.block)
            if above is None:
                continue
            order = _common_order(above[1], {op, *above[0]})
            with ir.InsertionPoint(op), op.location:
                if order is not None and _pays(op, order):
                    results = _reduced(op, *above, order)
                elif order is None and _reads_both_ways(op, above[1]):
                    results = [_rows_first(op)]
                else:
                    continue
            replace(op, results)
            self.count("reductions")


def _common_order(leaves: list[ir.Value], readers: set[ir.Operation]) -> list[int] | None:
    """Which dimension in memory each one is of all arrays, where these are turned, in one way, for these
    readers alone."""
    order = None
    for leaf in leaves:
        turned = made_by(leaf, _TRANSPOSE)
        if turned is None:
            maker = defining(leaf)
            if splat_of(leaf) is None and (maker is None or maker.name not in (_BROADCAST, _IOTA)):
                return None
            continue
        permutation = ints(turned, "permutation")
        if order not in (None, permutation) or any(use.owner.operation not in readers for use in leaf.uses):
            return None
        order = permutation
    return order


def _reads_both_ways(op: ir.Operation, leaves: list[ir.Value]) -> bool:
    """Whether a reduction of all elements, that may be done in two steps, reads arrays turned and others not."""
    shape = shape_of(op.operands[0].type)
    return (
        1 < len(shape) == len(ints(op, "dimensions"))
        and shape[-1] >= _LEAST_ROW
        and any(made_by(leaf, _TRANSPOSE) is not None for leaf in leaves)
        and reducer_in_steps(op) is not None
    )


def _rows_first(op: ir.Operation) -> ir.Value:
    """A reduction of all elements along rows, and then of what that leaves."""
    last = len(op.operands[0].type.shape) - 1
    copy = op.clone().operation  # its body is taken
    rows = reduced(copy, op.operands[0], [last])
    copy.erase()
    return reduced(op, rows, range(last))


def _left(op: ir.Operation, order: list[int]) -> list[int]:
    """The dimensions in memory that a reduction leaves, as its results have them."""
    along = ints(op, "dimensions")
    return [place for d, place in enumerate(order) if d not in along]


def _pays(op: ir.Operation, order: list[int]) -> bool:
    left = _left(op, order)
    return left == sorted(left) or size_of(op.operands[0].type) >= _LEAST_LESS * size_of(op.results[0].type)


def _reduced(
    op: ir.Operation, members: list[ir.Operation], leaves: list[ir.Value], order: list[int]
) -> list[ir.Value]:
    """What a reduction makes of arrays as they lie in memory, turned."""
    count = len(op.results)
    shape = [0] * len(order)
    for size, place in zip(shape_of(op.operands[0].type), order, strict=True):
        shape[place] = size
    now = {leaf: _before(leaf, shape, order) for leaf in leaves}
    for member in members:
        of = ir.RankedTensorType.get(shape, member.results[0].type.element_type)
        operands = [now.get(value, value) for value in member.operands]
        now[member.results[0]] = remade(member, [of], operands).result
    left = _left(op, order)
    sizes = [shape[place] for place in sorted(left)]
    types = [ir.RankedTensorType.get(sizes, result.type.element_type) for result in op.results]
    along = ir.DenseI64ArrayAttr.get(sorted(order[d] for d in ints(op, "dimensions")))
    operands = [now[value] for value in list(op.operands)[:count]] + list(op.operands)[count:]
    copy = remade(op, types, operands, regions=1, dimensions=along)
    op.regions[0].blocks[0].append_to(copy.regions[0])
    if left == sorted(left):
        return list(copy.results)
    return [hlo.transpose(result, [sorted(left).index(place) for place in left]) for result in copy.results]


def _before(leaf: ir.Value, shape: Sequence[int], order: list[int]) -> ir.Value:
    """An array as it is before it is turned."""
    if not leaf.type.shape:
        return leaf
    splat = splat_of(leaf)
    if splat is not None:
        return hlo.full(splat, shape, dtype_of(leaf.type))
    maker = defining(leaf)
    assert maker is not None
    if maker.name == _TRANSPOSE:
        return maker.operands[0]
    if maker.name == _IOTA:
        return hlo.iota(shape, dtype_of(leaf.type), order[maker.attributes["iota_dimension"].value])
    dims = [order[d] for d in ints(maker, "broadcast_dimensions")]
    return hlo.broadcast_in_dim(maker.operands[0], shape, dims)
