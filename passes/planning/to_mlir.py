"""From a plan to MLIR: @main on memrefs, and the kernels it calls in a module of their own."""

from __future__ import annotations

from collections.abc import Iterator

from lamina.dialects.attributes import (
    ALIAS_OF,
    ARENA_BYTES,
    ARGUMENTS,
    COUNTED,
    INOUT,
    KIND,
    MAY_ALIAS,
    OWN_BYTES,
    TEAM,
    TRIP_COUNT,
    UNUSED_DONATIONS,
    string_of,
)
from lamina.dialects.builders.buffers import reshaped
from lamina.dialects.vendors import ir
from lamina.passes.find import find_ops
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
from lamina.passes.planning.program import Program


class Writer:
    """Replaces `main`, which `reader` has read as `program`, by what `plan` makes of it."""

    def __init__(
        self,
        main: ir.Operation,
        reader: Reader,
        program: Program,
        plan: Plan,
    ) -> None:
        self.main = main
        self.functions = dict(reader.functions)
        self.reader = reader
        self.program = program
        self.plan = plan
        self.memrefs = {of: ir.MemRefType.get(of.shape, of.element_type) for of in reader.sizes}
        self.views: dict[tuple[Slot, ir.Type], ir.Value] = {}
        self.buffers: dict[int, ir.Value] = {}
        """The views of values under their own types, as far as they were looked up."""
        self.used: dict[str, tuple[str, tuple[tuple[int, int], ...]]] = {}
        self.declared: dict[str, ir.Operation] = {}
        self.declared_data: set[int] = set()

    def write(self) -> None:
        main, plan = self.main, self.plan
        with main.location, ir.InsertionPoint(main):
            new = self.new = self._main()
            block = new.regions[0].blocks[0]
            with ir.InsertionPoint(block):
                self._write_views(block)
                self._steps(plan.steps)
                ir.Operation.create("func.return")
        main.erase()
        self._kernels(new)

    def _main(self) -> ir.Operation:
        body, types = self.program.body, self.reader.types
        byte = ir.IntegerType.get_signless(8)
        inputs = [
            *(self.memrefs[types[value]] for value in body.arguments + body.yields),
            ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], byte),
        ]
        notes: list[dict[str, ir.Attribute]] = [{} for _ in inputs]
        for result, argument in self.plan.alias_of.items():
            notes[len(body.arguments) + result][ALIAS_OF] = _i64(argument)
        new = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get("main"),
                "sym_visibility": ir.StringAttr.get("public"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, [])),
                "arg_attrs": ir.ArrayAttr.get([ir.DictAttr.get(note) for note in notes]),
                ARGUMENTS: _i64(len(body.arguments)),
                ARENA_BYTES: _i64(self.plan.arena_bytes),
                **self._own_bytes(),
                UNUSED_DONATIONS: ir.DenseI64ArrayAttr.get(self.plan.unused_donations),
            },
            regions=1,
        )
        new.regions[0].blocks.append(*inputs)
        return new

    def _own_bytes(self) -> dict[str, ir.Attribute]:
        own = self.plan.own_bytes
        return {OWN_BYTES: _i64(own)} if own else {}

    def _global(self, number: int) -> None:
        """Declare the data of a constant, before @main."""
        of = self.memrefs[self.reader.types[number]]
        made = ir.Operation.parse(
            f'memref.global "private" constant @constant_{number} : {of} = '
            + _printed_value(self.reader.constants[number])
        )
        ir.InsertionPoint(self.new).insert(made)
        self.declared_data.add(number)

    # Views, all at the top, in the order of their addresses.

    def _write_views(self, block: ir.Block) -> None:
        arguments = len(self.program.body.arguments)
        arena = block.arguments[len(block.arguments) - 1]
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
                within, number = arena, slot.number
                if slot.space == "lent":
                    within, number = lent.get(slot.number), slot.offset
                    if within is None:
                        within = _as_bytes(block.arguments[arguments + slot.number], arena.type)
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
                first = 0 if slot.space == "argument" else arguments
                made = reshaped(block.arguments[first + slot.number], memref)
            self.views[slot, of] = made

    def _slot(self, value: int | tuple[str, int]) -> Slot:
        return Slot("constant", value[1]) if isinstance(value, tuple) else self.plan.slot(value)

    def _uses(self, steps: list[Step]) -> Iterator[tuple[int | tuple[str, int], ir.Type]]:
        """Every buffer that the steps touch, with the type they see it under."""
        types = self.reader.types
        for step in steps:
            match step:
                case CallStep():
                    for value in self._buffers(step):
                        yield value, types[value]
                case CopyStep(value, source, target):
                    yield (("data", value) if source is None else source), types[value]
                    yield target, types[value]
                case WhileStep(op, cond, body):
                    yield from self._uses(cond)
                    yield op.cond.yields[0], types[op.cond.yields[0]]
                    yield from self._uses(body)
                case BranchStep(op, blocks):
                    yield op.selector, types[op.selector]
                    for block in blocks:
                        yield from self._uses(block)

    def _buffers(self, step: CallStep) -> list[int]:
        """What the kernel is given: its operands, then the results that are not among them."""
        call = step.call
        if not step.in_place:
            return call.operands + call.results
        given = [
            call.results[step.in_place[i]] if i in step.in_place else value
            for i, value in enumerate(call.operands)
        ]
        taken = set(step.in_place.values())
        return given + [value for i, value in enumerate(call.results) if i not in taken]

    def _view(self, value: int | tuple[str, int], of: ir.Type) -> ir.Value:
        return self.views[self._slot(value), of]

    # Steps

    def _steps(self, steps: list[Step]) -> None:
        for step in steps:
            match step:
                case CallStep():
                    self._write_call(step)
                case CopyStep(value, source, target):
                    of = self.reader.types[value]
                    read = self._view(("data", value) if source is None else source, of)
                    ir.Operation.create("memref.copy", operands=[read, self._view(target, of)])
                case WhileStep():
                    self._write_while(step)
                case BranchStep():
                    self._write_branch(step)

    def _write_call(self, step: CallStep) -> None:
        call, types = step.call, self.reader.types
        extra = tuple(sorted((o, r) for o, r in step.in_place.items() if o not in call.inout))
        name = call.kernel
        if extra:
            single = len(call.results) == 1
            name += "_over_" + "_".join(f"{o}" if single else f"{o}to{r}" for o, r in extra)
        known, buffers = self.buffers, []
        for value in self._buffers(step):
            buffer = known.get(value)
            if buffer is None:
                buffer = known[value] = self._view(value, types[value])
            buffers.append(buffer)
        with call.tag.location:
            self.used.setdefault(name, (call.kernel, extra))
            if name not in self.declared:
                self.declared[name] = self._declare(name, [buffer.type for buffer in buffers])
            attributes: dict[str, ir.Attribute] = {"callee": ir.FlatSymbolRefAttr.get(name)}
            if call.team:
                attributes[TEAM] = _i64(call.team)
            ir.Operation.create("func.call", operands=buffers, attributes=attributes)

    def _declare(self, name: str, types: list[ir.Type]) -> ir.Operation:
        with ir.InsertionPoint(self.main):
            return ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                },
                regions=1,
            )

    def _write_while(self, step: WhileStep) -> None:
        source = step.op.tag
        given = source.attributes
        known = {name: given[name] for name in (TRIP_COUNT, COUNTED) if name in given}
        with source.location:
            loop = ir.Operation.create("scf.while", attributes=known, regions=2)
            cond, body = (region.blocks.append() for region in loop.regions)
            with ir.InsertionPoint(cond):
                self._steps(step.cond)
                ir.Operation.create("scf.condition", operands=[self._load(step.op.cond.yields[0])])
            with ir.InsertionPoint(body):
                self._steps(step.body)
                ir.Operation.create("scf.yield")

    def _write_branch(self, step: BranchStep) -> None:
        source = step.op.tag
        with source.location:
            selector = self._load(step.op.selector)
            attributes = {}
            if source.name == "scf.index_switch":
                index = ir.IndexType.get()
                selector = ir.Operation.create(
                    "arith.index_cast", results=[index], operands=[selector]
                ).result
                attributes = {"cases": source.attributes["cases"]}
            branch = ir.Operation.create(
                source.name, operands=[selector], attributes=attributes, regions=len(step.blocks)
            )
            for region, steps in zip(branch.regions, step.blocks):
                with ir.InsertionPoint(region.blocks.append()):
                    self._steps(steps)
                    ir.Operation.create("scf.yield")

    def _load(self, value: int) -> ir.Value:
        of = self.reader.types[value]
        return ir.Operation.create(
            "memref.load", results=[of.element_type], operands=[self._view(value, of)]
        ).result

    # Kernels

    def _kernels(self, main: ir.Operation) -> None:
        """Move the kernels that are called, and their variants, into a module; drop the rest."""
        with main.location, ir.InsertionPoint.after(main):
            nested = ir.Operation.create(
                "builtin.module", attributes={"sym_name": ir.StringAttr.get("kernels")}, regions=1
            )
            block = nested.regions[0].blocks.append()
        variants = {}
        for name, (kernel, extra) in self.used.items():
            if extra:
                variants[name] = self.functions[kernel].clone()
                _set_inout(variants[name], dict(extra))
        self._use_what_scalars_call()
        for name in self.used:
            made = variants.get(name) or self.functions.pop(name)
            if name not in variants:
                made.detach_from_parent()
            made.attributes["sym_name"] = ir.StringAttr.get(name)
            _drop_wishes(made)
            block.append(made)
        for unused in self.functions.values():
            unused.erase()


    def _use_what_scalars_call(self) -> None:
        for kernel, _ in list(self.used.values()):
            if string_of(self.functions[kernel], KIND) == "scalar":
                for call in find_ops(self.functions[kernel], "func.call"):
                    callee = call.attributes["callee"].value
                    self.used.setdefault(callee, (callee, ()))


