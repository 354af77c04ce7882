"""Turn a function of bufferised `linalg.generic`s into kernels for the blocks and threads of a GPU.

    linalg.generic y[i, j] = exp(x[i, j])  ->  gpu.module @f_gpu { gpu.func @f_0(x, y, scratch) kernel
                                                 attributes {known_block_size, known_grid_size} }
The kernels of a function run one after the other, each on all the function's buffers and then
scratch memory, of `lamina.scratch_bytes`. What a kernel is:

- product: a contraction of two buffers, with what follows it element by element: tiles in shared
  memory. How, says `lamina.tiling` on the kernel; where a library could do all of the function,
  `lamina.library` on the module says what it would be asked.
- rows: generics that agree on their leading loops, a reduction among them, run in one kernel, with
  a block for each row, or a warp. Threads keep what they have of a row in registers where it fits
  (`resident_rows.py`); else temporaries that fit are parts of shared memory (`rows.py`).
  Lanes combine by shuffles, warps through shared memory. Of few long rows each reduction is done in
  parts first, by a kernel of its own.
- columns: a reduction along a strided dimension: as many neighbouring results as 32 threads read at once
  a block, 8 threads each; in parts first where that is few blocks.
- transpose: an element-wise generic that reads one buffer along other rows than it writes: threads turn
  squares in registers; where rows hold no vectors, tiles of 32 x 32 pass through shared memory.
- loop: any other element-wise generics over the same elements: a grid-stride loop, 16 bytes at a
  time where rows allow it; what one gives the next stays in registers.
- serial: a reduction whose partial results can't be combined: one thread for each result.
- scalar: a value that is computed and stored outside of any generic: one thread.

What gives a reduction its initial value is no kernel. Else there may be constants, views, and
arithmetic on scalars that are read; all kernels that need it do it for themselves.

example: test/passes/kernels/gpu/emit/map_to_threads.mlir
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import cast

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.kernels.gpu.device.kernels import Kernels
from lamina.passes.kernels.gpu.emit.columns import emit_columns, emit_serial
from lamina.passes.kernels.gpu.emit.elementwise import emit_loop, emit_scalar, emit_transpose
from lamina.passes.kernels.gpu.emit.reducer import Reducer
from lamina.passes.kernels.gpu.emit.resident_rows import emit_resident_rows
from lamina.passes.kernels.gpu.emit.rows import emit_rows, initial_value
from lamina.passes.kernels.gpu.emit.shapes import (
    Group,
    is_columns,
    loop_groups,
    row_groups,
    transposed_input,
)
from lamina.passes.kernels.gpu.gemm.choice import emit_choice, with_products
from lamina.passes.kernels.gpu.gemm.library import describe_product
from lamina.passes.kernels.gpu.gemm.reading import Product, read_product
from lamina.passes.linalg.analysis.structure import (
    Generic,
    is_generic_on_buffers,
    read_generic,
    root_buffer,
    sole_fill,
)
from lamina.passes.stablehlo.legalize.note_tf32 import TF32

_SETUP = ("arith.", "complex.", "index.", "math.", "memref.cast", "memref.collapse_shape", "memref.expand_shape",
          "memref.get_global", "memref.reinterpret_cast", "memref.subview", "memref.view",
          "memref.load")  # fmt: skip


class MapToThreads(Pass):
    """See the module's docstring. `arch` is the GPU's architecture; `one_block`: all blocks of the
    kernels will be done by one, of 256 threads (`gpu-run-steps`)."""

    arch: str = "sm_90a"
    one_block: bool = False

    def run(self, module: ir.Module) -> None:
        for op in list(module.body.operations):
            if op.operation.name == "func.func" and op.operation.regions[0].blocks:
                self._map(op.operation, module)

    def _map(self, function: ir.Operation, module: ir.Module) -> None:
        setup: list[ir.Operation] = []
        temporaries: list[ir.Operation] = []
        steps: list[Generic | ir.Operation | None] = []
        loads: list[tuple[ir.Operation, int]] = []
        written: set[ir.Value] = set()
        for view in function.regions[0].blocks[0].operations:
            op = view.operation
            if is_generic_on_buffers(op):
                generic = read_generic(op)
                written.update(map(root_buffer, generic.outputs))
                if 0 not in generic.extents:
                    steps.append(generic)
            elif op.name == "memref.store":
                written.add(root_buffer(op.operands[1]))
                steps.append(op)
            elif op.name == "memref.alloc":
                temporaries.append(op)
            elif op.name.startswith(_SETUP):
                if op.name == "memref.load":
                    if root_buffer(op.operands[0]) in written:
                        steps.append(None)  # what is read must be there: a kernel ends here
                    loads.append((op, len(steps)))
                setup.append(op)
            elif op.name not in ("func.return", "memref.dealloc"):
                raise CompileError.at(op, "the CUDA backend has no lowering for this op yet")
        _check_loads(steps, loads, setup)
        kernels = Kernels(module, function, setup, temporaries, one_block=self.one_block)
        _note_fills(kernels, steps)
        gone = {fill for fills in kernels.fills.values() for fill in fills}
        steps = [s for s in steps if (s.op if isinstance(s, Generic) else s) not in gone]
        for kind, run in groupby(steps, type):
            if kind is Generic:
                members = cast("list[Generic]", list(run))
                self._emit(kernels, members, len(members) == len(steps))
            elif kind is not type(None):
                for op in cast("Iterator[ir.Operation]", run):
                    emit_scalar(kernels, op)
                    self.count("scalars")
        kernels.finish()

    def _emit(self, kernels: Kernels, generics: list[Generic], alone: bool) -> None:
        """The kernels of generics; `alone`: there are no others in the function."""
        parts = [generics] if self.one_block else with_products(generics)
        for part in parts:
            if isinstance(part, Product):
                tiling = emit_choice(kernels, part, self.arch)
                if alone and len(parts) == 1:
                    describe_product(kernels, part, tiling, TF32 in kernels.function.attributes)
                self.count("products")
            else:
                self._emit_others(kernels, part)

    def _emit_others(self, kernels: Kernels, generics: list[Generic]) -> None:
        for scheme, run in groupby(row_groups(generics), _scheme):
            groups = list(run)
            if scheme == "rows":
                for group in groups:
                    assert group.depth is not None
                    if not emit_resident_rows(kernels, group.members, group.depth):
                        emit_rows(kernels, group.members, group.depth)
            elif scheme == "loops":
                for members in loop_groups([g for group in groups for g in group.members]):
                    emit_loop(kernels, members)
            else:
                for group in groups:
                    self._emit_alone(kernels, group.members[0])
            self.count(scheme)

    def _emit_alone(self, kernels: Kernels, generic: Generic) -> None:
        if (place := transposed_input(generic)) is not None:
            emit_transpose(kernels, generic, *place)
            return
        reducer = Reducer.of(generic)
        if reducer is not None and is_columns(generic):
            emit_columns(kernels, generic, reducer)
        else:
            emit_serial(kernels, generic)


def _scheme(group: Group) -> str:
    (first, *_) = group.members
    if group.depth is not None:
        return "rows"
    if any(first.reductions):
        return "reductions"
    return "loops" if transposed_input(first) is None else "transposes"


def _check_loads(
    steps: Sequence[Generic | ir.Operation | None], loads: Sequence[tuple[ir.Operation, int]],
    setup: Sequence[ir.Operation],
) -> None:  # fmt: skip
    """Refuse a scalar that is used after its place in memory was written again: kernels that use it
    read it themselves."""
    for load, since in loads:
        known = set(load.results)
        for op in setup:
            if known.intersection(op.operands):
                known.update(op.results)
        root, overwritten = root_buffer(load.operands[0]), False
        for step in steps[since:]:
            if step is None:
                continue
            is_store = not isinstance(step, Generic)
            op = step.op if isinstance(step, Generic) else step
            writes = [op.operands[1]] if is_store else step.outputs
            uses = known.intersection(_all_operands(op))
            # A store is one thread's, which reads first.
            here = root in map(root_buffer, writes)
            if uses and (overwritten or (here and not is_store)):
                raise CompileError.at(load, "CUDA code can't use a scalar that it overwrites yet")
            overwritten |= here


def _all_operands(op: ir.Operation) -> set[ir.Value]:
    found: set[ir.Value] = set()

    def visit(inner: ir.Operation) -> ir.WalkResult:
        found.update(inner.operands)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


def _note_fills(kernels: Kernels, steps: Sequence[Generic | ir.Operation | None]) -> None:
    """Note what only gives a reduction its initial value: it is no kernel. Products have their own
    way with them."""
    there = {step.op if isinstance(step, Generic) else step for step in steps if step is not None}
    for step in steps:
        if not isinstance(step, Generic) or Reducer.of(step) is None:
            continue
        if read_product(step) and not kernels.one_block:
            continue
        fills = [sole_fill(step, out, lambda op: initial_value(op) is not None) for out in step.outputs]
        found = [fill for fill in fills if fill is not None and fill in there]
        if len(found) == len(fills):
            kernels.fills[step.op] = found
