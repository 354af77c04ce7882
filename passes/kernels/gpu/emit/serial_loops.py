"""Write each `linalg.generic` on buffers as the loops of one thread.

    linalg.generic y[i] = x[i] + 1    ->    scf.for %i { load x; add; store y }

Loops of a few steps are unrolled: what they read and write is then known to the element, so that
small buffers of the thread's own become registers.

example: test/passes/kernels/gpu/emit/serial_loops.mlir
"""

from __future__ import annotations

import math
from itertools import product

from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import for_each, index, load, store
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.kernels.gpu.device.threads import Body
from lamina.passes.linalg.analysis.affine_indices import indices
from lamina.passes.linalg.analysis.structure import Generic, is_generic_on_buffers, read_generic


class SerialLoops(Pass):
    """See the module's docstring. `unroll` is how many steps are few."""

    unroll: int = 128

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "linalg.generic"):
            if is_generic_on_buffers(op):
                with ir.InsertionPoint(op), op.location:
                    self._write(read_generic(op))
                op.erase()
                self.count("generics")

    def _write(self, generic: Generic) -> None:
        extents = generic.extents
        # The innermost loops first: what is left outside are loops.
        inner = len(extents)
        while inner and math.prod(extents[inner - 1 :]) <= self.unroll:
            inner -= 1

        def body(outer: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
            for position in product(*map(range, extents[inner:])):
                _step(generic, [*outer, *map(index, position)])
            return []

        for_each(extents[:inner], [], body)


def _step(generic: Generic, position: list[ir.Value]) -> None:
    at = dict(enumerate(position))
    body = Body(generic, {})
    places = [indices(map_, at) for map_ in generic.output_maps]
    accumulators = list(generic.body.arguments)[len(generic.inputs) :]
    before = [
        load(output, place) if len(list(argument.uses)) else None
        for output, place, argument in zip(generic.outputs, places, accumulators, strict=True)
    ]
    values = body.run(at, body.inputs(at), before)
    for value, output, place in zip(values, generic.outputs, places, strict=True):
        store(value, output, place)
