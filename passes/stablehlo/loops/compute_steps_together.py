"""Compute functions of a loop's counter, and of elements that it reads in turn, for all steps at once.

    stablehlo.while(%i = 0, %s) do {            %f = exponential %x : tensor<100xf64>
      %a = dynamic_slice %x, %i, sizes = [1]    stablehlo.while(%i = 0, %s) do {
      %e = exponential %a                  ->     %e = dynamic_slice %f, %i, sizes = [1]
      %t = add %s, %e                             %t = add %s, %e

A step that waits for the one before takes scalars one by one. Functions of tens of instructions that do not
depend on what is carried, in quadrature, series and simulations with given random numbers, are done by
vectors before the loop, with all that they are made from. Leaves alone arrays, loops of few or unknown
steps, values that are only stored, which a loop does in vectors as it is, and arrays of more than
`most_bytes`.

example: test/passes/stablehlo/loops/compute_steps_together.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import LANES, TRIP_COUNT
from lamina.dialects.types import byte_size, dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    COSTLY,
    computes_elements,
    defining,
    is_unused,
    size_of,
    splat_of,
)
from lamina.passes.stablehlo.analysis.ranges import growth
from lamina.passes.stablehlo.loops.loop_slices import CountedLoop
from lamina.records import Record

_WORTH = COSTLY - {"stablehlo.divide", "stablehlo.sqrt", "stablehlo.remainder"}
_LEAST_STEPS = 16  # rounding
_RESHAPE, _SLICE, _UPDATE = (
    f"stablehlo.{name}" for name in ("reshape", "dynamic_slice", "dynamic_update_slice")
)


class ComputeStepsTogether(Pass):
    """The pass `stablehlo-compute-steps-together`."""

    only_with = frozenset(("stablehlo.while",))

    most_bytes: int = 4 * REFERENCE.l2_bytes
    """Of the values of all steps."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.while"):
            if TRIP_COUNT not in op.attributes or LANES in op.attributes:
                continue
            if not any(inner.operation.name in _WORTH for inner in op.regions[1].blocks[0].operations):
                continue
            loop = CountedLoop.of(op)
            if loop is not None and loop.steps >= _LEAST_STEPS:
                decided = _Decided.of(loop)
                wanted = [op for op in decided.worth if self._pays(op, decided)]
                if wanted:
                    _compute_together(decided, wanted)
                    self.count("values", len(wanted))

    def _pays(self, op: ir.Operation, decided: _Decided) -> bool:
        """Whether the loop computes with what the op makes."""
        if byte_size(op.results[0].type) * decided.loop.steps > self.most_bytes:
            return False
        users = [use.owner.operation for use in op.results[0].uses]
        return any(user not in decided.ops and not _is_stored(user) for user in users)


def _is_stored(user: ir.Operation) -> bool:
    return user.name == _UPDATE or (
        user.name == _RESHAPE and all(use.owner.operation.name == _UPDATE for use in user.results[0].uses)
    )


class _Decided(Record):
    """What the counters of a loop decide of its body."""

    loop: CountedLoop
    counters: dict[ir.Value, tuple[int, int]]
    """Arguments that begin with a number and grow by one in each step."""
    ops: dict[ir.Operation, None]
    """That make one element from counters and values outside, in order."""
    starts: dict[ir.Operation, tuple[int, int]]
    """Of the slices among them, the dimension along which they follow a counter, and where they start."""
    worth: list[ir.Operation]
    """Of these, what differs between steps and is made by costly functions."""

    @classmethod
    def of(cls, loop: CountedLoop) -> _Decided:
        decided = cls(loop, _counters(loop), {}, {}, [])
        varying = set(decided.counters)
        costly: set[ir.Value] = set()
        for view in loop.body.operations:
            op = view.operation
            if not decided._has(op):
                continue
            decided.ops[op] = None
            [result] = op.results
            if any(value in varying for value in op.operands):
                varying.add(result)
            if op.name in _WORTH or any(value in costly for value in op.operands):
                costly.add(result)
                if result in varying:
                    decided.worth.append(op)
        return decided

    def _has(self, op: ir.Operation) -> bool:
        if len(op.results) != 1 or not _is_single(op.results[0]):
            return False
        if op.name == _SLICE:
            start = self._start_of(op)
            if start is not None:
                self.starts[op] = start
            return start is not None
        if op.name not in (CONSTANT, _RESHAPE) and not computes_elements(op):
            return False
        return all(_is_single(value) and self._knows(value) for value in op.operands)

    def _knows(self, value: ir.Value) -> bool:
        if value in self.counters or self.loop.is_outside(value):
            return True
        op = defining(value)
        return op is not None and op in self.ops

    def _start_of(self, op: ir.Operation) -> tuple[int, int] | None:
        """The dimension along which a dynamic_slice of one element follows a counter, never beyond the
        array's end, and where it starts; None if the slice is another one."""
        array, *starts = op.operands
        along = [number for number, start in enumerate(starts) if start in self.counters]
        if not self.loop.is_outside(array) or len(along) != 1:
            return None
        [dimension] = along
        for start in starts:
            if start not in self.counters and not self.loop.is_outside(start) and splat_of(start) is None:
                return None
        first, by = self.counters[starts[dimension]]
        inside = 0 <= first <= array.type.shape[dimension] - self.loop.steps
        return (dimension, first) if by == 1 and inside else None


