"""Lower `stablehlo.sort` to a merge sort with the comparator inlined.

Each row along the sorted dimension is copied to a buffer of two halves, merged back and forth
between them in runs of 1, 2, 4, ... elements, and copied out. All operands move together. An
element of the right run is taken only when the comparator puts it strictly first, so the sort is
stable whether or not that was asked for, and its result is defined (and the loops bounded) for any
comparator at all.

example: test/passes/stablehlo/lower/lower_sort.mlir
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import arith, ir, tensor
from lamina.passes.emit.loops import (
    cast,
    extract,
    for_each,
    for_range,
    if_else,
    index,
    inline_scalar_region,
    insert,
    load,
    replace_each,
    store,
    with_signless_elements,
)
from lamina.passes.framework.base import Pass


class LowerSort(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        self.count("lowered", replace_each(module, "stablehlo.sort", _lower))


def _lower(op: ir.Operation) -> list[ir.Value]:
    operands = [with_signless_elements(operand) for operand in op.operands]
    shape = list(ir.RankedTensorType(operands[0].type).shape)
    dimension = (
        ir.IntegerAttr(op.attributes["dimension"]).value if "dimension" in op.attributes else -1
    )
    dimension %= len(shape)
    length = shape[dimension]
    elements = [ir.RankedTensorType(operand.type).element_type for operand in operands]
    buffers = [
        ir.Operation.create(
            "memref.alloc",
            results=[ir.MemRefType.get([2, length], element)],
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
        ).result
        for element in elements
    ]
    merge_passes = max(length - 1, 0).bit_length()

    def sort_row(outer: list[ir.Value], results: list[ir.Value]) -> Sequence[ir.Value]:
        def place(position: ir.Value) -> list[ir.Value]:
            return [*outer[:dimension], position, *outer[dimension:]]

        def fill(position: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            for operand, buffer in zip(operands, buffers, strict=True):
                store(extract(operand, place(position)), buffer, [index(0), position])
            return []

        def drain(position: ir.Value, values: list[ir.Value]) -> Sequence[ir.Value]:
            sorted_half = index(merge_passes % 2)
            return [
                insert(load(buffer, [sorted_half, position]), value, place(position))
                for buffer, value in zip(buffers, values, strict=True)
            ]

        for_range(index(0), index(length), [], fill)
        _merge_sort(op.regions[0].blocks[0], buffers, length, merge_passes, list(op.operands))
        return for_range(index(0), index(length), results, drain)

    empty = [tensor.EmptyOp(shape, element).result for element in elements]
    sorted_ = for_each([n for d, n in enumerate(shape) if d != dimension], empty, sort_row)
    return [cast(value, result.type) for value, result in zip(sorted_, op.results, strict=True)]


def _merge_sort(
    comparator: ir.Block,
    buffers: Sequence[ir.Value],
    length: int,
    passes: int,
    operands: Sequence[ir.Value],
) -> None:
    """Sort the first `length` elements of the first half of each buffer; they end in half `passes %
    2`."""
    if not passes:
        return

    def one_pass(number: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
        source = arith.AndIOp(number, index(1)).result
        target = arith.XOrIOp(source, index(1)).result
        width = arith.ShLIOp(index(1), number).result
        pairs = arith.CeilDivUIOp(index(length), arith.ShLIOp(width, index(1)).result).result

        def one_pair(pair: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            low = arith.MulIOp(arith.MulIOp(pair, width).result, index(2)).result
            middle = arith.MinUIOp(arith.AddIOp(low, width).result, index(length)).result
            high = arith.MinUIOp(arith.AddIOp(middle, width).result, index(length)).result

            def take(position: ir.Value, heads: list[ir.Value]) -> Sequence[ir.Value]:
                left, right = heads
                from_right = _right_first(
                    comparator, buffers, operands, source, (left, middle), (right, high)
                )
                head = arith.SelectOp(from_right, right, left).result
                for buffer in buffers:
                    store(load(buffer, [source, head]), buffer, [target, position])
                step = arith.IndexCastUIOp(ir.IndexType.get(), from_right).result
                rest = arith.SubIOp(index(1), step).result
                return [arith.AddIOp(left, rest).result, arith.AddIOp(right, step).result]

            for_range(low, high, [low, middle], take)
            return []

        for_range(index(0), pairs, [], one_pair)
        return []

    for_range(index(0), index(passes), [], one_pass)


def _right_first(
    comparator: ir.Block,
    buffers: Sequence[ir.Value],
    operands: Sequence[ir.Value],
    source: ir.Value,
    left: tuple[ir.Value, ir.Value],
    right: tuple[ir.Value, ir.Value],
) -> ir.Value:
    """Whether the next element comes from the right run; each run is (head, end)."""
    bit = ir.IntegerType.get_signless(1)

    def compare() -> Sequence[ir.Value]:
        arguments = []
        for buffer, operand in zip(buffers, operands, strict=True):
            element = ir.RankedTensorType(operand.type).element_type
            arguments += [cast(load(buffer, [source, head]), element) for head, _ in (right, left)]
        return inline_scalar_region(comparator, arguments)

    left_open = arith.CmpIOp(arith.CmpIPredicate.ult, *left).result
    right_open = arith.CmpIOp(arith.CmpIPredicate.ult, *right).result
    both = arith.AndIOp(left_open, right_open).result
    (first,) = if_else(both, compare, lambda: [right_open], [bit])
    return first
