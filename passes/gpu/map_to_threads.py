"""Turn a function of bufferised `linalg.generic`s into kernels for the blocks and threads of a GPU.

    linalg.generic y[i, j] = exp(x[i, j])  ->  gpu.module @f_gpu { gpu.func @f_0(x, y, scratch) kernel
                                                 attributes {known_block_size, known_grid_size} }
The kernels of a function run one after the other, each on all the function's buffers and then
scratch memory, of `lamina.scratch_bytes`. What a kernel is:

- product: a contraction of two buffers, with what follows it element by element: tiles in shared
  memory. How, says `lamina.tiling` on the kernel.
- rows: generics that agree on their leading loops, a reduction among them, run in one kernel, with
  a block for each row. Temporaries that fit are parts of shared memory. Lanes combine by shuffles,
  warps through shared memory.
- columns: a reduction along a strided dimension: 32 neighbouring results a block, 8 threads each.
- transpose: an element-wise generic that reads one buffer along other rows than it writes: tiles of
  32 x 32 pass through shared memory.
- loop: any other element-wise generic: a grid-stride loop, 16 bytes at a time where rows allow it.
- serial: a reduction that no single op combines: one thread for each result.
- scalar: a value that is computed and stored outside of any generic: one thread.

Else there may be constants, views, and arithmetic on scalars that are read; all kernels that need it
do it for themselves.

example: test/passes/gpu/map_to_threads.mlir
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from lamina.dialects.vendors import ir
from lamina.passes.base import CompileError, Pass
from lamina.passes.gpu.emit import (
    emit_columns,
    emit_loop,
    emit_rows,
    emit_scalar,
    emit_serial,
    emit_transpose,
)
from lamina.passes.gpu.kernels import Kernels
from lamina.passes.gpu.product import Product
from lamina.passes.gpu.product_choice import emit_choice, with_products
from lamina.passes.gpu.shapes import is_columns, row_groups, transposed_input
from lamina.passes.gpu.threads import Combiner
from lamina.passes.linalg.structure import (
    Generic,
    is_generic_on_buffers,
    read_generic,
    root_buffer,
)

_SETUP = ("arith.", "complex.", "index.", "math.", "memref.cast", "memref.collapse_shape", "memref.expand_shape",
          "memref.get_global", "memref.reinterpret_cast", "memref.subview", "memref.view",
          "memref.load")  # fmt: skip


@dataclass(frozen=True)
class MapToThreads(Pass):
    """See the module's docstring. `arch` is the GPU's architecture."""

    arch: str = "sm_90a"

    def run(self, module: ir.Module) -> None:
        for op in list(module.body.operations):
            if op.operation.name == "func.func" and op.operation.regions[0].blocks:
                self._map(op.operation, module)

    def _map(self, function: ir.Operation, module: ir.Module) -> None:
        setup: list[ir.Operation] = []
        temporaries: list[ir.Operation] = []
        steps: list[Generic | ir.Operation] = []
        written: set[ir.Value] = set()
        loaded: set[ir.Value] = set()
        for view in function.regions[0].blocks[0].operations:
            op = view.operation
            writes: tuple[ir.Value, ...] = ()
            if is_generic_on_buffers(op):
                generic = read_generic(op)
                writes = generic.outputs
                if 0 not in generic.extents:
                    steps.append(generic)
            elif op.name == "memref.store":
                writes = (op.operands[1],)
                steps.append(op)
            elif op.name == "memref.alloc":
                temporaries.append(op)
            elif op.name.startswith(_SETUP):
                if op.name == "memref.load":
                    loaded.add(root_buffer(op.operands[0]))
                setup.append(op)
            elif op.name not in ("func.return", "memref.dealloc"):
                raise CompileError.at(op, "the CUDA backend has no lowering for this op yet")
            written.update(map(root_buffer, writes))
            if loaded & written:
                raise CompileError.at(op, "CUDA code can't read a scalar that it computes yet")
        kernels = Kernels(module, function, setup, temporaries)
        for is_generic, run in groupby(steps, lambda step: isinstance(step, Generic)):
            if is_generic:
                self._emit(kernels, cast("list[Generic]", list(run)))
            else:
                for op in cast("Iterator[ir.Operation]", run):
                    emit_scalar(kernels, op)
                    self.count("scalars")
        kernels.finish()

    def _emit(self, kernels: Kernels, generics: list[Generic]) -> None:
        for part in with_products(generics):
            if isinstance(part, Product):
                emit_choice(kernels, part, self.arch)
                self.count("products")
            else:
                self._emit_others(kernels, part)

    def _emit_others(self, kernels: Kernels, generics: list[Generic]) -> None:
        for group in row_groups(generics):
            if group.depth is not None:
                emit_rows(kernels, group.members, group.depth)
                self.count("rows")
                continue
            (generic,) = group.members
            if any(generic.reductions):
                combiner = Combiner.of(generic)
                if combiner is not None and is_columns(generic):
                    emit_columns(kernels, generic, combiner)
                    self.count("columns")
                else:
                    emit_serial(kernels, generic)
                    self.count("serial")
            elif (place := transposed_input(generic)) is not None:
                emit_transpose(kernels, generic, *place)
                self.count("transposes")
            else:
                emit_loop(kernels, generic)
                self.count("loops")
