"""Runs one kernel by its ABI, with memory around each buffer that must stay as it was."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from lamina.backends.cpu.kernel import KernelObject, compile_kernel
from lamina.backends.cpu.products import is_shared, shared_object
from lamina.backends.target import Target
from lamina.dialects.attributes import updated_arguments
from lamina.dialects.context import context, parse
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.runtime.executable import _conversions, _import, _linker

_GUARD = 64
_names = itertools.count()


@dataclass
class Kernel:
    """A compiled kernel that can be called on arrays; `texts` are its stages."""

    made: KernelObject
    inputs: list[tuple[tuple[int, ...], np.dtype]]
    outputs: list[tuple[tuple[int, ...], np.dtype]]
    updates: dict[int, int]  # result -> the input whose buffer it is
    library: Any

    @property
    def texts(self) -> dict[str, str]:
        return self.made.texts

    def __call__(self, *arrays: Any, astray: int = 0) -> list[np.ndarray]:
        """The results, so many bytes behind where a cache line begins. Asserts that other inputs, and
        memory around buffers, stay."""
        buffers = [_buffer(shape, dtype) for shape, dtype in self.inputs]
        for (whole, inner), array in zip(buffers, arrays, strict=True):
            inner[...] = array
            whole.flags.writeable = False
        outs = [
            buffers[self.updates[i]] if i in self.updates else _buffer(shape, dtype, astray)
            for i, (shape, dtype) in enumerate(self.outputs)
        ]
        before = [whole.copy() for whole, _ in buffers]
        scratch, _ = _buffer((self.made.scratch_bytes,), np.dtype(np.uint8))
        own = [outs[i] for i in range(len(outs)) if i not in self.updates]
        pointers = [whole.ctypes.data + _GUARD for whole, _ in (*buffers, *own)]
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(pointers) + 1))
        function(self.library[self.made.symbol])(*pointers, scratch.ctypes.data + _GUARD)
        for number, (whole, _) in enumerate(buffers):
            if number not in self.updates.values():
                assert whole.tobytes() == before[number].tobytes(), f"input {number} was changed"
        for whole in (scratch, *(whole for whole, _ in (*buffers, *outs))):
            assert (whole[:_GUARD] == 0xAB).all() and (whole[-_GUARD:] == 0xAB).all(), (
                "out of bounds"
            )
        return [inner for _, inner in outs]


def kernel(text: str, **machine: int) -> Kernel:
    """The kernel in the first function of a module, compiled for this machine with all texts; or for one that
    has this processor and differs in these facts."""
    target = Target.host()
    target = replace(target, machine=replace(target.machine, **machine)) if machine else target
    with context(), ir.Location.unknown():
        module = parse(text)
        function = module.body.operations[0].operation
        type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        made = compile_kernel(function, target, keep_texts=True)
        updates = updated_arguments(function)
        return Kernel(
            made,
            [(shape_of(t), dtype_of(t)) for t in type_.inputs],
            [(shape_of(t), dtype_of(t)) for t in type_.results],
            updates,
            link(made.object, made.symbol, made.imports),
        )


def kernel_for(target: Target, text: str) -> KernelObject:
    """The kernel in the first function of a module, compiled with all texts, to be looked at: this
    machine may not run it."""
    with context(), ir.Location.unknown():
        module = parse(text)
        return compile_kernel(module.body.operations[0].operation, target, keep_texts=True)


def link(code: bytes, symbol: str, imports: Iterable[str] = ()) -> Any:
    """An object of machine code, loaded; the address of its symbol is its item of that name."""
    builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(symbol)
    shared = set(filter(is_shared, imports))
    for name in shared:
        builder.add_object_img(shared_object(name, Target.host()))
    for name, address in (*map(_import, set(imports) - shared), *_conversions()):
        builder.import_symbol(name, address)
    return builder.link(_linker(), f"kernel{next(_names)}")


def _buffer(
    shape: tuple[int, ...], dtype: np.dtype, astray: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Guarded bytes, and the array of this shape inside them, so far behind a multiple of 64."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.full(size + 3 * _GUARD + astray, 0xAB, np.uint8)
    start = -memory.ctypes.data % _GUARD + astray
    whole = memory[start : start + size + 2 * _GUARD]
    return whole, whole[_GUARD : _GUARD + size].view(dtype).reshape(shape)
