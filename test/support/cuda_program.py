"""Runs a whole program for a GPU by the PTX of its kernels, as it is assembled: the planned form's steps, in order.

Loops and branches, which the runtime does, are not done here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import lamina
from lamina.backends.cuda.kernel import CudaKernel, compile_kernel
from lamina.backends.planned import kernels_of
from lamina.backends.stages import run_fuse, run_optimize, run_plan, working_copy
from lamina.backends.target import Target
from lamina.dialects.constants import array_in
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.instrumentation import Instrumentation
from support import ptx

MAP_ELEMENTS: dict[int, Any] = {0: np.uint8, 6: np.float16, 9: ml_dtypes.bfloat16, 11: np.float32}
"""By the driver's number of a tensor map's type."""
TF32 = 11


class Program:
    """A function compiled for a GPU, as kernels and the steps that use them."""

    def __init__(self, function: Callable[..., Any], *arguments: Any, arch: str = "sm_90a") -> None:
        lowered = lamina.jit(function, keep_unused=True).lower(*arguments)
        module = working_copy(lowered.compiler_ir())
        watch = Instrumentation()
        run_optimize(module, watch, "cuda")
        run_fuse(module, watch, "cuda")
        run_plan(module, watch, "cuda")
        self.module, self.target = module, Target("cuda", arch)
        self.arguments = arguments
        self.kernels: dict[str, CudaKernel] = {
            name: compile_kernel(kernel, self.target) for name, kernel in kernels_of(module).items()
        }
        self.seed = 0
        """Of the order in which blocks run."""
        self.counts: Counter[str] = Counter()
        """What launches counted, in the last run."""
        self._measures = False
        self._parsed: dict[str, tuple[str, ptx.Program]] = {}

    @property
    def ptx(self) -> str:
        """That of all kernels."""
        return "".join(kernel.ptx for kernel in self.kernels.values())

    def run(self, texts: dict[str, str] | None = None, measures: bool = False) -> list[np.ndarray]:
        """The results, by the kernels' PTX or by other texts in its place. `measures`: what memory costs is counted,
        too."""
        main = ir.SymbolTable(self.module.operation)["main"].operation
        block = main.regions[0].blocks[0]
        given = main.attributes["lamina.arguments"].value
        values: dict[ir.Value, Any] = {
            argument: np.array(array, dtype_of(argument.type), order="C")
            for argument, array in zip(block.arguments, self.arguments[:given])
        }
        results = []
        for argument in list(block.arguments)[given:-1]:
            array = np.zeros(argument.type.shape, dtype_of(argument.type))
            array.view(np.uint8 if array.ndim else array.dtype)[...] = 77
            values[argument] = array
            results.append(array)
        arena = np.zeros(main.attributes["lamina.arena_bytes"].value, np.int8)
        arena[:] = 77
        values[list(block.arguments)[-1]] = arena
        self.counts.clear()
        self._measures = measures
        for view in block.operations:
            self._step(view.operation, values, texts or {})
        return results

    def conflicts(self, *forms: str) -> int:
        """How often instructions whose names begin so met in banks of shared memory, in a run that measured."""
        assert self._measures
        began = tuple(f"{ptx.CONFLICTS} of {form}" for form in forms)
        return sum(count for name, count in self.counts.items() if name.startswith(began))

    def call(self, name: str, operands: list[np.ndarray], texts: dict[str, str]) -> None:
        """Runs a kernel on what it is given."""
        kernel = self.kernels[name]
        emulated = self._emulated(name, texts.get(name, kernel.ptx))
        scratch = np.full(kernel.scratch_bytes, 0xAB, np.uint8)
        given = [ptx.Pointer(array) for array in operands]
        for launch in kernel.launches:
            maps = [tensor_map(one, operands) for one in launch.tensor_maps]
            pointers = [*given, ptx.Pointer(scratch), *maps]
            self.counts += emulated.launch(
                launch.name, launch.grid, launch.block, pointers, launch.dynamic_shared_bytes, self.seed,
                measures=self._measures,
            )  # fmt: skip

    def _emulated(self, name: str, text: str) -> ptx.Program:
        if name not in self._parsed or self._parsed[name][0] != text:
            self._parsed[name] = text, ptx.Program(text)
        return self._parsed[name][1]

    def _step(self, op: ir.Operation, values: dict[ir.Value, Any], texts: dict[str, str]) -> None:
        operands = [values[value] for value in op.operands]
        match op.name:
            case "arith.constant":
                values[op.results[0]] = op.attributes["value"].value
            case "memref.view":
                of = op.results[0].type
                dtype = dtype_of(of)
                end = operands[1] + math.prod(of.shape) * dtype.itemsize
                values[op.results[0]] = operands[0][operands[1] : end].view(dtype).reshape(of.shape)
            case "memref.reinterpret_cast":
                values[op.results[0]] = operands[0].reshape(op.results[0].type.shape)
            case "memref.get_global":
                name = op.attributes["name"].value
                found = ir.SymbolTable(self.module.operation)[name].operation
                of = ir.TypeAttr(found.attributes["type"]).value
                array = np.ascontiguousarray(array_in(found, "initial_value", of))
                values[op.results[0]] = array.reshape(of.shape)
            case "memref.copy":
                operands[1][...] = operands[0]
            case "func.call":
                self.call(op.attributes["callee"].value, operands, texts)
            case "func.return":
                pass
            case _:
                raise NotImplementedError(f"a program's step {op.name}")


def tensor_map(described: dict[str, Any], operands: list[np.ndarray]) -> ptx.TensorMap:
    """The tensor map that a launch is given, as its manifest describes it."""
    array = operands[described["parameter"]]
    size = np.dtype(MAP_ELEMENTS[described["type"]]).itemsize
    return ptx.TensorMap(
        ptx.Pointer(array, described["offset"]), size, described["sizes"], described["strides"], described["box"],
        rounds=described["type"] == TF32,
    )  # fmt: skip
