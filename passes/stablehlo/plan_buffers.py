"""Give every value of a fused program a place in memory: arguments, results, or one arena.

    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @fused_sine_0(%x)
      %1 = call @fused_cosine_1(%0)
      return %1
    }
becomes
    func.func public @main(%x: memref<4xf32>, %result: memref<4xf32>, %arena: memref<?xi8>) {
      %view = memref.view %arena[%c0][]
      call @fused_sine_0(%x, %view)
      call @fused_cosine_1(%view, %result)
    }

Expects @main with calls of kernels, reshapes (views, free), constants, `scf.while/if/index_switch`
on tensors, and nothing else; every kernel is a private function of the module. Leaves @main on
memrefs, a declaration for each kernel, and the kernels' bodies in a module `@kernels` beside it.
Buffers are reused, loops update their carries in place, and what is donated (`tf.aliasing_output`,
`jax.buffer_donor`) is overwritten; `lamina.inout` on a kernel's argument says that it overwrites it,
and where overwriting pays a kernel with `lamina.may_alias` gets a variant that does. How the
decisions are made is told in passes/planning.
example: test/passes/stablehlo/plan_buffers.mlir
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from lamina.dialects import constants
from lamina.dialects.types import DYNAMIC, dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.base import CompileError, Pass
from lamina.passes.planning.plan import (
    BranchStep,
    CallStep,
    CopyStep,
    Plan,
    Slot,
    Step,
    WhileStep,
    make_plan,
)
from lamina.passes.planning.program import Block, Branch, Call, Constant, Program, View, While

# A splat constant above this size is filled into the buffer that needs it; below, it is data.
_FILL_ABOVE = 4096


@dataclass(frozen=True)
class PlanBuffers(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        functions = {
            op.attributes["sym_name"].value: op.operation
            for op in module.body.operations
            if op.operation.name == "func.func"
        }
        main = functions.pop("main", None)
        if main is None:
            raise CompileError("builtin.module", None, "there is no function @main to plan")
        reader = _Reader(functions)
        program = reader.read(main)
        plan = make_plan(program)
        _Writer(module, main, functions, reader, program, plan).write()
        self.count("arena bytes", plan.arena_bytes)
        self.count("donations unused", len(plan.unused_donations))


def byte_size(of: ir.Type) -> int:
    """The bytes that a tensor takes in memory, where elements narrower than a byte take one."""
    return math.prod(of.shape) * dtype_of(of).itemsize


@dataclass(frozen=True)
class _Signature:
    """What a kernel says of its arguments: position -> the result that is, or may be, the same."""

    inout: dict[int, int]
    may_alias: dict[int, int]


def _signature(kernel: ir.Operation) -> _Signature:
    found: dict[str, dict[int, int]] = {"lamina.inout": {}, "lamina.may_alias": {}}
    if "arg_attrs" in kernel.attributes:
        for position, given in enumerate(kernel.attributes["arg_attrs"]):
            for name, pairs in found.items():
                if name in given:
                    pairs[position] = given[name].value
    return _Signature(found["lamina.inout"], found["lamina.may_alias"])


@dataclass
class _Reader:
    """From MLIR to the planner's model; `types` and `constants` keep what the model leaves out."""

    functions: dict[str, ir.Operation]
    ids: dict[ir.Value, int] = field(default_factory=dict)
    types: list[ir.Type] = field(default_factory=list)
    bytes: dict[int, int] = field(default_factory=dict)
    constants: dict[int, ir.Operation] = field(default_factory=dict)
    signatures: dict[str, _Signature] = field(default_factory=dict)
    sizes: dict[ir.Type, int] = field(default_factory=dict)

    def read(self, main: ir.Operation) -> Program:
        block = main.regions[0].blocks[0]
        body = Block([self._define(value, main) for value in block.arguments])
        leave = self._read_block(block, body)
        body.yields = [self.ids[value] for value in leave.operands]
        return Program(body, self.bytes, self._donated(main, body))

    def _define(self, value: ir.Value, op: ir.Operation) -> int:
        number = self.ids[value] = len(self.types)
        of = value.type
        size = self.sizes.get(of)
        if size is None:
            size = self.sizes[of] = _checked_size(of, op)
        self.types.append(of)
        self.bytes[number] = size
        return number

    def _read_block(self, block: ir.Block, into: Block) -> ir.Operation:
        """Append the operations of `block` to `into`; gives back its terminator."""
        ids = self.ids
        last: ir.Operation | None = None
        for view in block.operations:
            op = last = view.operation
            name = op.name
            if name == "func.call":
                into.ops.append(self._call(op))
            elif name == "stablehlo.reshape":
                into.ops.append(View(ids[op.operands[0]], self._define(op.results[0], op), op))
            elif name == "stablehlo.constant":
                into.ops.append(self._constant(op))
            elif name in ("tensor.extract", "arith.index_cast"):
                # Only ever the choice of an enclosing op: it reads the tensor's one element itself.
                ids[op.results[0]] = ids[op.operands[0]]
            elif name == "scf.while":
                into.ops.append(self._while(op))
            elif name in ("scf.if", "scf.index_switch"):
                into.ops.append(self._branch(op))
            elif name not in ("func.return", "scf.yield", "scf.condition"):
                raise CompileError.at(op, "is not in a kernel, so it has no place in a plan")
        assert last is not None, "a block without a terminator"
        return last

    def _call(self, op: ir.Operation) -> Call:
        kernel = op.attributes["callee"].value
        signature = self.signatures.get(kernel)
        if signature is None:
            if kernel not in self.functions:
                raise CompileError.at(op, f"calls @{kernel}, which is no function of the module")
            signature = self.signatures[kernel] = _signature(self.functions[kernel])
        operands = [self.ids[value] for value in op.operands]
        results = [self._define(value, op) for value in op.results]
        return Call(kernel, operands, results, signature.inout, signature.may_alias, op)

    def _constant(self, op: ir.Operation) -> Constant:
        number = self._define(op.results[0], op)
        self.constants[number] = op
        fill = self.bytes[number] > _FILL_ABOVE and constants.is_splat(op)
        return Constant(number, fill, op)

    def _while(self, op: ir.Operation) -> While:
        operands = [self.ids[value] for value in op.operands]
        blocks = []
        for region in op.regions:
            source = region.blocks[0]
            block = Block([self._define(value, op) for value in source.arguments])
            leave = self._read_block(source, block)
            block.yields = [self.ids[value] for value in leave.operands]
            blocks.append(block)
        cond, body = blocks
        if cond.yields[1:] != cond.arguments:
            raise CompileError.at(op, "hands other values than its carry from condition to body")
        cond.yields = cond.yields[:1]
        return While(operands, cond, body, [self._define(v, op) for v in op.results], op)

    def _branch(self, op: ir.Operation) -> Branch:
        blocks = []
        for region in op.regions:
            block = Block()
            leave = self._read_block(region.blocks[0], block)
            block.yields = [self.ids[value] for value in leave.operands]
            blocks.append(block)
        selector = self.ids[op.operands[0]]
        return Branch(selector, blocks, [self._define(v, op) for v in op.results], op)

    def _donated(self, main: ir.Operation, body: Block) -> dict[int, tuple[int, ...]]:
        """For each donated argument the results it fits, the one it was donated for first."""
        if "arg_attrs" not in main.attributes:
            return {}
        donated = {}
        for position, given in enumerate(main.attributes["arg_attrs"]):
            wish = given["tf.aliasing_output"].value if "tf.aliasing_output" in given else None
            if wish is None and "jax.buffer_donor" not in given:
                continue
            of = self.types[body.arguments[position]]
            fitting = [i for i, v in enumerate(body.yields) if self.types[v] == of]
            donated[position] = tuple(sorted(fitting, key=lambda i: i != wish))
        return donated


