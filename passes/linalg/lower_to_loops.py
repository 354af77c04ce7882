"""Turn each bufferised `linalg.generic` into the loop nest recorded on it (see `loop_nest`).

Reductions that are innermost accumulate in loop-carried values, so that LLVM keeps them in
registers; others accumulate in the output. A `linalg.fill` that does nothing but initialise a
reduction's output becomes the accumulator's initial value. The leading loops marked as tasks become
one `scf.forall` that carries `lamina.grain`, for `memref-outline-tasks`. Remaining fills and copies
become generics first: run `linalg-generalize-named-ops` before. Ops on tensors are left alone.

example: test/passes/linalg/lower_to_loops.mlir
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir, scf
from lamina.passes.base import Pass
from lamina.passes.linalg.loop_nest import Loop, LoopNest, read_nest
from lamina.passes.linalg.structure import Generic, generics_on_buffers, read_generic
from lamina.passes.loops import index, load, store

GRAIN = "lamina.grain"


@dataclass(frozen=True)
class LowerToLoops(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        generics = [read_generic(op) for op in generics_on_buffers(module)]
        fills = {
            generic.op: [_sole_fill(generic, output) for output in generic.outputs]
            for generic in generics
        }
        merged = {fill for of_one in fills.values() for fill in of_one if fill is not None}
        for generic in generics:
            if generic.op not in merged and 0 not in generic.extents:
                _Emitter(generic, read_nest(generic.op, generic.rank), fills[generic.op]).emit()
        for generic in generics:
            generic.op.erase()


class _Emitter:
    """Emits one generic as loops in front of it and moves its body inside."""

    def __init__(
        self, generic: Generic, nest: LoopNest, fills: Sequence[ir.Operation | None]
    ) -> None:
        self._generic = generic
        self._nest = nest
        self._position: dict[int, ir.Value] = {}  # dimension -> induction variable
        self._block_end: dict[int, ir.Value] = {}  # dimension -> end of the block being walked
        self._first_reduction = next(
            (level for level, loop in enumerate(nest.loops) if generic.reductions[loop.dimension]),
            len(nest.loops),
        )
        tail = nest.loops[self._first_reduction :]
        self._in_registers = bool(tail) and all(generic.reductions[loop.dimension] for loop in tail)
        self._fills = fills if tail else ()

    def emit(self) -> None:
        with ir.InsertionPoint(self._generic.op), self._generic.op.location:
            if self._nest.tasks:
                self._emit_tasks()
            else:
                self._emit_level(0)

    def _emit_tasks(self) -> None:
        loops = self._nest.loops[: self._nest.tasks]
        extents = [self._generic.extents[loop.dimension] for loop in loops]
        forall = scf.ForallOp([0] * len(loops), extents, [loop.step for loop in loops])
        forall.attributes[GRAIN] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), self._nest.grain
        )
        with ir.InsertionPoint(forall.body):
            end = scf.InParallelOp()
        with ir.InsertionPoint(end):
            for loop, induction in zip(loops, forall.induction_variables, strict=True):
                self._enter(loop, induction)
            self._emit_level(len(loops))

    def _emit_level(self, level: int) -> None:
        loops = self._nest.loops
        if level == self._first_reduction and self._fills:
            if self._in_registers:
                outputs = self._generic.outputs
                places = [self._indices(map_) for map_ in self._generic.output_maps]
                initial = [
                    load(output, place) if fill is None else fill.operands[0]
                    for output, place, fill in zip(outputs, places, self._fills, strict=True)
                ]
                for value, output, place in zip(
                    self._accumulate(level, initial), outputs, places, strict=True
                ):
                    store(value, output, place)
                return
            self._initialise(level)
        if level == len(loops):
            places = [self._indices(map_) for map_ in self._generic.output_maps]
            arguments = self._generic.body.arguments[len(self._generic.inputs) :]
            accumulators = [
                load(output, place) if len(list(argument.uses)) else None
                for output, place, argument in zip(
                    self._generic.outputs, places, arguments, strict=True
                )
            ]
            for value, output, place in zip(
                self._inline_body(accumulators), self._generic.outputs, places, strict=True
            ):
                store(value, output, place)
            return
        self._loop(loops[level], [], lambda _: (self._emit_level(level + 1), [])[1])

    def _accumulate(self, level: int, accumulators: Sequence[ir.Value]) -> list[ir.Value]:
        if level == len(self._nest.loops):
            return self._inline_body(accumulators)
        return self._loop(
            self._nest.loops[level], accumulators, lambda inner: self._accumulate(level + 1, inner)
        )

    def _initialise(self, level: int) -> None:
        """Write the initial values of the outputs over all parallel dimensions that are still open."""
        filled = [
            (o, m, f)
            for o, m, f in zip(
                self._generic.outputs, self._generic.output_maps, self._fills, strict=True
            )
            if f
        ]
        if not filled:
            return
        inner = [
            loop
            for loop in self._nest.loops[level:]
            if not self._generic.reductions[loop.dimension]
        ]

        def walk(depth: int) -> list[ir.Value]:
            if depth == len(inner):
                for output, map_, fill in filled:
                    store(fill.operands[0], output, self._indices(map_))
            else:
                self._loop(inner[depth], [], lambda _: walk(depth + 1))
            return []

        position, block_end = dict(self._position), dict(self._block_end)
        walk(0)
        self._position, self._block_end = position, block_end

    def _loop(
        self,
        loop: Loop,
        carried: Sequence[ir.Value],
        body: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        outer_position, outer_end = (
            self._position.get(loop.dimension),
            self._block_end.get(loop.dimension),
        )
        if outer_end is not None:
            low, high = outer_position, outer_end
        else:
            low, high = index(0), index(self._generic.extents[loop.dimension])
        op = scf.ForOp(low, high, index(loop.step), list(carried))
        with ir.InsertionPoint(op.body):
            end = scf.YieldOp(list(op.inner_iter_args))
        with ir.InsertionPoint(end):
            self._enter(loop, op.induction_variable)
            for position, value in enumerate(body(list(op.inner_iter_args))):
                end.operation.operands[position] = value
        if outer_position is not None:
            self._position[loop.dimension] = outer_position
        if outer_end is not None:
            self._block_end[loop.dimension] = outer_end
        else:
            self._block_end.pop(loop.dimension, None)
        return list(op.results)

    def _enter(self, loop: Loop, induction: ir.Value) -> None:
        self._position[loop.dimension] = induction
        if loop.step > 1:
            extent = self._generic.extents[loop.dimension]
            end = arith.AddIOp(induction, index(loop.step)).result
            if extent % loop.step:
                end = arith.MinSIOp(end, index(extent)).result
            self._block_end[loop.dimension] = end

    def _inline_body(self, accumulators: Sequence[ir.Value | None]) -> list[ir.Value]:
        """Move the body here, on the inputs at the current position; the values it yields."""
        generic, block = self._generic, self._generic.body
        for argument, operand, map_ in zip(
            block.arguments, generic.inputs, generic.input_maps, strict=False
        ):
            if len(list(argument.uses)):
                value = operand if not _is_memref(operand) else load(operand, self._indices(map_))
                argument.replace_all_uses_with(value)
        for argument, value in zip(
            block.arguments[len(generic.inputs) :], accumulators, strict=True
        ):
            if value is not None:
                argument.replace_all_uses_with(value)
        # an op to move in front of, since ops only move relative to ops
        anchor = ir.Operation.create(
            "arith.constant",
            results=[ir.IndexType.get()],
            attributes={"value": ir.IntegerAttr.get(ir.IndexType.get(), 0)},
        )
        operations = list(block.operations)
        for op in operations[:-1]:
            op.operation.move_before(anchor)
        for op in operations[:-1]:
            self._replace_indices(op.operation)
        anchor.erase()
        return list(operations[-1].operands)

    def _replace_indices(self, op: ir.Operation) -> None:
        if op.name == "linalg.index":
            op.results[0].replace_all_uses_with(
                self._position[ir.IntegerAttr(op.attributes["dim"]).value]
            )
            op.erase()
            return
        for region in op.regions:
            for block in region.blocks:
                for inner in list(block.operations):
                    self._replace_indices(inner.operation)

    def _indices(self, map_: ir.AffineMap) -> list[ir.Value]:
        return [self._index_value(expression) for expression in map_.results]

    def _index_value(self, expression: ir.AffineExpr) -> ir.Value:
        if isinstance(expression, ir.AffineDimExpr):
            return self._position[ir.AffineDimExpr(expression).position]
        if isinstance(expression, ir.AffineConstantExpr):
            return index(ir.AffineConstantExpr(expression).value)
        for kind, build in ((ir.AffineAddExpr, arith.AddIOp), (ir.AffineMulExpr, arith.MulIOp)):
            if isinstance(expression, kind):
                parts = kind(expression)
                return build(self._index_value(parts.lhs), self._index_value(parts.rhs)).result
        raise NotImplementedError(f"affine expression {expression} in an indexing map")


def _sole_fill(generic: Generic, output: ir.Value) -> ir.Operation | None:
    """The fill that only gives a reduction's output its initial value: its last write before the
    generic."""
    if not any(generic.reductions):
        return None
    users = [use.owner for use in output.uses]
    fills = [
        user
        for user in users
        if user.operation.block == generic.op.operation.block and _is_fill(user)
    ]
    if len(fills) != 1 or any(len(user.results) and _is_memref(user.results[0]) for user in users):
        return None  # none or several, or a view may reach the same memory
    seen_fill = False
    for op in generic.op.operation.block.operations:
        if op.operation == generic.op:
            return fills[0] if seen_fill else None
        if op.operation == fills[0]:
            seen_fill = True
        elif seen_fill and any(_inside(user, op.operation) for user in users):
            return None
    return None


def _is_fill(op: ir.Operation) -> bool:
    if op.name != "linalg.generic" or list(
        ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    ) != [1, 1]:
        return False
    block = op.regions[0].blocks[0]
    return (
        not _is_memref(op.operands[0])
        and len(block.operations) == 1
        and block.operations[0].operands[0] == block.arguments[0]
    )


def _inside(op: ir.Operation, ancestor: ir.Operation) -> bool:
    while op is not None:
        if op == ancestor:
            return True
        op = op.parent if op.operation.name != "func.func" else None
    return False


def _is_memref(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)
