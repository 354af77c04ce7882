"""Let one kernel do all steps of a small program: its loops and branches, its kernels inlined.

    func @f(%x, %y, %arena) attributes {lamina.steps = "block"} {
      scf.while { call @less(%i, %p); load %p; condition } do { call @k(%x, %i, %y) ... }
    }                                         ->
    gpu.func @f_0(%x, %y, %scratch) kernel { scf.while { ... barrier; load %p ... } do { ... } }

What such a function does is on buffers: calls, copies, `scf` on scalars that are loaded, and views of
the arena, which is its last argument. How it is done says `lamina.steps`:

- thread: one thread does everything. Callees are functions of loops on scalars (`gpu-serial-loops`);
  buffers are on its stack, where LLVM makes registers of the small ones.
- lanes: the same, in a thread for each of `lamina.lanes`. The function's last two inputs are where a
  thread's lanes begin and end.
- block: one block does everything, with barriers between steps that touch the same memory. Callees
  of loops on scalars are its first thread's, others are declared, and `gpu.module`s as
  `gpu-map-to-threads` leaves them: for each of their blocks the block does the work in turn, for
  several at once where they are smaller. The arena is shared memory where it is small, else
  scratch memory; what callees share lies behind it, for one after the other.

Leaves modules without such a function alone.
example: test/passes/kernels/gpu/steps/run_steps.mlir
"""

from __future__ import annotations

from lamina.dialects.attributes import LANES
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.kernels.gpu.steps.block_steps import BLOCK_THREADS, BlockSteps
from lamina.passes.kernels.gpu.steps.thread_steps import LANE_THREADS, LaneSteps, ThreadSteps
from lamina.passes.kernels.gpu.steps.walk import STEPS


class RunSteps(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for view in list(module.body.operations):
            function = view.operation
            if function.name == "func.func" and STEPS in function.attributes:
                self._write(module, function)
                return

    def _write(self, module: ir.Module, function: ir.Operation) -> None:
        form = function.attributes[STEPS].value
        self.count(form)
        match form:
            case "thread":
                ThreadSteps(module, function).write(1, 1)
            case "lanes":
                lanes = function.attributes[LANES].value
                blocks = -(-lanes // LANE_THREADS)
                LaneSteps(module, function, lanes).write(blocks, LANE_THREADS)
            case "block":
                BlockSteps(module, function).write(1, BLOCK_THREADS)
