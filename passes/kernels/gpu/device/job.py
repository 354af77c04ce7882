"""What a writer of kernels is given: one op, with its operands and results as buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lamina.dialects.attributes import updated_arguments
from lamina.dialects.builders.buffers import reshaped
from lamina.dialects.constants import array_of, dense, is_splat
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import cast, extract, scalar_tensor
from lamina.passes.emit.scalars import Array, Scalar, constant, loop
from lamina.passes.framework.base import CompileError
from lamina.passes.kernels.gpu.device.kernels import Kernel, Kernels, Scratch, TensorMap
from lamina.passes.kernels.gpu.device.thread_numbers import block, thread
from lamina.passes.kernels.gpu.machine import FILLING_BLOCKS
from lamina.records import Record

_THREADS = 256


class Job:
    """The kernels of one op. `launch` adds kernels; in them `array` gives an operand's, a result's
    or a part of scratch memory's elements."""

    def __init__(
        self, module: ir.Module, function: ir.Operation, op: ir.Operation, *, whole: bool = False
    ) -> None:
        """`whole`: results may be those of other ops, too."""
        self.op, self._module, self._old = op, module, function
        block = function.regions[0].blocks[0]
        returned = [_root(v) for v in block.operations[len(block.operations) - 1].operands]
        self._places: dict[ir.Value, int] = {a: n for n, a in enumerate(block.arguments)}
        types = [buffer_type(a.type) for a in block.arguments]
        inout = updated_arguments(function)
        self._constants: dict[ir.Value, Constant] = {}
        for number, value in enumerate(returned):
            if value.owner != op and not whole:
                raise CompileError.at(op, "the CUDA backend needs a kernel of this op's results")
            if number in inout:
                self._places[value] = inout[number]
            else:
                self._places.setdefault(value, len(types))
                types.append(buffer_type(value.type))
        self._scratch = {
            result: Scratch(-1, buffer_type(result.type))
            for result in op.results
            if result not in self._places
        }
        name = function.attributes["sym_name"].value
        with ir.InsertionPoint(module.body):
            placeholder = ir.Operation.create(
                "func.func",
                regions=1,
                attributes={
                    "sym_name": ir.StringAttr.get(f"{name}_placeholder"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                },
            )
        ir.Block.create_at_start(placeholder.regions[0], types)
        self._kernels = Kernels(module, placeholder, [], [], name)
        for result, part in self._scratch.items():
            self._scratch[result] = self.scratch(part.type.shape, part.type.element_type)

    def is_stored(self, value: ir.Value) -> bool:
        """Whether somebody reads a result of the op."""
        return value in self._places

    def scratch(self, shape: Sequence[int], element: ir.Type) -> Scratch:
        """A new part of scratch memory."""
        return self._kernels.scratch(shape, element)

    def launch(
        self, blocks: int, threads: int | tuple[int, int], emit: Callable[[Kernel], None],
        maps: Sequence[TensorMap] = (),
    ) -> None:  # fmt: skip
        """One more kernel, launched after those before it; it has tensor maps as `Kernel.maps`."""
        size = [threads] if isinstance(threads, int) else list(threads)
        self._kernels.add([blocks], size, self.op, emit, maps)

    def annotate(self, name: str, text: str) -> None:
        """Say something of the kernel launched last in an attribute."""
        self._kernels.annotate(name, text)

    def argument_of(self, value: ir.Value) -> int | None:
        """Which argument of kernels an operand or result is; None for constants and scratch memory."""
        return self._places.get(_root(value))

    def each(self, items: int, work: Callable[[Kernel], Callable[[Scalar], None]]) -> None:
        """One more kernel, in which threads do `work(kernel)(item)` for so many items."""
        blocks = min(2 * FILLING_BLOCKS, -(-items // _THREADS))

        def emit(kernel: Kernel) -> None:
            one = work(kernel)
            with loop(block() * _THREADS + thread(), items, blocks * _THREADS) as item:
                one(item)

        self.launch(blocks, _THREADS, emit)

    def array(
        self, kernel: Kernel, value: ir.Value | Scratch, shape: Sequence[int] | None = None
    ) -> Array:
        """An operand, result or part of scratch memory in a kernel, seen in another shape if one is
        given."""
        if not isinstance(value, Scratch) and value in self._scratch:
            value = self._scratch[value]
        if isinstance(value, Scratch):
            buffer, wanted = kernel.view(value), value.type
        else:
            root, wanted = _root(value), buffer_type(value.type)
            if root not in self._places:
                return self._operand_constant(root, list(shape or value.type.shape))
            buffer = kernel.arguments[self._places[root]]
        if shape is not None:
            wanted = ir.MemRefType.get(list(shape), wanted.element_type)
        return Array(reshaped(buffer, wanted))

    def constant(self, value: np.ndarray) -> Constant:
        """A new array that kernels read."""
        of = ir.RankedTensorType(dense(value).type)
        return Constant(self._kernels.constant(dense(value), buffer_type(of)), buffer_type(of))

    def named(self, constant: Constant) -> Array:
        """A constant in a kernel."""
        return Array(
            ir.Operation.create(
                "memref.get_global", results=[constant.type],
                attributes={"name": ir.FlatSymbolRefAttr.get(constant.name)},
            ).result
        )  # fmt: skip

    def shared(self, kernel: Kernel, shape: Sequence[int], element: ir.Type) -> Array:
        """A new buffer that the threads of a block share."""
        return Array(kernel.shared(shape, element))

    def apply(self, region: ir.Region, arguments: Sequence[Scalar]) -> list[Scalar]:
        """What a region of the op gives for scalars, which may be done any number of times."""
        block = region.blocks[0]
        known: dict[ir.Value, ir.Value] = {}
        for argument, scalar in zip(block.arguments, arguments, strict=True):
            element = argument.type.element_type
            known[argument] = scalar_tensor(cast(scalar.value, element))
        *operations, end = [op.operation for op in block.operations]
        for op in operations:
            copied(op, known)
        values = [extract(known.get(v, v), []) for v in end.operands]
        return [Scalar(cast(v, signless(v.type))) for v in values]

    def finish(self) -> None:
        """Leave nothing but the kernels."""
        self._kernels.finish()
        self._old.erase()

    def _operand_constant(self, value: ir.Value, shape: list[int]) -> Array:
        op = value.owner.operation
        element = signless(value.type.element_type)
        if is_splat(op):
            number = array_of(op)[(0,) * len(value.type.shape)]
            return _Repeated(shape, element, number)
        if value not in self._constants:
            given = np.ascontiguousarray(array_of(op))
            dtype = dtype_of(ir.RankedTensorType.get([], element))
            self._constants[value] = self.constant(
                given if given.dtype == dtype else given.view(dtype)
            )
        array = self.named(self._constants[value])
        wanted = ir.MemRefType.get(shape, element)
        return array if array.type == wanted else Array(reshaped(array.buffer, wanted))


class Constant(Record):
    """An array that kernels read."""

    name: str
    type: ir.MemRefType


class _Repeated(Array):
    """One number everywhere."""

    def __init__(self, shape: list[int], element: ir.Type, number: object) -> None:
        self.shape, self.element, self.number = shape, element, number

    def __getitem__(self, at: object) -> Scalar:
        return constant(self.number, self.element)

    def several(self, at: object, count: int) -> list[Scalar]:
        return [self[at]] * count


def signless(element: ir.Type) -> ir.Type:
    """An element type as buffers have it."""
    if isinstance(element, ir.IntegerType) and not element.is_signless:
        return ir.IntegerType.get_signless(element.width)
    return element


def buffer_type(of: ir.Type) -> ir.MemRefType:
    """The type of the buffer that a tensor is in."""
    return ir.MemRefType.get(list(of.shape), signless(of.element_type))


def _root(value: ir.Value) -> ir.Value:
    while not isinstance(value.owner, ir.Block) and value.owner.name == "stablehlo.reshape":
        value = value.owner.operation.operands[0]
    return value
