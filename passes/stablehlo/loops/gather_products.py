"""Do products of what a loop reads before it, and sums of products of what it makes after it.

    while(%i, %h, %g) do {                      %xu = dot_general %xs, %u
      %x = %xs[%i]                              while(%i, %h, %ds) do {
      %p = dot_general %x, %u            ->       %p = %xu[%i]
      ...                                         ...
      %g' = add %g, dot_general %y, %d            %ds' = dynamic_update_slice %ds, %d, %i
    }                                           }
                                                %g' = add %g, dot_general %ys, %ds

where every step reads its own part of the arrays %xs and %ys. One product of matrices takes the
place of many with vectors, and the loop's body keeps what depends on the step before: of a recurrent
network the product with the inputs leaves its loop, of its gradient those that make the weights'.
A factor of a sum that is no such part is kept in a new array. Only where the arrays that are added
have no more than `most-bytes`, and nothing else reads the sum on the way; and for products of vectors
or of up to `most-rows` rows: those of more make better use of caches in the loop.

example: test/passes/stablehlo/loops/gather_products.mlir
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import byte_size, dtype_of, tensor_type
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import (
    DotNumbers,
    defining,
    has_one_use,
    made_by,
    size_of,
    splat_of,
)
from lamina.passes.stablehlo.loops.loop_slices import CountedLoop, Slice
from lamina.records import Record

_LEAST_STEPS = 8  # rounding
_ELEMENTS = ("f32", "f64")
_VIEWS = ("stablehlo.reshape", "stablehlo.dynamic_slice")


class GatherProducts(Pass):
    """The pass `stablehlo-gather-products`."""

    only_with = frozenset(("stablehlo.while",))

    most_bytes: int = REFERENCE.l3_bytes
    most_rows: int = 3  # rounding
    least_products: int = 256  # rounding

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.while"):
            loop = CountedLoop.of(op)
            if loop is None or loop.steps < _LEAST_STEPS:
                continue
            self.count("before", self._before(loop))
            self.count("after", self._after(loop))

    # ---- before --------------------------------------------------------------------------------
    def _before(self, loop: CountedLoop) -> int:
        count = 0
        for op in [inner.operation for inner in loop.body.operations]:
            if op.name == "stablehlo.dot_general" and self._is_worth_it(op):
                part = loop.slice_of(op.operands[0])
                if part is None or not loop.is_outside(op.operands[1]):
                    continue
                if size_of(op.operands[0].type) > self.most_rows * _terms(op):
                    continue
                if loop.steps * byte_size(op.results[0].type) <= self.most_bytes:
                    _do_before(loop, op, part)
                    count += 1
        return count

    def _is_worth_it(self, dot: ir.Operation) -> bool:
        elements = {str(v.type.element_type) for v in (*dot.operands, dot.results[0])}
        return (
            not DotNumbers.of(dot).lhs_batch
            and len(elements) == 1
            and elements <= set(_ELEMENTS)
            and size_of(dot.results[0].type) * _terms(dot) >= self.least_products
        )

    # ---- after ---------------------------------------------------------------------------------
    def _after(self, loop: CountedLoop) -> int:
        sums = [found for n in range(len(loop.op.operands)) if (found := self._sum(loop, n))]
        if sums:
            _do_after(loop, sums)
        return len(sums)

    def _sum(self, loop: CountedLoop, number: int) -> _Sum | None:
        block = loop.body
        argument = block.arguments[number]
        value = block.operations[len(block.operations) - 1].operands[number]
        add = made_by(value, "stablehlo.add")
        if add is None or not has_one_use(value) or not has_one_use(argument):
            return None
        if list(loop.op.regions[0].blocks[0].arguments[number].uses):
            return None
        terms = [operand for operand in add.operands if operand != argument]
        if len(terms) != 1:
            return None
        dot = made_by(terms[0], "stablehlo.dot_general")
        if dot is None or not has_one_use(terms[0]) or dot.block != block:
            return None
        if not self._is_worth_it(dot) or _terms(dot) > self.most_rows:
            return None
        if any(loop.is_outside(v) for v in dot.operands):
            return None
        slices = [loop.slice_of(operand) for operand in dot.operands]
        index = next((part.index for part in slices if part is not None), loop.counter)
        slices = [part if part is not None and part.index == index else None for part in slices]
        kept = [v for v, part in zip(dot.operands, slices, strict=True) if part is None]
        if sum(loop.steps * byte_size(v.type) for v in kept) > self.most_bytes:
            return None
        return _Sum(number, add, dot, slices, index)


class _Sum(Record):
    """One carried sum: its number, the ops that add to it, and for each factor what it is a slice
    of, or None where it has to be kept, at `index`."""

    number: int
    add: ir.Operation
    dot: ir.Operation
    slices: list[Slice | None]
    index: ir.Value


def _do_before(loop: CountedLoop, dot: ir.Operation, part: Slice) -> None:
    numbers = DotNumbers.of(dot)
    shape = list(dot.results[0].type.shape)
    with ir.InsertionPoint(loop.op), dot.location:
        products = _product(
            dot, part.array, dot.operands[1],
            replace(numbers, lhs_contracting=tuple(d + 1 for d in numbers.lhs_contracting)),
            [loop.steps, *shape],
        )  # fmt: skip
    with ir.InsertionPoint(dot), dot.location:
        zero = hlo.full(0, [], dtype_of(part.index.type))
        starts = [part.index, *([zero] * len(shape))]
        found = hlo.reshape(hlo.dynamic_slice(products, starts, [1, *shape]), shape)
    dot.results[0].replace_all_uses_with(found)
    _erase_unused(dot)


def _erase_unused(op: ir.Operation) -> None:
    """Erase an op that nothing uses, and of its factors' slices those that nothing else does."""
    work = [op]
    while work:
        at = work.pop()
        if any(list(result.uses) for result in at.results):
            continue
        makers = {defining(value) for value in at.operands} - {None}
        at.erase()
        work += [m for m in makers if m is not None and m.name in _VIEWS]