def _is_single(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and size_of(value.type) == 1


def _counters(loop: CountedLoop) -> dict[ir.Value, tuple[int, int]]:
    found: dict[ir.Value, tuple[int, int]] = {}
    for number, (argument, initial) in enumerate(zip(loop.body.arguments, loop.op.operands, strict=True)):
        if not isinstance(argument.type.element_type, ir.IntegerType):
            continue
        first, by = splat_of(initial), growth(loop.op, number)
        if first is not None and by:
            found[argument] = (int(first), by)
    return found


def _compute_together(decided: _Decided, wanted: list[ir.Operation]) -> None:
    loop = decided.loop
    needed = _needed_for(wanted, decided)
    known: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(loop.op), loop.op.location:
        for op in decided.ops:
            if op in needed:
                known[op.results[0]] = _of_all_steps(op, decided, known)
    for op in wanted:
        with ir.InsertionPoint(op), op.location:
            one = hlo.dynamic_slice(known[op.results[0]], [loop.counter], [1])
            op.results[0].replace_all_uses_with(hlo.reshape(one, op.results[0].type.shape))
    for op in reversed(list(needed)):
        if is_unused(op):
            op.erase()


def _needed_for(wanted: list[ir.Operation], decided: _Decided) -> dict[ir.Operation, None]:
    needed = set(wanted)
    for op in reversed(list(decided.ops)):
        if op in needed:
            needed.update(maker for value in op.operands if (maker := defining(value)) in decided.ops)
    return {op: None for op in decided.ops if op in needed}


def _of_all_steps(
    op: ir.Operation, decided: _Decided, known: dict[ir.Value, ir.Value]
) -> ir.Value:
    """What an op makes in each step, as a vector."""
    steps = decided.loop.steps
    of = op.results[0].type
    if op.name == CONSTANT:
        return hlo.full(splat_of(op.results[0]), (steps,), dtype_of(of))
    if op.name == _SLICE:
        array, *starts = op.operands
        dimension, first = decided.starts[op]
        starts[dimension] = hlo.constant(dtype_of(starts[dimension].type).type(first))
        sizes = [1 if d != dimension else steps for d in range(len(starts))]
        starts = [_outside(start) for start in starts]
        return hlo.reshape(hlo.dynamic_slice(array, starts, sizes), (steps,))
    operands = [_vector(value, decided, known) for value in op.operands]
    if op.name == _RESHAPE:
        return operands[0]
    return remade(op, [ir.RankedTensorType.get([steps], of.element_type)], operands).result


def _outside(start: ir.Value) -> ir.Value:
    """The same, made before the loop where it is a constant of the body."""
    splat = splat_of(start)
    return start if splat is None else hlo.constant(splat)


def _vector(value: ir.Value, decided: _Decided, known: dict[ir.Value, ir.Value]) -> ir.Value:
    if value in known:
        return known[value]
    steps = decided.loop.steps
    if value in decided.counters:
        first, by = decided.counters[value]
        dtype = dtype_of(value.type)
        counted = hlo.iota((steps,), dtype, 0)
        if by != 1:
            counted = hlo.multiply(counted, hlo.full(by, (steps,), dtype))
        known[value] = hlo.add(counted, hlo.full(first, (steps,), dtype)) if first else counted
    else:
        scalar = hlo.reshape(value, ()) if value.type.shape else value
        known[value] = hlo.broadcast_in_dim(scalar, (steps,), ())
    return known[value]
