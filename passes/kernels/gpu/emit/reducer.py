"""How the elements of a reduction are combined in any order, by any number of threads.

Two kinds. One op that has a neutral element: partial results begin with that, and those of sums and
products of narrow floats are kept in f32. A body whose results depend on nothing but the accumulators and one
value for each of them, and that ends in such ops or in choices between the two, as that of argmax:
partial results carry along whether there is any yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.dialects.vendors import complex as complex_
from lamina.passes.emit.copies import copied, remade
from lamina.passes.emit.loops import if_else, index, load, store
from lamina.passes.kernels.gpu.device.threads import (
    WARP,
    Body,
    barrier,
    below,
    equals,
    place_indices,
    shuffle_xor,
    when,
)
from lamina.passes.linalg.analysis.structure import Generic

Values = list[ir.Value]
Slots = Callable[[ir.Type, int], ir.Value]
"""(element type, count) -> a shared buffer."""

_NEUTRAL = {
    "arith.addf": "-0.0", "arith.mulf": "1.0", "arith.addi": "0", "arith.muli": "1",
    "arith.ori": "0", "arith.xori": "0", "arith.andi": "-1", "arith.maxui": "0",
    "arith.minui": "-1",
}  # fmt: skip
_ANY_ORDER = frozenset((*_NEUTRAL, "arith.maximumf", "arith.minimumf", "arith.maxsi", "arith.minsi",
                        "complex.add", "complex.mul"))  # fmt: skip
_WIDENED = ("arith.addf", "arith.mulf")
_SYMMETRIC = frozenset(_NEUTRAL) | {"arith.maxsi", "arith.minsi"}
"""Whose two operands may be exchanged without another bit in the result; that of floats' greatest and least depends on
how they are computed, where both are zero."""
_READ_ALONE = 8  # warps whose results each thread reads and combines by itself


class Reducer:
    """See the module's docstring. `types` are those of the values that a partial result is."""

    types: list[ir.Type]
    replaced: dict[ir.Value, ir.Value]
    """What stands in a kernel for values of the function: set where a kernel begins."""
    is_symmetric = False
    """Whether two partial results may be exchanged without another bit in what they give."""

    @staticmethod
    def of(generic: Generic) -> Reducer | None:
        """The reducer, or None where partial results can't be combined."""
        if not any(generic.reductions):
            return None
        return _ByOp.read(generic) or _ByBody.read(generic)

    def neutral(self) -> Values:
        """A partial result of nothing."""
        raise NotImplementedError

    def element(
        self, body: Body, at: Mapping[int, ir.Value], inputs: Sequence[ir.Value | None]
    ) -> Values:
        """The partial result of the one element at a position."""
        raise NotImplementedError

    def __call__(self, a: Values, b: Values) -> Values:
        """Two partial results combined."""
        raise NotImplementedError

    def result(self, total: Values, initial: Values) -> Values:
        """What is to be stored where the initial values stood."""
        raise NotImplementedError

    def over_warp(self, partial: Values) -> Values:
        """The partial results of a warp's lanes combined, in every lane."""
        offset = WARP // 2
        while offset:
            partial = self(partial, [shuffled(value, offset) for value in partial])
            offset //= 2
        return partial

    def over_block(self, partial: Values, thread: ir.Value, threads: int, slots: Slots) -> Values:
        """The partial results of a block's threads combined, in the threads of the first warp.

        `slots` gives shared memory, which nobody may use until a barrier has followed.
        """
        partial = self.over_warp(partial)
        warps = threads // WARP
        if warps == 1:
            return partial
        lane = arith.RemUIOp(thread, index(WARP)).result
        warp = arith.DivUIOp(thread, index(WARP)).result
        shared = self._shared_by_warps(partial, lane, warp, warps, slots)

        def first_warp() -> Values:
            mine = if_else(
                below(lane, warps), lambda: [load(buffer, [lane]) for buffer in shared],
                self.neutral, self.types,
            )  # fmt: skip
            return self.over_warp(mine)

        return if_else(equals(warp, 0), first_warp, lambda: partial, self.types)

    def in_every_thread(
        self, partial: Values, thread: ir.Value, threads: int, slots: Slots
    ) -> Values:
        """The partial results of a block's threads, a power of two of warps, combined, the same bits in all of them.

        `slots` gives shared memory, which nobody else may use.
        """
        lane = arith.RemUIOp(thread, index(WARP)).result
        partial = self._butterfly(partial, lane, WARP)
        warps = threads // WARP
        if warps == 1:
            return partial
        warp = arith.DivUIOp(thread, index(WARP)).result
        shared = self._shared_by_warps(partial, lane, warp, warps, slots)
        if warps > _READ_ALONE:
            turn = arith.RemUIOp(lane, index(warps)).result
            return self._butterfly([load(buffer, [turn]) for buffer in shared], lane, warps)
        parts = [[load(buffer, [index(n)]) for buffer in shared] for n in range(warps)]
        while len(parts) > 1:
            parts = [self(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def _shared_by_warps(
        self, partial: Values, lane: ir.Value, warp: ir.Value, warps: int, slots: Slots
    ) -> Values:
        """Buffers of shared memory in which every thread then finds each warp's partial results, by its number."""
        shared = [slots(type_, warps) for type_ in self.types]

        def put() -> None:
            for value, buffer in zip(partial, shared, strict=True):
                store(value, buffer, [warp])

        when(equals(lane, 0), put)
        barrier()
        return shared

    def _butterfly(self, partial: Values, lane: ir.Value, lanes: int) -> Values:
        """The partial results of each so many lanes combined, in all of them. Where the order of two may show in the
        bits, that of the lane with the smaller number comes first in both."""
        offset = lanes // 2
        while offset:
            other = [shuffled(value, offset) for value in partial]
            if self.is_symmetric:
                partial = self(partial, other)
            else:
                bit = arith.AndIOp(lane, index(offset)).result
                first = equals(bit, 0)
                mine_first = zip(partial, other, strict=True)
                pairs = [
                    (arith.SelectOp(first, a, b).result, arith.SelectOp(first, b, a).result)
                    for a, b in mine_first
                ]
                partial = self([a for a, _ in pairs], [b for _, b in pairs])
            offset //= 2
        return partial


class _ByOp(Reducer):
    """One op with a neutral element."""

    def __init__(self, op: ir.Operation, element: ir.Value) -> None:
        self.op, self._element = op, element
        self.narrow = op.results[0].type
        is_float = isinstance(self.narrow, ir.FloatType)
        wide = is_float and self.narrow.width < 32 and op.name in _WIDENED
        self.types = [ir.F32Type.get(self.narrow.context) if wide else self.narrow]
        by_instruction = op.name in ("arith.maximumf", "arith.minimumf") and self.narrow.width <= 32
        self.is_symmetric = op.name in _SYMMETRIC or by_instruction

    @staticmethod
    def read(generic: Generic) -> Reducer | None:
        if len(generic.outputs) != 1:
            return None
        argument = generic.body.arguments[len(generic.inputs)]
        uses = list(argument.uses)
        *_, end = [op.operation for op in generic.body.operations]
        if len(uses) != 1 or end.operands[0].owner != uses[0].owner:
            return None
        op = uses[0].owner.operation
        if op.block != generic.body or len(op.operands) != 2 or op.operands[0] == op.operands[1]:
            return None
        found = _ByOp(op, op.operands[1 - uses[0].operand_number])
        return found if found._neutral() is not None else None

    def _neutral(self) -> ir.Attribute | None:
        type_, name = self.types[0], self.op.name
        if name in ("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"):
            if not isinstance(type_, ir.FloatType):
                return None
            return ir.FloatAttr.get(type_, -math.inf if "max" in name else math.inf)
        if name in ("arith.maxsi", "arith.minsi") and isinstance(type_, ir.IntegerType):
            top = 1 << (type_.width - 1)
            return ir.IntegerAttr.get(type_, -top if "max" in name else top - 1)
        if name not in _NEUTRAL:
            return None
        if str(type_) == "i1":
            true = name in ("arith.andi", "arith.muli", "arith.minui")
            return ir.Attribute.parse("true" if true else "false")
        return ir.Attribute.parse(f"{_NEUTRAL[name]} : {type_}")

    def neutral(self) -> Values:
        attribute = self._neutral()
        assert attribute is not None
        return [
            ir.Operation.create(
                "arith.constant", results=self.types, attributes={"value": attribute}
            ).result
        ]

    def element(
        self, body: Body, at: Mapping[int, ir.Value], inputs: Sequence[ir.Value | None]
    ) -> Values:
        known = dict(zip(body.generic.body.arguments, inputs))
        return self._widened(_computed(body, [self._element], known, at))

    def _widened(self, values: Values) -> Values:
        if self.types[0] == self.narrow:
            return values
        return [arith.ExtFOp(self.types[0], value).result for value in values]

    def __call__(self, a: Values, b: Values) -> Values:
        return [remade(self.op, self.types, [*a, *b]).result]

    def result(self, total: Values, initial: Values) -> Values:
        found = self(self._widened(initial), total)
        if self.types[0] == self.narrow:
            return found
        return [arith.TruncFOp(self.narrow, found[0]).result]


class _ByBody(Reducer):
    """The body itself, on partial results in place of elements."""

    def __init__(self, generic: Generic, elements: Values) -> None:
        self.generic, self._elements = generic, elements
        self._accumulators = list(generic.body.arguments)[len(generic.inputs) :]
        *_, end = [op.operation for op in generic.body.operations]
        self._yielded = list(end.operands)
        bit = ir.IntegerType.get_signless(1, generic.op.context)
        self.types = [bit, *(value.type for value in self._accumulators)]

    @staticmethod
    def read(generic: Generic) -> Reducer | None:
        accumulators = list(generic.body.arguments)[len(generic.inputs) :]
        *_, end = [op.operation for op in generic.body.operations]
        elements: Values = []
        for yielded, accumulator in zip(end.operands, accumulators, strict=True):
            if isinstance(yielded.owner, ir.Block) or yielded.owner.operation.block != generic.body:
                return None
            name, operands = yielded.owner.operation.name, list(yielded.owner.operation.operands)
            if name == "arith.select":
                operands = operands[1:]
            elif name not in _ANY_ORDER:
                return None
            if len(operands) != 2 or operands.count(accumulator) != 1:
                return None
            elements.append(operands[1 - operands.index(accumulator)])
        known = {*elements, *accumulators}
        types = [value.type for value in elements] == [value.type for value in accumulators]
        if len(known) != 2 * len(elements) or not types:
            return None
        work, seen = list(end.operands), set(known)
        while work:
            value = work.pop()
            if value in seen:
                continue
            seen.add(value)
            if isinstance(value.owner, ir.Block):
                return None
            op = value.owner.operation
            if op.block == generic.body and (op.name == "linalg.index" or len(op.regions)):
                return None
            if op.block != generic.body and op.name != "arith.constant":
                return None
            work.extend(op.operands)
        return _ByBody(generic, elements)

    def neutral(self) -> Values:
        return [zero(type_) for type_ in self.types]

    def element(
        self, body: Body, at: Mapping[int, ir.Value], inputs: Sequence[ir.Value | None]
    ) -> Values:
        known = dict(zip(body.generic.body.arguments, inputs))
        some = arith.ConstantOp(self.types[0], 1).result
        return [some, *_computed(body, self._elements, known, at)]

    def __call__(self, a: Values, b: Values) -> Values:
        (has_a, *of_a), (has_b, *of_b) = a, b
        both = arith.AndIOp(has_a, has_b).result
        found = [arith.OrIOp(has_a, has_b).result]
        for new, left, right in zip(self._combined(of_a, of_b), of_a, of_b, strict=True):
            alone = arith.SelectOp(has_a, left, right).result
            found.append(arith.SelectOp(both, new, alone).result)
        return found

    def _combined(self, a: Values, b: Values) -> Values:
        known: dict[ir.Value, ir.Value | None] = dict(zip(self._accumulators, a, strict=True))
        known |= dict(zip(self._elements, b, strict=True))
        return _computed(Body(self.generic, self.replaced), self._yielded, known, {})

    def result(self, total: Values, initial: Values) -> Values:
        has, *values = total
        return [
            arith.SelectOp(has, new, old).result
            for new, old in zip(self._combined(initial, values), initial, strict=True)
        ]


def _computed(
    body: Body, wanted: Sequence[ir.Value], given: Mapping[ir.Value, ir.Value | None],
    at: Mapping[int, ir.Value],
) -> Values:  # fmt: skip
    """Copies of the ops of a body that make these values, from known ones."""
    known = body.replaced | {old: new for old, new in given.items() if new is not None}
    block = body.generic.body
    needed, work = set(), list(wanted)
    while work:
        value = work.pop()
        if value in known or isinstance(value.owner, ir.Block):
            continue
        op = value.owner.operation
        if op.block == block and op not in needed:
            needed.add(op)
            work.extend(op.operands)
            for region in op.regions:
                for inner in region.blocks:
                    for nested in inner.operations:
                        work.extend(nested.operands)
    for view in block.operations:
        op = view.operation
        if op not in needed:
            continue
        if op.name == "linalg.index":
            known[op.results[0]] = at[ir.IntegerAttr(op.attributes["dim"]).value]
            continue
        place_indices(copied(op, known), at)
    return [known.get(value, value) for value in wanted]


def zero(type_: ir.Type) -> ir.Value:
    """The zero of a scalar type."""
    if isinstance(type_, ir.ComplexType):
        part = zero(type_.element_type)
        return complex_.CreateOp(type_, part, part).result
    number = 0.0 if isinstance(type_, ir.FloatType) else 0
    return arith.ConstantOp(type_, number).result


def shuffled(value: ir.Value, offset: int) -> ir.Value:
    """`shuffle_xor` of any scalar."""
    if isinstance(value.type, ir.IndexType):
        wide = arith.IndexCastOp(ir.IntegerType.get_signless(64), value).result
        return arith.IndexCastOp(value.type, shuffle_xor(wide, offset)).result
    if not isinstance(value.type, ir.ComplexType):
        return shuffle_xor(value, offset)
    parts = [part(value).result for part in (complex_.ReOp, complex_.ImOp)]
    return complex_.CreateOp(value.type, *(shuffle_xor(part, offset) for part in parts)).result
