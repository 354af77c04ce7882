"""What kernels for GPUs are emitted with: thread numbers, strided loops, bodies, shuffles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lamina.dialects.vendors import arith, ir, scf
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import for_range, index, load, store
from lamina.passes.framework.find import find_ops
from lamina.passes.linalg.analysis.affine_indices import indices
from lamina.passes.linalg.analysis.structure import Generic

WARP = 32
SHARED_SPACE = 3
"""The memory space of buffers that a block shares, as LLVM numbers it for NVPTX."""

_IDS = ("thread_id", "block_id")


def gpu_id(kind: str, dimension: str = "x") -> ir.Value:
    """`thread_id` or `block_id` along x, y or z."""
    assert kind in _IDS
    attribute = ir.Attribute.parse(f"#gpu<dim {dimension}>")
    return ir.Operation.create(
        f"gpu.{kind}", results=[ir.IndexType.get()], attributes={"dimension": attribute}
    ).result


def barrier() -> None:
    """All threads of the block wait for each other and see what was written before."""
    ir.Operation.create("gpu.barrier")


def strided(
    low: ir.Value,
    high: ir.Value | int,
    step: int,
    carried: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """A loop from `low` to below `high` in steps; what is carried out of its last iteration."""
    return for_range(low, index(high) if isinstance(high, int) else high, carried, body, step)


def when(
    condition: ir.Value, then: Callable[[], None], otherwise: Callable[[], None] | None = None
) -> None:
    """Run `then` in the threads for which the condition holds, and what else there is in the others."""
    branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
    for region, emit in zip(branch.regions, (then, otherwise)):
        if emit is not None:
            with ir.InsertionPoint(region.blocks.append()):
                emit()
                scf.YieldOp([])


def below(a: ir.Value, b: int) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.ult, a, index(b)).result


def equals(a: ir.Value, b: int) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.eq, a, index(b)).result


def zero_of(type_: ir.Type) -> ir.Value:
    """Zero of a scalar type."""
    if isinstance(type_, ir.ComplexType):
        part = zero_of(ir.ComplexType(type_).element_type)
        return ir.Operation.create("complex.create", results=[type_], operands=[part, part]).result
    text = "0.0" if isinstance(type_, ir.FloatType) else "0"
    if str(type_) == "i1":
        text = "false"
    attribute = ir.Attribute.parse(text if str(type_) == "i1" else f"{text} : {type_}")
    return ir.Operation.create(
        "arith.constant", results=[type_], attributes={"value": attribute}
    ).result


def positions(flat: ir.Value, extents: Sequence[int]) -> list[ir.Value]:
    """The row-major position with this number in a space of these extents."""
    found: list[ir.Value] = []
    for place, extent in enumerate(extents):
        inner = math.prod(extents[place + 1 :])
        at = flat if inner == 1 else arith.DivUIOp(flat, index(inner)).result
        if place:
            at = arith.RemUIOp(at, index(extent)).result
        found.append(at)
    return found


class Body:
    """Copies of a generic's body, with buffers and values of the function replaced."""

    def __init__(self, generic: Generic, replaced: dict[ir.Value, ir.Value]) -> None:
        self.generic, self.replaced = generic, replaced

    def value_of(self, value: ir.Value) -> ir.Value:
        return self.replaced.get(value, value)

    def places(self, at: Mapping[int, ir.Value]) -> list[list[ir.Value]]:
        """For each output its indices at a position."""
        return [indices(map_, at) for map_ in self.generic.output_maps]

    def inputs(self, at: Mapping[int, ir.Value]) -> list[ir.Value | None]:
        """The inputs at a position; None for one that the body does not use."""
        found: list[ir.Value | None] = []
        for operand, map_, argument in zip(
            self.generic.inputs, self.generic.input_maps, self.generic.body.arguments, strict=False
        ):
            value = self.value_of(operand)
            if not len(list(argument.uses)):
                found.append(None)
            elif isinstance(value.type, ir.MemRefType):
                found.append(load(value, indices(map_, at)))
            else:
                found.append(value)
        return found

    def run(
        self, at: Mapping[int, ir.Value], inputs: Sequence[ir.Value | None],
        accumulators: Sequence[ir.Value | None],
    ) -> list[ir.Value]:  # fmt: skip
        """What one copy of the body yields."""
        block = self.generic.body
        known = dict(self.replaced)
        for argument, value in zip(block.arguments, [*inputs, *accumulators], strict=True):
            if value is not None:
                known[argument] = value
        operations = [op.operation for op in block.operations]
        for op in operations[:-1]:
            if op.name == "linalg.index":
                known[op.results[0]] = at[ir.IntegerAttr(op.attributes["dim"]).value]
                continue
            place_indices(copied(op, known), at)
        return [known.get(value, value) for value in operations[-1].operands]

    def store_at(self, at: Mapping[int, ir.Value], inputs: Sequence[ir.Value | None]) -> None:
        """Run the body at a position on these inputs, and write the outputs there."""
        outputs = [self.value_of(output) for output in self.generic.outputs]
        places = self.places(at)
        used = self.generic.body.arguments[len(self.generic.inputs) :]
        before = [
            load(output, place) if len(list(argument.uses)) else None
            for output, place, argument in zip(outputs, places, used, strict=True)
        ]
        for value, output, place in zip(self.run(at, inputs, before), outputs, places, strict=True):
            store(value, output, place)


def place_indices(op: ir.Operation, at: Mapping[int, ir.Value]) -> None:
    """Replace each `linalg.index` in an op by the position there."""
    for inner in find_ops(op, "linalg.index"):
        inner.results[0].replace_all_uses_with(at[ir.IntegerAttr(inner.attributes["dim"]).value])
        inner.erase()


def shuffle_xor(value: ir.Value, offset: int) -> ir.Value:
    """The value in the lane whose number differs in the bits of `offset`; any scalar of up to 64
    bits."""
    type_ = value.type
    i32 = ir.IntegerType.get_signless(32)
    if isinstance(type_, ir.FloatType) and type_.width != 32:
        bits = ir.IntegerType.get_signless(type_.width)
        moved = shuffle_xor(arith.BitcastOp(bits, value).result, offset)
        return arith.BitcastOp(type_, moved).result
    if isinstance(type_, ir.IntegerType) and type_.width < 32:
        moved = shuffle_xor(arith.ExtUIOp(i32, value).result, offset)
        return arith.TruncIOp(type_, moved).result
    if type_.width == 64:
        half = arith.ConstantOp(type_, 32).result
        low = shuffle_xor(arith.TruncIOp(i32, value).result, offset)
        high = shuffle_xor(arith.TruncIOp(i32, arith.ShRUIOp(value, half).result).result, offset)
        high = arith.ShLIOp(arith.ExtUIOp(type_, high).result, half).result
        return arith.OrIOp(high, arith.ExtUIOp(type_, low).result).result
    return ir.Operation.create(
        "gpu.shuffle",
        results=[type_, ir.IntegerType.get_signless(1)],
        operands=[value, arith.ConstantOp(i32, offset).result, arith.ConstantOp(i32, WARP).result],
        attributes={"mode": ir.Attribute.parse("#gpu<shuffle_mode xor>")},
    ).results[0]