def _checked_size(of: ir.Type, op: ir.Operation) -> int:
    if not isinstance(of, ir.RankedTensorType):
        raise CompileError.at(op, f"has a value of type {of}; only tensors are supported")
    if DYNAMIC in of.shape:
        raise CompileError.at(
            op,
            f"has a value of type {of}, whose size is not known",
            "compile for static shapes: dynamic sizes are not supported yet",
        )
    try:
        return byte_size(of)
    except TypeError:
        raise CompileError.at(op, f"has elements of type {of.element_type}") from None


class _Writer:
    """From a plan to MLIR."""

    def __init__(
        self,
        module: ir.Module,
        main: ir.Operation,
        functions: dict[str, ir.Operation],
        reader: _Reader,
        program: Program,
        plan: Plan,
    ) -> None:
        self.module = module
        self.main = main
        self.functions = functions
        self.reader = reader
        self.program = program
        self.plan = plan
        self.memrefs = {of: ir.MemRefType.get(of.shape, of.element_type) for of in reader.sizes}
        self.views: dict[tuple[Slot, ir.Type], ir.Value] = {}
        self.used: dict[str, tuple[str, tuple[tuple[int, int], ...]]] = {}
        self.declared: dict[str, ir.Operation] = {}

    def write(self) -> None:
        main, plan, program = self.main, self.plan, self.program
        with main.location, ir.InsertionPoint(main):
            self._globals()
            new = self._main()
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
            notes[len(body.arguments) + result]["lamina.alias_of"] = _i64(argument)
        new = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get("main"),
                "sym_visibility": ir.StringAttr.get("public"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, [])),
                "arg_attrs": ir.ArrayAttr.get([ir.DictAttr.get(note) for note in notes]),
                "lamina.arguments": _i64(len(body.arguments)),
                "lamina.arena_bytes": _i64(self.plan.arena_bytes),
                "lamina.unused_donations": ir.DenseI64ArrayAttr.get(self.plan.unused_donations),
            },
            regions=1,
        )
        new.regions[0].blocks.append(*inputs)
        return new

    def _globals(self) -> None:
        for number, op in self.reader.constants.items():
            text = _printed_value(op)
            of = self.memrefs[self.reader.types[number]]
            made = ir.Operation.parse(
                f'memref.global "private" constant @constant_{number} : {of} = {text}'
            )
            ir.InsertionPoint(self.main).insert(made)

    # Views, all at the top, in the order of their addresses.

    def _write_views(self, block: ir.Block) -> None:
        arguments = len(self.program.body.arguments)
        arena = block.arguments[len(block.arguments) - 1]
        offsets: dict[int, ir.Value] = {}
        wanted: dict[tuple[Slot, ir.Type], set[tuple[int, int]]] = {}
        for value, of in self._uses(self.plan.steps):
            slot = self._slot(value)
            spans = wanted.setdefault((slot, of), set())
            if slot.space == "arena":
                spans.add(self.plan.lifetime(value))
        index = ir.IndexType.get()
        for (slot, of), spans in sorted(wanted.items(), key=lambda use: _address(use[0][0])):
            memref = self.memrefs[of]
            if slot.space == "arena":
                offset = offsets.get(slot.index)
                if offset is None:
                    offset = offsets[slot.index] = _constant_index(index, slot.index)
                made = ir.Operation.create(
                    "memref.view",
                    results=[memref],
                    operands=[arena, offset],
                    attributes={"lamina.live": ir.StringAttr.get(_spans(spans))},
                ).result
            elif slot.space == "constant":
                name = ir.FlatSymbolRefAttr.get(f"constant_{slot.index}")
                made = ir.Operation.create(
                    "memref.get_global", results=[memref], attributes={"name": name}
                ).result
            else:
                first = 0 if slot.space == "argument" else arguments
                made = _as_type(block.arguments[first + slot.index], memref)
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
            name += "_over_" + "_".join(str(operand) for operand, _ in extra)
        buffers = [self._view(value, types[value]) for value in self._buffers(step)]
        with call.tag.location:
            self.used.setdefault(name, (call.kernel, extra))
            if name not in self.declared:
                self.declared[name] = self._declare(name, [buffer.type for buffer in buffers])
            ir.Operation.create(
                "func.call",
                operands=buffers,
                attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
            )

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
        with step.op.tag.location:
            loop = ir.Operation.create("scf.while", regions=2)
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
        """Move the kernels that are called into a module of their own, variants made; drop the rest."""
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
        for name in self.used:
            made = variants.get(name) or self.functions.pop(name)
            if name not in variants:
                made.detach_from_parent()
            made.attributes["sym_name"] = ir.StringAttr.get(name)
            _drop_wishes(made)
            block.append(made)
        for unused in self.functions.values():
            unused.erase()


