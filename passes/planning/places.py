"""Where a plan's buffers are, as values of MLIR: views of arguments, results, constants and the arena."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

from lamina.dialects.builders.buffers import reshaped
from lamina.dialects.constants import printed
from lamina.dialects.vendors import ir
from lamina.passes.planning.from_mlir import Reader
from lamina.passes.planning.plan import (
    BranchStep,
    CallStep,
    CopyStep,
    Plan,
    Slot,
    Step,
    WhileStep,
)


class Places:
    """The buffers of `plan` in the function `main`, which takes `inputs` arguments, then its results
    and the arena. Their views are made where the instance is."""

    def __init__(self, main: ir.Operation, inputs: int, reader: Reader, plan: Plan) -> None:
        self.main = main
        self.inputs = inputs
        self.reader = reader
        self.plan = plan
        self.memrefs = {of: ir.MemRefType.get(of.shape, of.element_type) for of in reader.sizes}
        self.buffers = list(main.regions[0].blocks[0].arguments)
        self.arena = self.buffers.pop()
        self.views: dict[tuple[Slot, ir.Type], ir.Value] = {}
        self.known: dict[int, ir.Value] = {}
        """The views of values under their own types, as far as they were looked up."""
        self.declared_data: set[int] = set()
        self.moving: dict[int, ir.Value] = {}
        """Where the groups that change places are in the loop that is being written, as bytes."""
        self.moving_views: dict[tuple[int, ir.Type], ir.Value] = {}
        self._write_views()

    def of(self, value: int) -> ir.Value:
        """The buffer of a value, under the value's type."""
        buffer = self.known.get(value)
        if buffer is None:
            buffer = self.view(value, self.reader.types[value])
            if not self.moving:
                self.known[value] = buffer
        return buffer

    def view(self, value: int | tuple[str, int], of: ir.Type) -> ir.Value:
        """The buffer of a value, of a temporary, or of the data of a constant (`("data", value)`), under
        a type."""
        if self.moving and isinstance(value, int):
            view = self.moving_views.get((self.plan.sharing.find(value), of))
            if view is not None:
                return view
        return self.views[self._slot(value), of]

    def _global(self, number: int) -> None:
        """Declare the data of a constant, before @main."""
        of = self.memrefs[self.reader.types[number]]
        made = ir.Operation.parse(
            f'memref.global "private" constant @constant_{number} : {of} = '
            + _printed_value(self.reader.constants[number])
        )
        ir.InsertionPoint(self.main).insert(made)
        self.declared_data.add(number)

    # Views, all at the top, in the order of their addresses.

    def _write_views(self) -> None:
        offsets: dict[int, ir.Value] = {}
        lent: dict[int, ir.Value] = {}
        wanted: dict[tuple[Slot, ir.Type], set[tuple[int, int]]] = {}
        for value, of in dict.fromkeys(self._uses(self.plan.steps)):
            slot = self._slot(value)
            spans = wanted.setdefault((slot, of), set())
            if slot.space in ("arena", "lent") and isinstance(value, int):
                spans.add(self.plan.lifetime(value))
        index = ir.IndexType.get()
        for (slot, of), spans in sorted(wanted.items(), key=lambda use: _address(use[0][0])):
            memref = self.memrefs[of]
            if slot.space in ("arena", "lent"):
                within, number = self.arena, slot.number
                if slot.space == "lent":
                    within, number = lent.get(slot.number), slot.offset
                    if within is None:
                        within = _as_bytes(self._given(slot), self.arena.type)
                        lent[slot.number] = within
                offset = offsets.get(number)
                if offset is None:
                    offset = offsets[number] = _constant_index(index, number)
                made = ir.Operation.create(
                    "memref.view",
                    results=[memref],
                    operands=[within, offset],
                    attributes={"lamina.live": ir.StringAttr.get(_spans(spans))},
                ).result
            elif slot.space == "constant":
                if slot.number not in self.declared_data:
                    self._global(slot.number)
                name = ir.FlatSymbolRefAttr.get(f"constant_{slot.number}")
                own = self.memrefs[self.reader.types[slot.number]]
                read = ir.Operation.create(
                    "memref.get_global", results=[own], attributes={"name": name}
                )
                made = reshaped(read.result, memref)
            else:
                made = reshaped(self._given(slot), memref)
            self.views[slot, of] = made

    def _slot(self, value: int | tuple[str, int]) -> Slot:
        return Slot("constant", value[1]) if isinstance(value, tuple) else self.plan.slot(value)

    def _given(self, slot: Slot) -> ir.Value:
        """The argument or result in which a slot is."""
        return self.buffers[slot.number + (0 if slot.space == "argument" else self.inputs)]

    def _uses(self, steps: list[Step]) -> Iterator[tuple[int | tuple[str, int], ir.Type]]:
        """Every buffer that the steps touch, with the type they see it under."""
        types = self.reader.types
        for step in steps:
            match step:
                case CallStep():
                    for value in buffers_of(step):
                        yield value, types[value]
                case CopyStep(value, source, target):
                    yield (("data", value) if source is None else source), types[value]
                    yield target, types[value]
                case WhileStep(op, cond, body, _, back):
                    yield from self._uses(cond)
                    yield op.cond.yields[0], types[op.cond.yields[0]]
                    yield from self._uses(body)
                    for copies in chain.from_iterable(back):
                        yield from self._uses(copies)
                case BranchStep(op, blocks):
                    yield op.selector, types[op.selector]
                    for block in blocks:
                        yield from self._uses(block)

    # Groups that change places are carried by their loop, as bytes.

    def as_bytes(self, name: int) -> ir.Value:
        """The buffer of a group as bytes, from its beginning."""
        moving = self.moving.get(name)
        if moving is not None:
            return moving
        slot = self.plan.slot(name)
        of = ir.MemRefType.get([self.plan.sharing.groups[name].bytes], self.arena.type.element_type)
        if slot.space == "arena":
            return _viewed(self.arena, slot.number, of)
        return _viewed(_as_bytes(self._given(slot), self.arena.type), slot.offset, of)

    @contextmanager
    def moved(self, names: list[int], block: ir.Block, steps: list[Step]) -> Iterator[None]:
        """What these groups hold is, for the steps that are written into a block, where the block's
        arguments say."""
        if not names:
            yield
            return
        outer = self.moving, self.moving_views, self.known
        self.moving = self.moving | dict(zip(names, block.arguments, strict=True))
        self.moving_views, self.known = dict(self.moving_views), {}
        for value, of in dict.fromkeys(self._uses(steps)):
            name = self.plan.sharing.find(value) if isinstance(value, int) else None
            if name in names:
                self.moving_views[name, of] = _viewed(self.moving[name], 0, self.memrefs[of])
        yield
        self.moving, self.moving_views, self.known = outer