def _set_inout(kernel: ir.Operation, pairs: dict[int, int]) -> None:
    given = list(kernel.attributes["arg_attrs"])
    for argument, result in pairs.items():
        given[argument] = ir.DictAttr.get(
            _as_dict(given[argument]) | {INOUT: _i32(result)}
        )
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(given)


def _drop_wishes(kernel: ir.Operation) -> None:
    """What a kernel may do has been decided: equal kernels must print equally from here on."""
    if "arg_attrs" not in kernel.attributes:
        return
    given = [_as_dict(attributes) for attributes in kernel.attributes["arg_attrs"]]
    if any(MAY_ALIAS in attributes for attributes in given):
        for attributes in given:
            attributes.pop(MAY_ALIAS, None)
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in given])


def _as_dict(attributes: ir.DictAttr) -> dict[str, ir.Attribute]:
    return {named.name: named.attr for named in attributes}


def _address(slot: Slot) -> tuple[int, int, int]:
    spaces = ("argument", "result", "constant", "lent", "arena")
    return spaces.index(slot.space), slot.number, slot.offset


def _as_bytes(buffer: ir.Value, of: ir.Type) -> ir.Value:
    return ir.Operation.create(
        "builtin.unrealized_conversion_cast", results=[of], operands=[buffer]
    ).result


def _spans(spans: set[tuple[int, int]]) -> str:
    """When the buffers at one place are in use, in the order of the steps, for people to read."""
    shown = [f"{first}..{last}" for first, last in sorted(spans)[:4]]
    more = len(spans) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _printed_value(constant: ir.Operation) -> str:
    """The dense value as text: handling the attribute itself fails for complex elements."""
    text = constant.get_asm(assume_verified=True)  # the module around it is half rewritten
    return text[text.index("dense") : text.rindex(" : ")]


def _constant_index(index: ir.Type, value: int) -> ir.Value:
    return ir.Operation.create(
        "arith.constant", results=[index], attributes={"value": ir.IntegerAttr.get(index, value)}
    ).result


def _i32(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
