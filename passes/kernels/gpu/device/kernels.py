"""The `gpu.func`s that come of one function: their shells, scratch and shared memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from lamina.dialects.attributes import DYNAMIC_SHARED_BYTES, SCRATCH_BYTES, TENSOR_MAPS
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import index
from lamina.passes.framework.base import CompileError
from lamina.passes.kernels.gpu.device.threads import SHARED_SPACE
from lamina.passes.kernels.gpu.machine import STATIC_SHARED_BYTES
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

SHARED_BYTES = STATIC_SHARED_BYTES * 5 // 6
"""What temporaries may take of it."""
_ALIGNMENT = 256
_MOST_BLOCKS = 2**31 - 1  # range

Emit = Callable[["Kernel"], None]


class Scratch(Record):
    """A part of a function's scratch memory."""

    offset: int
    type: ir.MemRefType


class TensorMap(Record):
    """A tensor of which the GPU copies boxes to shared memory, rows of 128 bytes in swizzled order.
    Dimensions are listed from the innermost out, strides in bytes without the innermost."""

    argument: int
    """Of the kernel: where the tensor lies, `offset` bytes behind its beginning."""
    offset: int
    element: ir.Type
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]

    def attribute(self) -> ir.DictAttr:
        """What kernels say of it in `lamina.tensor_maps`."""
        arrays = {"sizes": self.sizes, "strides": self.strides, "box": self.box}
        return ir.DictAttr.get(
            {
                "argument": ir.IntegerAttr.get(_word(), self.argument),
                "offset": ir.IntegerAttr.get(_word(), self.offset),
                "element": ir.TypeAttr.get(self.element),
                **{name: ir.DenseI64ArrayAttr.get(list(of)) for name, of in arrays.items()},
            }
        )