def _set_inout(kernel: ir.Operation, pairs: dict[int, int]) -> None:
    given = list(kernel.attributes["arg_attrs"])
    for argument, result in pairs.items():
        given[argument] = ir.DictAttr.get(
            _as_dict(given[argument]) | {"lamina.inout": _i32(result)}
        )
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(given)


def _drop_wishes(kernel: ir.Operation) -> None:
    """What a kernel may do has been decided: equal kernels must print equally from here on."""
    if "arg_attrs" not in kernel.attributes:
        return
    given = [_as_dict(attributes) for attributes in kernel.attributes["arg_attrs"]]
    if any("lamina.may_alias" in attributes for attributes in given):
        for attributes in given:
            attributes.pop("lamina.may_alias", None)
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in given])


def _as_dict(attributes: ir.DictAttr) -> dict[str, ir.Attribute]:
    return {named.name: named.attr for named in attributes}


def _address(slot: Slot) -> tuple[int, int]:
    return ("argument", "result", "constant", "arena").index(slot.space), slot.index


def _spans(spans: set[tuple[int, int]]) -> str:
    """When the buffers at one place are in use, in the order of the steps, for people to read."""
    shown = [f"{first}..{last}" for first, last in sorted(spans)[:4]]
    more = len(spans) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _as_type(buffer: ir.Value, wanted: ir.MemRefType) -> ir.Value:
    """The same buffer under another shape (element types and sizes are equal)."""
    if buffer.type == wanted:
        return buffer
    shape = list(wanted.shape)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return ir.Operation.create(
        "memref.reinterpret_cast",
        results=[wanted],
        operands=[buffer],
        attributes={
            "static_offsets": ir.DenseI64ArrayAttr.get([0]),
            "static_sizes": ir.DenseI64ArrayAttr.get(shape),
            "static_strides": ir.DenseI64ArrayAttr.get(strides),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        },
    ).result


def _printed_value(constant: ir.Operation) -> str:
    """The dense value as text: handling the attribute itself fails for complex elements."""
    text = constant.get_asm()
    return text[text.index("dense") : text.rindex(" : ")]


def _constant_index(index: ir.Type, value: int) -> ir.Value:
    return ir.Operation.create(
        "arith.constant", results=[index], attributes={"value": ir.IntegerAttr.get(index, value)}
    ).result


def _i32(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
