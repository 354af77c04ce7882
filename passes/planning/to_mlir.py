"""From a plan to MLIR: @main on memrefs, and the kernels it calls in a module of their own."""

from __future__ import annotations

from lamina.dialects.attributes import (
    ALIAS_OF,
    ARENA_BYTES,
    ARGUMENTS,
    BEGUN,
    COUNTED,
    INOUT,
    KIND,
    MAY_ALIAS,
    OWN_BYTES,
    TEAM,
    TRIP_COUNT,
    UNUSED_DONATIONS,
    WAIT,
    attributes_of,
    string_of,
)
from lamina.dialects.vendors import ir
from lamina.passes.framework.find import find_ops
from lamina.passes.planning.from_mlir import Reader
from lamina.passes.planning.places import Places, buffers_of
from lamina.passes.planning.plan import (
    BranchStep,
    CallStep,
    CopyStep,
    Plan,
    Step,
    WaitStep,
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
        self.used: dict[str, tuple[str, tuple[tuple[int, int], ...]]] = {}
        self.declared: dict[str, ir.Operation] = {}

    def write(self) -> None:
        main, plan = self.main, self.plan
        with main.location, ir.InsertionPoint(main):
            new = self._main()
            with ir.InsertionPoint(new.regions[0].blocks[0]):
                self.places = Places(new, len(self.program.body.arguments), self.reader, plan)
                self._steps(plan.steps)
                ir.Operation.create("func.return")
        main.erase()
        self._kernels(new)

    def _main(self) -> ir.Operation:
        body, types = self.program.body, self.reader.types
        byte = ir.IntegerType.get_signless(8)
        inputs = [
            *(_memref(types[value]) for value in body.arguments + body.yields),
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

    # Steps

    def _steps(self, steps: list[Step]) -> None:
        for step in steps:
            match step:
                case CallStep():
                    self._write_call(step)
                case WaitStep():
                    self._write_wait()
                case CopyStep(value, source, target):
                    of = self.reader.types[value]
                    read = self.places.view(("data", value) if source is None else source, of)
                    written = self.places.view(target, of)
                    ir.Operation.create("memref.copy", operands=[read, written])
                case WhileStep():
                    self._write_while(step)
                case BranchStep():
                    self._write_branch(step)

    def _write_call(self, step: CallStep) -> None:
        call = step.call
        extra = tuple(sorted((o, r) for o, r in step.in_place.items() if o not in call.inout))
        name = call.kernel
        if extra:
            single = len(call.results) == 1
            name += "_over_" + "_".join(f"{o}" if single else f"{o}to{r}" for o, r in extra)
        buffers = [self.places.of(value) for value in buffers_of(step)]
        with call.tag.location:
            self.used.setdefault(name, (call.kernel, extra))
            if name not in self.declared:
                self.declared[name] = self._declare(name, [buffer.type for buffer in buffers])
            attributes: dict[str, ir.Attribute] = {"callee": ir.FlatSymbolRefAttr.get(name)}
            if call.team:
                attributes[TEAM] = _i64(call.team)
            if call.begun:
                attributes[BEGUN] = ir.UnitAttr.get()
            ir.Operation.create("func.call", operands=buffers, attributes=attributes)

    def _write_wait(self) -> None:
        if WAIT not in self.declared:
            self.declared[WAIT] = self._declare(WAIT, [])
        ir.Operation.create("func.call", attributes={"callee": ir.FlatSymbolRefAttr.get(WAIT)})

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
        known = attributes_of(source, TRIP_COUNT, COUNTED)
        with source.location:
            cycles = step.rotation.cycles if step.rotation else []
            names = [name for cycle in cycles for name in cycle]
            following = [name for cycle in cycles for name in cycle[1:] + cycle[:1]]
            homes = [self.places.as_bytes(name) for name in names]
            types = [home.type for home in homes]
            loop = ir.Operation.create(
                "scf.while", results=types, operands=homes, attributes=known, regions=2
            )
            cond, body = (region.blocks.append(*types) for region in loop.regions)
            with ir.InsertionPoint(cond), self.places.moved(names, cond, step.cond):
                self._steps(step.cond)
                predicate = self._load(step.op.cond.yields[0])
                ir.Operation.create("scf.condition", operands=[predicate, *cond.arguments])
            with ir.InsertionPoint(body), self.places.moved(names, body, step.body):
                self._steps(step.body)
                taken = [self.places.moving[name] for name in following]
                ir.Operation.create("scf.yield", operands=taken)
            self._bring_back(step, homes, list(loop.results))

    def _bring_back(self, step: WhileStep, homes: list[ir.Value], ends: list[ir.Value]) -> None:
        """Copy, behind a loop, what is not where it was before. How far a cycle has turned shows in where
        its first group is."""
        cycles = step.rotation.cycles if step.rotation else []
        first = 0
        for cycle, back in zip(cycles, step.back, strict=True):
            for position, steps in enumerate(back, first + 1):
                if not steps:
                    continue
                turned = _same_place(ends[first], homes[position])
                branch = ir.Operation.create("scf.if", operands=[turned], regions=2)
                with ir.InsertionPoint(branch.regions[0].blocks.append()):
                    self._steps(steps)
                    ir.Operation.create("scf.yield")
            first += len(cycle)

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
            "memref.load", results=[of.element_type], operands=[self.places.view(value, of)]
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


def _same_place(a: ir.Value, b: ir.Value) -> ir.Value:
    """Whether two buffers are at one address."""
    index = ir.IndexType.get()
    addresses = [
        ir.Operation.create(
            "memref.extract_aligned_pointer_as_index", results=[index], operands=[buffer]
        ).result
        for buffer in (a, b)
    ]
    equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    return ir.Operation.create(
        "arith.cmpi",
        results=[ir.IntegerType.get_signless(1)],
        operands=addresses,
        attributes={"predicate": equal},
    ).result


def _memref(of: ir.Type) -> ir.Type:
    return ir.MemRefType.get(of.shape, of.element_type)


def _i32(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