class Kernels:
    """Builds kernels at the end of a gpu.module that takes the function's place."""

    def __init__(
        self,
        module: ir.Module,
        function: ir.Operation,
        setup: Sequence[ir.Operation],
        temporaries: Sequence[ir.Operation],
        name: str = "",
        one_block: bool = False,
    ) -> None:
        """`one_block`: whoever runs the kernels does all their blocks in one: parts are not worth their
        while, and kernels with barriers have as many threads as that one."""
        self.one_block = one_block
        self.module, self.function, self.setup = module, function, setup
        self.block = function.regions[0].blocks[0]
        self.name = name or ir.StringAttr(function.attributes["sym_name"]).value
        self.temporaries = [op.results[0] for op in temporaries]
        self.offsets: dict[ir.Value, int] = {}
        self.fills: dict[ir.Operation, list[ir.Operation]] = {}
        """Reductions -> the fills that give their results initial values, and are no kernels."""
        self.kernels = 0
        self.constants = 0
        self.scratch_bytes = 0
        with ir.InsertionPoint(module.body):
            self.device = ir.Operation.create(
                "gpu.module", regions=1, attributes={"sym_name": ir.StringAttr.get(f"{self.name}_gpu")}
            )
        self.body = ir.Block.create_at_start(self.device.regions[0], [])
        for op in list(module.body.operations):
            if op.operation.name == "memref.global":
                with ir.InsertionPoint(self.body):
                    op.operation.clone()

    def add(
        self, grid: Sequence[int], threads: Sequence[int], op: ir.Operation, emit: Emit,
        maps: Sequence[TensorMap] = (),
    ) -> None:  # fmt: skip
        """One more kernel, in whose body `emit` works; its last arguments are tensor maps. Raises
        CompileError for too many blocks."""
        if math.prod(grid) > _MOST_BLOCKS:
            raise CompileError.at(op, f"needs {math.prod(grid)} blocks, more than a GPU can count")
        signature = self._signature(len(maps))
        with ir.InsertionPoint(self.body), op.location:
            function = ir.Operation.create(
                "gpu.func",
                regions=1,
                attributes={
                    "sym_name": ir.StringAttr.get(f"{self.name}_{self.kernels}"),
                    "function_type": ir.TypeAttr.get(signature),
                    "gpu.kernel": ir.UnitAttr.get(),
                    "known_block_size": ir.DenseI32ArrayAttr.get(_three(threads)),
                    "known_grid_size": ir.DenseI32ArrayAttr.get(_three(grid)),
                },
            )
            if maps:
                described = [one.attribute() for one in maps]
                function.attributes[TENSOR_MAPS] = ir.ArrayAttr.get(described)
            block = ir.Block.create_at_start(function.regions[0], signature.inputs)
            with ir.InsertionPoint(block):
                emit(Kernel(self, block))
                ir.Operation.create("gpu.return")
        self.kernels += 1

    def _signature(self, maps: int) -> ir.FunctionType:
        """The function's arguments, the scratch memory, as far as its size is known by now, and the
        addresses of tensor maps."""
        arguments = [argument.type for argument in self.block.arguments]
        scratch = ir.MemRefType.get([self.scratch_bytes], _byte())
        map_ = ir.Type.parse("!llvm.ptr")
        return ir.FunctionType.get([*arguments, scratch, *[map_] * maps], [])

    def place_of(self, buffer: ir.Value) -> tuple[int, int] | None:
        """Which argument of kernels a buffer of the function begins in, and how many bytes behind its
        beginning; None for one that is neither an argument nor a temporary."""
        if buffer in self.temporaries:
            return len(self.block.arguments), self.offset_of(buffer)
        arguments = list(self.block.arguments)
        return (arguments.index(buffer), 0) if buffer in arguments else None

    def offset_of(self, temporary: ir.Value) -> int:
        """Where a temporary lies in scratch memory."""
        if temporary not in self.offsets:
            type_ = ir.MemRefType(temporary.type)
            self.offsets[temporary] = self.scratch(type_.shape, type_.element_type).offset
        return self.offsets[temporary]

    def scratch(self, shape: Sequence[int], element: ir.Type) -> Scratch:
        """A new part of scratch memory, which kernels see by `Kernel.view`."""
        found = Scratch(self.scratch_bytes, ir.MemRefType.get(list(shape), element))
        self.scratch_bytes += -(-_bytes(found.type) // _ALIGNMENT) * _ALIGNMENT
        return found

    def constant(self, value: ir.Attribute, type_: ir.MemRefType) -> str:
        """The name of a new array that all kernels read."""
        name = f"{self.name}_constant_{self.constants}"
        self.constants += 1
        self.global_(name, type_, {"initial_value": value, "constant": ir.UnitAttr.get()})
        return name

    def global_(
        self, name: str, type_: ir.MemRefType, attributes: Mapping[str, ir.Attribute]
    ) -> None:
        """A buffer for all kernels, aligned to 16 bytes if the attributes don't say more."""
        with ir.InsertionPoint.at_block_begin(self.body):
            ir.Operation.create(
                "memref.global",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "type": ir.TypeAttr.get(type_),
                    "alignment": ir.IntegerAttr.get(_word(), 16),
                    **attributes,
                },
            )

    def annotate(self, name: str, text: str) -> None:
        """Say something of the kernel added last in an attribute."""
        last = self.body.operations[len(self.body.operations) - 1].operation
        last.attributes[name] = ir.StringAttr.get(text)

    def finish(self) -> None:
        """Erase the function, now that its kernels stand."""
        self.device.attributes[SCRATCH_BYTES] = ir.IntegerAttr.get(_word(), self.scratch_bytes)
        for op in self.body.operations:
            if op.operation.name == "gpu.func":
                count = len(self.block.arguments)
                arguments = op.operation.regions[0].blocks[0].arguments
                signature = self._signature(len(arguments) - count - 1)
                scratch = arguments[count]
                scratch.set_type(signature.inputs[count])
                op.operation.attributes["function_type"] = ir.TypeAttr.get(signature)
        self.function.erase()
        operations = [op.operation for op in self.module.body.operations]
        if any(op.name == "func.func" for op in operations):
            return  # which may use them
        for op in operations:
            if op.name == "memref.global":
                op.erase()


