"""What kernels for GPUs are emitted with: thread numbers, strided loops, bodies, and values
combined over a block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lamina.dialects.vendors import arith, ir, scf
from lamina.passes.linalg.affine_indices import indices
from lamina.passes.linalg.structure import Generic
from lamina.passes.loops import for_range, if_else, index, load, store

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
    high: int,
    step: int,
    carried: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """A loop from `low` to below `high` in steps; what is carried out of its last iteration."""
    return for_range(low, index(high), carried, body, step)


def when(condition: ir.Value, then: Callable[[], None]) -> None:
    """Run `then` in the threads for which the condition holds."""
    branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        then()
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
            copy = op.clone()
            replace_operands(copy.operation, known, at)
            for old, new in zip(op.results, copy.operation.results, strict=True):
                known[old] = new
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


def replace_operands(
    op: ir.Operation, known: Mapping[ir.Value, ir.Value], at: Mapping[int, ir.Value]
) -> None:
    """Replace known operands of an op and of those in it, and its `linalg.index`es by positions."""
    for place, operand in enumerate(op.operands):
        if operand in known:
            op.operands[place] = known[operand]
    for region in op.regions:
        for block in region.blocks:
            for inner in list(block.operations):
                if inner.operation.name == "linalg.index":
                    inner.operation.results[0].replace_all_uses_with(
                        at[ir.IntegerAttr(inner.operation.attributes["dim"]).value]
                    )
                    inner.operation.erase()
                else:
                    replace_operands(inner.operation, known, at)


# ---- combining values over threads ---------------------------------------------------------------
_NEUTRAL = {
    "arith.addf": "-0.0", "arith.mulf": "1.0", "arith.addi": "0", "arith.muli": "1",
    "arith.ori": "0", "arith.xori": "0", "arith.andi": "-1", "arith.maxui": "0",
    "arith.minui": "-1",
}  # fmt: skip


class Combiner:
    """The op by which a reduction's body adds to its one accumulator."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op

    @staticmethod
    def of(generic: Generic) -> Combiner | None:
        """The combiner, or None where partial results can't be combined by one commutative op."""
        if len(generic.outputs) != 1 or not any(generic.reductions):
            return None
        argument = generic.body.arguments[len(generic.inputs)]
        uses = list(argument.uses)
        operations = [op.operation for op in generic.body.operations]
        if len(uses) != 1 or operations[-1].operands[0].owner != uses[0].owner:
            return None
        op = uses[0].owner.operation
        if op.block != generic.body or len(op.operands) != 2 or op.operands[0] == op.operands[1]:
            return None
        found = Combiner(op)
        return found if found._neutral_attribute() is not None else None

    def _neutral_attribute(self) -> ir.Attribute | None:
        type_ = self.op.results[0].type
        name = self.op.name
        if name in ("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"):
            if not isinstance(type_, ir.FloatType):
                return None
            return ir.FloatAttr.get(type_, -math.inf if "max" in name else math.inf)
        if name in ("arith.maxsi", "arith.minsi") and isinstance(type_, ir.IntegerType):
            top = 1 << (type_.width - 1)
            return ir.IntegerAttr.get(type_, -top if "max" in name else top - 1)
        if name not in _NEUTRAL:
            return None
        return ir.Attribute.parse(f"{_NEUTRAL[name]} : {type_}") if str(type_) != "i1" else (
            ir.Attribute.parse("true" if name in ("arith.andi", "arith.muli", "arith.minui")
                               else "false"))  # fmt: skip

    def neutral(self) -> ir.Value:
        """What leaves every value as it is."""
        type_ = self.op.results[0].type
        return ir.Operation.create(
            "arith.constant", results=[type_], attributes={"value": self._neutral_attribute()}
        ).result

    def __call__(self, a: ir.Value, b: ir.Value) -> ir.Value:
        copy = self.op.clone().operation
        copy.operands[0], copy.operands[1] = a, b
        return copy.results[0]

    def over_warp(self, value: ir.Value) -> ir.Value:
        """The values of a warp's lanes combined, in every lane."""
        offset = WARP // 2
        while offset:
            value = self(value, shuffle_xor(value, offset))
            offset //= 2
        return value

    def over_block(self, value: ir.Value, thread: ir.Value, threads: int, slots: Slots) -> ir.Value:
        """The values of a block's threads combined, in the threads of the first warp.

        `slots` gives shared memory, which nobody may use until a barrier has followed.
        """
        value = self.over_warp(value)
        warps = threads // WARP
        if warps == 1:
            return value
        shared = slots(value.type, warps)
        lane = arith.RemUIOp(thread, index(WARP)).result
        warp = arith.DivUIOp(thread, index(WARP)).result
        when(equals(lane, 0), lambda: store(value, shared, [warp]))
        barrier()

        def first_warp() -> list[ir.Value]:
            mine = if_else(
                below(lane, warps),
                lambda: [load(shared, [lane])],
                lambda: [self.neutral()],
                [value.type],
            )
            return [self.over_warp(mine[0])]

        return if_else(equals(warp, 0), first_warp, lambda: [value], [value.type])[0]


Slots = Callable[[ir.Type, int], ir.Value]
"""(element type, count) -> a shared buffer."""


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
