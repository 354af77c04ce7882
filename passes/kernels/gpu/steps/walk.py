"""One kernel that does all steps of a small program: the walk over them that its forms share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.dialects.builders.buffers import reshaped
from lamina.dialects.constants import array_in
from lamina.dialects.vendors import arith, ir, scf
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import index, load
from lamina.passes.emit.scalars import constant
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.find import find_ops
from lamina.passes.kernels.gpu.device.kernels import Kernel, Kernels

STEPS = "lamina.steps"
_CALLEES = ("func.func", "gpu.module")


class Steps:
    """Writes the steps of a function on buffers into a kernel, whose parameters are all arguments but
    the last, the arena."""

    def __init__(self, module: ir.Module, function: ir.Operation) -> None:
        self.module, self.function = module, function
        self.entry = function.regions[0].blocks[0]
        self.parameters = list(self.entry.arguments)[:-1]
        others = [op.operation for op in module.body.operations if op.operation != function]
        self.others = [op for op in others if op.name in _CALLEES]
        self.callees = {
            op.attributes["sym_name"].value: op for op in self.others if op.regions[0].blocks
        }
        self.known: dict[ir.Value, ir.Value] = {}
        self.offsets: dict[ir.Value, int] = {}
        self.splats: dict[ir.Value, tuple[Any, ir.Type]] = {}
        """Constants of one number everywhere, and its type."""

    def write(self, blocks: int, threads: int) -> None:
        """Replaces the function and its callees by the kernel."""
        name = self.function.attributes["sym_name"].value
        types = [parameter.type for parameter in self.parameters]
        with ir.InsertionPoint(self.module.body):
            shell = ir.Operation.create(
                "func.func",
                regions=1,
                attributes={
                    "sym_name": ir.StringAttr.get(f"{name}_shell"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                },
            )
        ir.Block.create_at_start(shell.regions[0], types)
        self.kernels = Kernels(self.module, shell, [], [], name)
        self.kernels.add([blocks], [threads], self.function, self._emit)
        for op in (self.function, *self.others):
            op.erase()
        self.kernels.finish()
        device = self.kernels.device
        used = {op.attributes["name"].value for op in find_ops(device, "memref.get_global")}
        for op in find_ops(device, "memref.global"):
            if op.attributes["sym_name"].value not in used:
                op.erase()

    def _emit(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.known |= dict(zip(self.parameters, kernel.arguments, strict=True))
        self.begin()
        self.block(self.entry)

    # ---- what forms differ in
    def begin(self) -> None:
        """Called first, in the kernel."""

    def place(self, offset: int, type_: ir.MemRefType) -> ir.Value:
        """The buffer at an offset of the arena."""
        raise NotImplementedError

    def copy(self, source: ir.Value, target: ir.Value) -> None:
        """Copies a buffer of the function to another one."""
        raise NotImplementedError

    def call(self, callee: str, buffers: Sequence[ir.Value]) -> None:
        """Does what a callee does to buffers of the function."""
        raise NotImplementedError

    def before(self, op: ir.Operation) -> None:
        """Called before each step."""

    def serially(self, callee: str, buffers: Sequence[ir.Value]) -> None:
        """What a callee of loops on scalars does, in the thread that comes here."""
        block = self.callees[callee].regions[0].blocks[0]
        known = dict(zip(block.arguments, [self.known[b] for b in buffers], strict=True))
        for view in block.operations:
            op = view.operation
            if op.name == "memref.alloc":
                known[op.results[0]] = self.on_stack(ir.MemRefType(op.results[0].type))
            elif op.name not in ("func.return", "memref.dealloc"):
                copy = copied(op, known)
                copy.walk(keep_space, ir.WalkOrder.PRE_ORDER)
                for inner in find_ops(copy, "memref.alloc", "memref.dealloc") if op.regions else ():
                    if inner.name == "memref.alloc":
                        made = self.on_stack(ir.MemRefType(inner.results[0].type))
                        inner.results[0].replace_all_uses_with(made)
                    inner.erase()

    def on_stack(self, type_: ir.MemRefType) -> ir.Value:
        """A new buffer of each thread's own, for the whole kernel."""
        with ir.InsertionPoint.at_block_begin(self.kernel.block):
            return ir.Operation.create(
                "memref.alloca",
                results=[type_],
                attributes={
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
                    "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 16),
                },
            ).result

    # ---- the walk
    def _while(self, op: ir.Operation) -> None:
        loop = ir.Operation.create("scf.while", regions=2)
        before, after = (ir.Block.create_at_start(region, []) for region in loop.regions)
        with ir.InsertionPoint(before):
            self.block(op.regions[0].blocks[0])
        with ir.InsertionPoint(after):
            self.block(op.regions[1].blocks[0])
            scf.YieldOp([])

    def _branches(self, condition: ir.Value, arms: Sequence[Callable[[], None]]) -> None:
        """What one of two arms does."""
        branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
        for arm, region in zip(arms, branch.regions, strict=True):
            with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
                arm()
                scf.YieldOp([])

    def block(self, block: ir.Block) -> None:
        """The steps of a block."""
        for view in block.operations:
            with view.operation.location:
                self.before(view.operation)
                self._step(view.operation)

    def _arm(self, region: ir.Region) -> Callable[[], None]:
        def steps() -> None:
            for block in region.blocks:  # an `else` that does nothing has none
                self.block(block)

        return steps

    def _step(self, op: ir.Operation) -> None:
        match op.name:
            case "arith.constant":
                self.offsets[op.results[0]] = op.attributes["value"].value
            case "memref.view":
                of = ir.MemRefType(op.results[0].type)
                self.known[op.results[0]] = self.place(self.offsets[op.operands[1]], of)
            case "memref.reinterpret_cast":
                of = ir.MemRefType(op.results[0].type)
                self.known[op.results[0]] = seen_as(self.known[op.operands[0]], of)
                if op.operands[0] in self.splats:
                    self.splats[op.results[0]] = self.splats[op.operands[0]]
            case "memref.get_global":
                self._constant(op)
            case "memref.copy":
                self.copy(*op.operands)
            case "func.call":
                self.call(op.attributes["callee"].value, list(op.operands))
            case "memref.load":
                self.known[op.results[0]] = load(self.known[op.operands[0]], [])
            case "arith.index_cast":
                made = arith.IndexCastOp(op.results[0].type, self.known[op.operands[0]])
                self.known[op.results[0]] = made.result
            case "scf.while":
                self._while(op)
            case "scf.if":
                self._branches(self.known[op.operands[0]], [self._arm(r) for r in op.regions])
            case "scf.index_switch":
                self._switch(op)
            case "scf.condition":
                scf.ConditionOp(self.known[op.operands[0]], [])
            case "scf.yield" | "func.return":
                pass
            case name:
                raise CompileError.at(op, f"{name} in a program of one kernel")

    def _constant(self, op: ir.Operation) -> None:
        """A constant array, unless it is one number everywhere that is only copied."""
        found = ir.SymbolTable(self.module.operation)[op.attributes["name"].value].operation
        array = array_in(found, "initial_value", op.results[0].type)
        if array.size and not any(array.strides):
            element = ir.MemRefType(op.results[0].type).element_type
            self.splats[op.results[0]] = (array.flat[0], element)
        uses = [use.owner.operation.name for use in op.results[0].uses]
        if op.results[0] not in self.splats or set(uses) != {"memref.copy"}:
            self.known[op.results[0]] = op.clone().operation.results[0]

    def read(self, source: ir.Value) -> Callable[[Sequence[ir.Value]], ir.Value]:
        """What reads an element of a buffer of the function."""
        if source in self.splats:
            value = constant(*self.splats[source]).value
            return lambda at: value
        return lambda at: load(self.known[source], at)

    def _switch(self, op: ir.Operation) -> None:
        """Branches in branches: all threads of a warp go the same way."""
        which = self.known[op.operands[0]]
        default, *cases = [self._arm(region) for region in op.regions]

        def rest(numbers: Sequence[int], arms: Sequence[Callable[[], None]]) -> None:
            if not numbers:
                return default()
            here = arith.CmpIOp(arith.CmpIPredicate.eq, which, index(numbers[0])).result
            return self._branches(here, [arms[0], lambda: rest(numbers[1:], arms[1:])])

        rest(list(op.attributes["cases"]), cases)


def keep_space(op: ir.Operation) -> ir.WalkResult:
    """Lets a view of shared memory be one."""
    if op.name.startswith("memref.") and op.results and op.operands:
        source, result = op.operands[0].type, op.results[0].type
        if isinstance(source, ir.MemRefType) and isinstance(result, ir.MemRefType):
            space = source.memory_space
            if space != result.memory_space:
                op.results[0].set_type(
                    ir.MemRefType.get(result.shape, result.element_type, result.layout, space)
                )
    return ir.WalkResult.ADVANCE


def seen_as(buffer: ir.Value, wanted: ir.MemRefType) -> ir.Value:
    """The same buffer, wherever it is, under another shape."""
    space = ir.MemRefType(buffer.type).memory_space
    return reshaped(
        buffer, ir.MemRefType.get(wanted.shape, wanted.element_type, memory_space=space)
    )
