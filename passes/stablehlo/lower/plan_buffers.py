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
`jax.buffer_donor`) is overwritten. `lamina.inout` on a kernel's argument says that it overwrites
it; where that pays, a kernel with `lamina.may_alias` gets a variant that does. Kernels that take
`lamina.alone_ns` on one core and do not need each other become a team (`lamina.team` on their calls,
which follow each other) and may run at the same time. Calls that free more than they make come
early. How the decisions
are made is told in passes/planning. With `own-place=n`, buffers of up to n bytes share no memory
and lie at the arena's beginning, `lamina.own_bytes` of it: a backend may put them on the stack. With
`lends-results` temporaries may also live in the buffers of results that are written later: views of
what is cast to bytes. With `rotate-from=n`, buffers of n bytes or more that change places from one step
of a loop to the next are carried by the `scf.while`, as bytes, instead of being copied. With `overlaps`
what devices say to each other is begun (`lamina.begun` on the call), and waited for where its result is
needed (a call of `lamina_collective_end`).
example: test/passes/stablehlo/lower/plan_buffers.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.framework.find import functions_of
from lamina.passes.planning.from_mlir import Reader
from lamina.passes.planning.plan import make_plan
from lamina.passes.planning.to_mlir import Writer


class PlanBuffers(Pass):
    """See the module's docstring."""

    own_place: int = 0
    lends_results: bool = False
    rotate_from: int | None = None
    overlaps: bool = False

    def run(self, module: ir.Module) -> None:
        functions = functions_of(module)
        main = functions.pop("main", None)
        if main is None:
            raise CompileError("builtin.module", None, "there is no function @main to plan")
        reader = Reader(functions)
        program = reader.read(main)
        plan = make_plan(program, self.own_place, self.lends_results, self.rotate_from, self.overlaps)
        Writer(main, reader, program, plan).write()
        self.count("arena bytes", plan.arena_bytes)
        self.count("donations unused", len(plan.unused_donations))
