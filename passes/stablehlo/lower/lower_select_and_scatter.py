"""Lower `stablehlo.select_and_scatter` to loops over its windows.

For each source element the operand's window is walked in row-major order; the selected element is
replaced by a later one when `select(selected, later)` is false, so the first of equal ones stays.
The source element is then combined into the result there. Positions in the padding are never
selected, and a window that lies wholly in the padding scatters nothing. Upstream's lowering is
wrong on ties.

example: test/passes/stablehlo/lower/lower_select_and_scatter.mlir
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import (
    cast,
    extract,
    for_each,
    if_else,
    index,
    inline_scalar_region,
    insert,
    replace_each,
    with_signless_elements,
)
from lamina.passes.framework.base import Pass


class LowerSelectAndScatter(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        self.count("lowered", replace_each(module, "stablehlo.select_and_scatter", _lower))


def _lower(op: ir.Operation) -> list[ir.Value]:
    operand_type, element = op.operands[0].type, op.operands[0].type.element_type
    operand, source = (with_signless_elements(value) for value in list(op.operands)[:2])
    init = hlo.broadcast_in_dim(op.operands[2], list(operand_type.shape), [])
    shape = list(operand_type.shape)
    rank = len(shape)
    window = numbers(op, "window_dimensions", [1] * rank)
    strides = numbers(op, "window_strides", [1] * rank)
    low = [pair[0] for pair in padding(op, rank)]
    select, scatter = (region.blocks[0] for region in op.regions)

    def one_window(at: list[ir.Value], results: list[ir.Value]) -> Sequence[ir.Value]:
        starts = [
            arith.SubIOp(arith.MulIOp(i, index(s)).result, index(p)).result
            for i, s, p in zip(at, strides, low, strict=True)
        ]

        def candidate(offsets: list[ir.Value], carried: list[ir.Value]) -> Sequence[ir.Value]:
            place = [arith.AddIOp(s, o).result for s, o in zip(starts, offsets, strict=True)]
            inside = _all(
                arith.CmpIOp(arith.CmpIPredicate.ult, p, index(n)).result
                for p, n in zip(place, shape, strict=True)
            )
            return if_else(
                inside, lambda: consider(place, carried), lambda: carried, [v.type for v in carried]
            )

        def consider(place: list[ir.Value], carried: list[ir.Value]) -> Sequence[ir.Value]:
            found, best, *best_place = carried
            value = extract(operand, place)
            (keep,) = inline_scalar_region(select, [cast(best, element), cast(value, element)])
            keep = arith.AndIOp(found, keep).result
            new = [arith.ConstantOp(found.type, 1).result, value, *place]
            old = [new[0], best, *best_place]
            return [arith.SelectOp(keep, o, n).result for o, n in zip(old, new, strict=True)]

        nowhere = [index(0)] * rank
        none_yet = arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result
        found, _, *place = for_each(
            window, [none_yet, extract(operand, nowhere), *nowhere], candidate
        )

        def combine() -> Sequence[ir.Value]:
            arguments = [
                cast(extract(results[0], place), element),
                cast(extract(source, at), element),
            ]
            (value,) = inline_scalar_region(scatter, arguments)
            return [insert(cast(value, results[0].type.element_type), results[0], place)]

        return if_else(found, combine, lambda: results, [results[0].type])

    (result,) = for_each(list(source.type.shape), [with_signless_elements(init)], one_window)
    return [cast(result, op.results[0].type)]


def _all(conditions: Iterable[ir.Value]) -> ir.Value:
    result = None
    for condition in conditions:
        result = condition if result is None else arith.AndIOp(result, condition).result
    return arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result if result is None else result


def numbers(op: ir.Operation, name: str, default: list[int]) -> list[int]:
    """An attribute of one number for each dimension."""
    return list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else default


def padding(op: ir.Operation, rank: int) -> list[tuple[int, int]]:
    """The padding before and after each dimension."""
    if "padding" not in op.attributes:
        return [(0, 0)] * rank
    flat = list(ir.DenseIntElementsAttr(op.attributes["padding"]))
    return list(zip(flat[::2], flat[1::2], strict=True))
