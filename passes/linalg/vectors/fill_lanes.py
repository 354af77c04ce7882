"""Fill vectors across many small matrices, where a matrix or its rows are too small to.

    c[b, i, k] += a[b, i, j] * b[b, j, k]      3 x 3, in vectors of 16 elements
is done for 16 matrices at a time, whose results are 9 whole vectors side by side. Each is a sum over
j of products of two vectors, and those are elements that lie near each other in memory: two loads and
a shuffle, a load as it is, or one element in all lanes. For a `linalg.generic` on buffers whose body
is element-wise and whose result is dense; an element-wise op that follows, and alone reads the result,
is done on the same vectors. What does not fill a block at the end is done together with what is in
front of it, once more.

Left alone are rows that are long enough for vectors of their own, what would take more shuffles
than it saves, and element-wise ops with a temporary of another: `schedule-generics` does without it.

example: test/passes/linalg/vectors/fill_lanes.mlir
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.loops import add, for_tasks, index
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.narrow_products import erase_unread
from lamina.passes.linalg.analysis.dense_access import flat, place_in
from lamina.passes.linalg.analysis.parallel import split
from lamina.passes.linalg.analysis.structure import (
    Generic,
    generics_on_buffers,
    read_generic,
    root_buffer,
)
from lamina.passes.linalg.vectors.flat_space import FlatSpace, Operand, read_space
from lamina.passes.linalg.vectors.lane_windows import Window, Windows
from lamina.passes.linalg.vectors.vector_body import on_vectors


class FillLanes(Pass):
    """See the module's docstring."""

    vector_bits: int = 512

    def run(self, module: ir.Module) -> None:
        if self.vector_bits < 512:
            return  # shuffles of any two vectors are three instructions
        left = [
            read_generic(op) for op in generics_on_buffers(module) if op.parent.name == "func.func"
        ]
        roots = {generic.op: _roots(generic) for generic in left} if len(left) > 1 else {}
        left.sort(key=lambda generic: any(generic.reductions))  # last: they take their fills
        while left:
            generic = left.pop()
            if not any(generic.reductions) and _shares_temporary(generic, roots):
                continue
            space = read_space(generic, self.vector_bits)
            if space is None:
                continue
            with ir.InsertionPoint(space.last), generic.op.location:
                _Emitter(space, self).emit()
            done, between = space.ops, generic.outputs[0]
            gone = {*done, *space.widened.values()}
            left = [other for other in left if other.op not in gone]
            roots = {other: of_one for other, of_one in roots.items() if other not in gone}
            for op in done:
                op.erase()
            if space.epilogue is not None:
                between.owner.erase()
            erase_unread(set(space.widened.values()))
            self.count("filled")


def _shares_temporary(generic: Generic, roots: Mapping[ir.Operation, set[ir.Value]]) -> bool:
    """Whether another op reads or writes a buffer of a kernel's own that this one does."""
    own = {root for root in roots.get(generic.op, ()) if not isinstance(root.owner, ir.Block)}
    return bool(own) and any(own & of_one for op, of_one in roots.items() if op != generic.op)


def _roots(generic: Generic) -> set[ir.Value]:
    return {root_buffer(buffer) for buffer in (*generic.inputs, *generic.outputs)}


class _Emitter:
    """Emits the loop over blocks of one op, at the ambient place."""

    def __init__(self, space: FlatSpace, options: FillLanes) -> None:
        self._space, self._options = space, options
        self._flat = {buffer: flat(buffer) for buffer in space.buffers}
        self._windows: dict[Operand, Windows] = {}

    def emit(self) -> None:
        """Blocks, the leading loops of them as tasks."""
        space = self._space
        highs, steps = [*space.outer, space.batch], [1] * len(space.outer) + [space.members]
        counts = [*space.outer, -(-space.batch // space.members)]
        machine = machine_of(space.last)
        cost = 2 * machine.op_ps / 1000 * space.instructions * math.prod(counts)  # half of them shuffle
        tasks, grain = split(counts, cost, machine)
        for_tasks(highs, tasks, grain, self._block, steps=steps)

    def _block(self, position: list[ir.Value]) -> None:
        space = self._space
        *outer, first = position
        if space.batch % space.members:
            last = index(space.batch - space.members)
            first = arith.MinSIOp(first, last).result
        at = [*outer, first]
        self._windows = {
            operand: Windows(self._flat[operand.buffer], place_in(operand.offset, operand.around, at))
            for operand in space.operands
        }
        for number in range(space.vectors):
            self._store(number, self._result(number))

    def _result(self, number: int) -> ir.Value:
        """Vector `number` of a block."""
        space = self._space
        generic, lanes = space.generic, space.lanes
        total: ir.Value | None = None
        if space.fill is not None:
            of = ir.VectorType.get([lanes], generic.body.arguments[-1].type)
            total = vector.BroadcastOp(of, space.fill.operands[0]).result
        for term in range(space.terms):
            known = self._given(space.inputs, generic.inputs, generic.body, number, term)
            for place, widening in space.widened.items():
                argument, body = generic.body.arguments[place], widening.regions[0].blocks[0]
                (known[argument],) = on_vectors(body, {body.arguments[0]: known[argument]}, lanes)
            if total is not None:
                known[generic.body.arguments[-1]] = total
            (total,) = on_vectors(generic.body, known, lanes)
        assert total is not None
        if space.epilogue is None:
            return total
        after = space.epilogue.generic
        known = self._given(space.epilogue_inputs, after.inputs, after.body, number, 0)
        known[after.body.arguments[space.epilogue.operand]] = total
        (result,) = on_vectors(after.body, known, lanes)
        return result

    def _given(
        self,
        operands: tuple[Operand | None, ...],
        values: tuple[ir.Value, ...],
        body: ir.Block,
        number: int,
        term: int,
    ) -> dict[ir.Value, ir.Value]:
        """What a body's arguments are: vectors of windows, or scalars."""
        known: dict[ir.Value, ir.Value] = {}
        for operand, value, argument in zip(operands, values, body.arguments):
            if operand is not None:
                known[argument] = self._vector(operand, number, term)
            elif not isinstance(value.type, ir.MemRefType):
                known[argument] = value
        return known

    def _vector(self, operand: Operand, number: int, term: int) -> ir.Value:
        found: Window = operand.windows[number, term if operand.varies else 0]
        return self._windows[operand].emit(found, self._space.lanes)

    def _store(self, number: int, value: ir.Value) -> None:
        space = self._space
        windows = self._windows[space.output]
        start = number * space.lanes
        at = add(windows.base, index(start)) if start else windows.base
        vector.StoreOp(value, windows.buffer, [at])