def _do_after(loop: CountedLoop, sums: list[_Sum]) -> None:
    """Rebuild the loop: factors that have to be kept are carried where the sums were."""
    old, body = loop.op, loop.body
    blocks = [region.blocks[0] for region in old.regions]
    kept: dict[tuple[ir.Value, ir.Value], int] = {}
    for found in sums:
        for value, part in zip(found.dot.operands, found.slices, strict=True):
            if part is None:
                kept.setdefault((value, found.index), len(kept))
    end = body.operations[len(body.operations) - 1].operation
    with ir.InsertionPoint(old), old.location:
        arrays = [
            hlo.full(0, [loop.steps, *value.type.shape], dtype_of(value.type)) for value, _ in kept
        ]
    for block in blocks:
        for array in arrays:
            block.add_argument(array.type, old.location)
    count = len(old.operands)
    with ir.InsertionPoint(end), old.location:
        updated = []
        for (value, index), number in kept.items():
            zero = hlo.full(0, [], dtype_of(index.type))
            starts = [index, *([zero] * len(value.type.shape))]
            row = hlo.reshape(value, [1, *value.type.shape])
            updated.append(
                hlo.dynamic_update_slice(body.arguments[count + number], row, starts)
            )
        gone = {found.number for found in sums}
        returned = [v for n, v in enumerate(end.operands) if n not in gone]
        ir.Operation.create("stablehlo.return", operands=[*returned, *updated])
    end.erase()
    stays = [n for n in range(count) if n not in gone]
    inits = [*(old.operands[n] for n in stays), *arrays]
    with ir.InsertionPoint(old), old.location:
        new = ir.Operation.create(
            "stablehlo.while",
            results=[v.type for v in inits],
            operands=inits,
            attributes={name: old.attributes[name] for name in old.attributes},
            regions=2,
        )
        for number, place in enumerate(stays):
            old.results[place].replace_all_uses_with(new.results[number])
        for found in sums:
            factors = [
                part.array if part is not None
                else new.results[len(stays) + kept[value, found.index]]
                for value, part in zip(found.dot.operands, found.slices, strict=True)
            ]  # fmt: skip
            total = _added_up(found, factors)
            initial = old.operands[found.number]
            if splat_of(initial) != 0:
                total = hlo.add(initial, total)
            old.results[found.number].replace_all_uses_with(total)
    for found in sums:
        found.add.erase()
        _erase_unused(found.dot)
    for block in blocks:
        for number in sorted(gone, reverse=True):
            block.erase_argument(number)
    for region, block in zip(new.regions, blocks, strict=True):
        block.append_to(region)
    old.erase()


def _added_up(found: _Sum, factors: list[ir.Value]) -> ir.Value:
    numbers = DotNumbers.of(found.dot)
    of = replace(
        numbers,
        lhs_contracting=(0, *(d + 1 for d in numbers.lhs_contracting)),
        rhs_contracting=(0, *(d + 1 for d in numbers.rhs_contracting)),
    )
    lhs, rhs = factors
    return _product(found.dot, lhs, rhs, of, list(found.dot.results[0].type.shape))


def _product(
    like: ir.Operation, lhs: ir.Value, rhs: ir.Value, numbers: DotNumbers, shape: list[int]
) -> ir.Value:
    attributes = {name: like.attributes[name] for name in like.attributes}
    attributes["dot_dimension_numbers"] = numbers.attribute()
    result = tensor_type(shape, dtype_of(like.results[0].type))
    return ir.Operation.create(
        "stablehlo.dot_general", results=[result], operands=[lhs, rhs], attributes=attributes
    ).result


def _terms(dot: ir.Operation) -> int:
    """How many products each of a result's elements is the sum of."""
    shape = dot.operands[0].type.shape
    return prod(shape[d] for d in DotNumbers.of(dot).lhs_contracting)
