"""From a fused program in MLIR to the planner's model of it."""

from __future__ import annotations

from dataclasses import field

from lamina.dialects import constants
from lamina.dialects.attributes import (
    ALONE_NS,
    COLLECTIVE,
    INOUT,
    LIBRARY,
    MAY_ALIAS,
    integer_of,
    string_of,
)
from lamina.dialects.types import DYNAMIC, byte_size
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.planning.program import Block, Branch, Call, Constant, Program, View, While
from lamina.passes.stablehlo.analysis.facts import TERMINATORS, is_pure
from lamina.records import Record

# A splat constant above this size is filled into the buffer that needs it; below, it is data.
_FILL_ABOVE = 4096


class _Signature(Record):
    """What a kernel says of its arguments: the result that is, or the ones that may be, the same;
    whether it does more than to compute its results, how long it takes if it uses one core, and whether
    it meets other devices."""

    inout: dict[int, int]
    may_alias: dict[int, tuple[int, ...]]
    has_effect: bool
    alone_ns: int
    meets: bool


def _signature(kernel: ir.Operation) -> _Signature:
    inner = [op.operation for block in kernel.regions[0].blocks for op in block.operations]
    is_plain = all(is_pure(op) or op.name in TERMINATORS for op in inner)
    attributes = kernel.attributes
    meets = string_of(kernel, LIBRARY) == COLLECTIVE and len(kernel.regions[0].blocks[0].arguments) > 0
    signature = _Signature({}, {}, not is_plain, integer_of(kernel, ALONE_NS), meets)
    if "arg_attrs" in attributes:
        for position, given in enumerate(attributes["arg_attrs"]):
            if INOUT in given:
                signature.inout[position] = given[INOUT].value
            if MAY_ALIAS in given:
                signature.may_alias[position] = tuple(given[MAY_ALIAS])
    return signature


class Reader(Record, frozen=False):
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
        donated, promised = self._donated(main, body)
        return Program(body, self.bytes, donated, promised)

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
        return Call(
            kernel,
            operands,
            results,
            signature.inout,
            signature.may_alias,
            signature.has_effect,
            signature.alone_ns,
            meets=signature.meets,
            tag=op,
        )

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

    def _donated(
        self, main: ir.Operation, body: Block
    ) -> tuple[dict[int, tuple[int, ...]], dict[int, int]]:
        """For each donated argument the results it fits, and the one that was promised to it."""
        donated: dict[int, tuple[int, ...]] = {}
        promised: dict[int, int] = {}
        if "arg_attrs" not in main.attributes:
            return donated, promised
        for position, given in enumerate(main.attributes["arg_attrs"]):
            promise = given["tf.aliasing_output"] if "tf.aliasing_output" in given else None
            wish = promise.value if isinstance(promise, ir.IntegerAttr) else None
            if wish is None and "jax.buffer_donor" not in given:
                continue
            of = self.types[body.arguments[position]]
            fitting = [i for i, v in enumerate(body.yields) if self.types[v] == of]
            donated[position] = tuple(sorted(fitting, key=lambda i: i != wish))
            if wish in fitting:
                promised[position] = wish
        return donated, promised


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
