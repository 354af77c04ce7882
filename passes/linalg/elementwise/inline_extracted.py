"""Compute what a generic or a loop extracts from a generic's result where it is extracted.

    %i = linalg.generic ins(%a) { yield add(%in, %c) }    linalg.generic {
    linalg.generic {                                        %a_at = tensor.extract %a[%n]
      %at = tensor.extract %i[%n]                    ->     %at = add(%a_at, %c)
      ... }                                                 ... }

So the indices of a gather need no array of their own, nor where the same generic also reads them as an
operand (to see which are out of bounds), and neither do those of a scatter's loops, nor its updates. Leaves
alone what isn't element-wise, has more than `max_ops` ops, or is read otherwise, too: that is in memory
anyway.

example: test/passes/linalg/elementwise/inline_extracted.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import extract, index
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import ancestors, find_ops
from lamina.passes.linalg.analysis.structure import (
    Generic,
    generics_together,
    make_generic,
    read_generic,
)

_EXTRACT = "tensor.extract"
_LOOPS = frozenset(("scf.for", "scf.forall"))


class InlineExtracted(Pass):
    """See the module's docstring."""

    only_with = frozenset(("tensor.extract",))

    max_ops: int = 24  # code

    def run(self, module: ir.Module) -> None:
        for generic in generics_together(module):
            body = generic.regions[0].blocks[0]
            work = [op.operation for op in body.operations if op.operation.name == _EXTRACT]
            extracted = False
            while work:
                op = work.pop()
                producer = self._producer(op.operands[0], generic)
                if producer is not None:
                    work += _extract_operand(generic, op.operands[0])
                    work += _inline(op, producer)
                    extracted = True
                    self.count("inlined")
            if extracted:
                _drop_unread(read_generic(generic))
        work = [op for op in find_ops(module, _EXTRACT) if _LOOPS & {up.name for up in ancestors(op)}]
        while work:
            op = work.pop()
            producer = self._producer(op.operands[0], op)
            if producer is not None:
                work += _inline(op, producer)
                self.count("inlined")

    def _producer(self, tensor: ir.Value, reader: ir.Operation) -> Generic | None:
        """The generic whose result a tensor is, if only extracted elements are wanted of it, and those
        that its reader reads at plain positions."""
        if isinstance(tensor.owner, ir.Block) or tensor.owner.name != "linalg.generic":
            return None
        op = tensor.owner.operation
        if len(op.results) != 1:
            return None
        for use in tensor.uses:
            if use.owner.name != _EXTRACT and not (
                use.owner.operation == reader and _is_plain_input(read_generic(reader), use.operand_number)
            ):
                return None
        producer = read_generic(op)
        identity = ir.AffineMap.get_identity(producer.rank)
        if any(producer.reductions) or producer.output_maps[0] != identity:
            return None
        if len(producer.body.operations) > self.max_ops or any(
            len(inner.operation.regions) for inner in producer.body.operations
        ):
            return None
        if len(list(producer.body.arguments[len(producer.inputs)].uses)):
            return None
        return producer if all(_is_plain(map_) for map_ in producer.input_maps) else None


def _is_plain(map_: ir.AffineMap) -> bool:
    plain = ir.AffineDimExpr, ir.AffineConstantExpr
    return all(isinstance(expression, plain) for expression in map_.results)


def _is_plain_input(generic: Generic, number: int) -> bool:
    return number < len(generic.inputs) and _is_plain(generic.input_maps[number])


def _extract_operand(generic: ir.Operation, tensor: ir.Value) -> list[ir.Operation]:
    """Let a generic extract what it reads of an operand; the extractions."""
    read = read_generic(generic)
    made: list[ir.Operation] = []
    with ir.InsertionPoint.at_block_begin(read.body), generic.location:
        for argument, operand, map_ in zip(
            read.body.arguments, read.inputs, read.input_maps, strict=False
        ):
            if operand == tensor and len(list(argument.uses)):
                here = [_index_of(d) for d in range(read.rank)]
                element = extract(tensor, [_position(e, here) for e in map_.results])
                argument.replace_all_uses_with(element)
                made.append(element.owner.operation)
    return made


def _drop_unread(generic: Generic) -> None:
    """Leave out operands that nothing in the body reads, except where a loop's length is theirs alone."""
    kept = [
        not inputs or len(list(argument.uses)) > 0
        for inputs, argument in zip(
            [True] * len(generic.inputs) + [False] * len(generic.outputs), generic.body.arguments, strict=True
        )
    ]
    maps = [*generic.input_maps, *generic.output_maps]
    for dim in range(generic.rank):  # each loop has its length from an operand
        if not any(keep and _names(map_, dim) for keep, map_ in zip(kept, maps, strict=True)):
            kept[next(i for i, map_ in enumerate(maps) if _names(map_, dim))] = True
    if all(kept):
        return
    with ir.InsertionPoint(generic.op), generic.op.location:
        op = make_generic(
            [tensor for tensor, keep in zip(generic.inputs, kept, strict=False) if keep],
            generic.outputs,
            [map_ for map_, keep in zip(maps, kept, strict=True) if keep],
            generic.reductions,
            [result.type for result in generic.op.results],
        )
    for number in reversed(range(len(kept))):
        if not kept[number]:
            generic.body.erase_argument(number)
    generic.body.append_to(op.regions[0])
    for old, new in zip(generic.op.results, op.results, strict=True):
        old.replace_all_uses_with(new)
    generic.op.erase()


def _names(map_: ir.AffineMap, dim: int) -> bool:
    return ir.AffineExpr.get_dim(dim) in map_.results


def _inline(op: ir.Operation, producer: Generic) -> list[ir.Operation]:
    """Replace an extraction by a copy of what made the element; the extractions made for it."""
    positions = list(op.operands)[1:]
    made: list[ir.Operation] = []
    now: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(op), op.location:
        for argument, tensor, map_ in zip(
            producer.body.arguments, producer.inputs, producer.input_maps, strict=False
        ):
            if not isinstance(tensor.type, ir.RankedTensorType):
                now[argument] = tensor
            elif len(list(argument.uses)):
                now[argument] = extract(tensor, [_position(e, positions) for e in map_.results])
                made.append(now[argument].owner.operation)
        *computing, end = (inner.operation for inner in producer.body.operations)
        for inner in computing:
            if inner.name == "linalg.index":
                now[inner.results[0]] = positions[ir.IntegerAttr(inner.attributes["dim"]).value]
                continue
            copy = copied(inner, now)
            if copy.name == _EXTRACT:
                made.append(copy)
        value = end.operands[0]
        op.results[0].replace_all_uses_with(now.get(value, value))
    op.erase()
    return made


def _index_of(dim: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    attributes = {"dim": ir.IntegerAttr.get(i64, dim)}
    return ir.Operation.create("linalg.index", [ir.IndexType.get()], [], attributes).result


def _position(expression: ir.AffineExpr, positions: list[ir.Value]) -> ir.Value:
    if isinstance(expression, ir.AffineConstantExpr):
        return index(expression.value)
    return positions[ir.AffineDimExpr(expression).position]