def buffers_of(step: CallStep) -> list[int]:
    """What a kernel is given: its operands, then the results that are not among them."""
    call = step.call
    if not step.in_place:
        return call.operands + call.results
    given = [
        call.results[step.in_place[i]] if i in step.in_place else value
        for i, value in enumerate(call.operands)
    ]
    taken = set(step.in_place.values())
    return given + [value for i, value in enumerate(call.results) if i not in taken]


def _address(slot: Slot) -> tuple[int, int, int]:
    spaces = ("argument", "result", "constant", "lent", "arena")
    return spaces.index(slot.space), slot.number, slot.offset


def _as_bytes(buffer: ir.Value, of: ir.Type) -> ir.Value:
    return ir.Operation.create(
        "builtin.unrealized_conversion_cast", results=[of], operands=[buffer]
    ).result


def _viewed(buffer: ir.Value, offset: int, of: ir.Type) -> ir.Value:
    """Bytes of a buffer, from an offset on, under a type."""
    return ir.Operation.create(
        "memref.view", results=[of], operands=[buffer, _constant_index(ir.IndexType.get(), offset)]
    ).result


def _spans(spans: set[tuple[int, int]]) -> str:
    """When the buffers at one place are in use, in the order of the steps, for people to read."""
    shown = [f"{first}..{last}" for first, last in sorted(spans)[:4]]
    more = len(spans) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _printed_value(constant: ir.Operation) -> str:
    """The dense value as text: handling the attribute itself fails for complex elements."""
    text = printed(constant)  # unverified: the module around it is half rewritten
    return text[text.index("dense") : text.rindex(" : ")]


def _constant_index(index: ir.Type, value: int) -> ir.Value:
    return ir.Operation.create(
        "arith.constant", results=[index], attributes={"value": ir.IntegerAttr.get(index, value)}
    ).result