class Kernel:
    """One kernel in the making: `replaced` maps the function's values to the kernel's."""

    def __init__(self, kernels: Kernels, block: ir.Block) -> None:
        self.kernels, self.block = kernels, block
        self.shared_bytes = 0
        self.slots = 0
        self.views: dict[int, ir.Value] = {}
        count = len(kernels.block.arguments)
        arguments, self.scratch = list(block.arguments)[:count], block.arguments[count]
        self.arguments, self.maps = arguments, list(block.arguments)[count + 1 :]
        self.replaced: dict[ir.Value, ir.Value] = dict(zip(kernels.block.arguments, arguments))

    def prepare(
        self, ops: Sequence[ir.Operation], local: dict[ir.Value, ir.Value] | None = None
    ) -> None:
        """Make what the ops use: constants, views and temporaries, but for `local` ones."""
        self.replaced |= local or {}
        self.prepare_values(used_values(ops))

    def prepare_values(self, values: Iterable[ir.Value]) -> None:
        """Make these values of the function, and what they are made of."""
        needed = set(values)
        wanted = []
        for op in reversed(self.kernels.setup):
            if any(result in needed for result in op.results):
                wanted.append(op)
                needed.update(op.operands)
        for value in self.kernels.temporaries:
            if value in needed and value not in self.replaced:
                type_ = ir.MemRefType(value.type)
                dense = ir.MemRefType.get(type_.shape, type_.element_type)
                self.replaced[value] = self.view(Scratch(self.kernels.offset_of(value), dense))
        for op in reversed(wanted):
            copied(op, self.replaced)

    def view(self, part: Scratch) -> ir.Value:
        """A part of scratch memory as a buffer."""
        if part.offset not in self.views:
            with ir.InsertionPoint.at_block_begin(self.block):  # for all that follows, in any loop
                start = index(part.offset)
            with ir.InsertionPoint.after(start.owner):
                self.views[part.offset] = ir.Operation.create(
                    "memref.view", results=[part.type], operands=[self.scratch, start]
                ).result
        return self.views[part.offset]

    def shared(self, shape: Sequence[int], element: ir.Type) -> ir.Value:
        """A new buffer that the threads of a block share."""
        type_ = _shared_type(shape, element)
        self.shared_bytes += _bytes(type_)
        return self._shared(type_, {"initial_value": ir.UnitAttr.get()})

    def dynamic_shared(self, size: int) -> ir.Value:
        """So many bytes that the threads of a block share, aligned to 1024, which may be more than
        every GPU grants: whoever launches the kernel asks for them. Once for a kernel."""
        function = self.block.owner
        function.attributes[DYNAMIC_SHARED_BYTES] = ir.IntegerAttr.get(_word(), size)
        return self._shared(
            _shared_type([size], _byte()), {"alignment": ir.IntegerAttr.get(_word(), 1024)}
        )

    def _shared(self, type_: ir.MemRefType, attributes: Mapping[str, ir.Attribute]) -> ir.Value:
        name = f"{self.kernels.name}_{self.kernels.kernels}_shared_{self.slots}"
        self.slots += 1
        self.kernels.global_(name, type_, attributes)
        return ir.Operation.create(
            "memref.get_global", results=[type_], attributes={"name": ir.FlatSymbolRefAttr.get(name)}
        ).result


def used_values(ops: Iterable[ir.Operation]) -> set[ir.Value]:
    """The operands of ops and of those in them."""
    found: set[ir.Value] = set()

    def need(op: ir.Operation) -> ir.WalkResult:
        found.update(op.operands)
        return ir.WalkResult.ADVANCE

    for op in ops:
        op.walk(need)
    return found


def _shared_type(shape: Sequence[int], element: ir.Type) -> ir.MemRefType:
    space = ir.IntegerAttr.get(_word(), SHARED_SPACE)
    return ir.MemRefType.get(list(shape), element, memory_space=space)


def _three(sizes: Sequence[int]) -> list[int]:
    return [*sizes, 1, 1][:3]


def _bytes(type_: ir.MemRefType) -> int:
    return math.prod(type_.shape) * element_bytes(type_.element_type)


def _byte() -> ir.Type:
    return ir.IntegerType.get_signless(8)


def _word() -> ir.Type:
    return ir.IntegerType.get_signless(64)
