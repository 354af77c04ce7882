"""Turn round arrays of which each step of a loop reads or writes one position of the last dimension.

    while(%i, %y) do {                            %t = transpose %x;  %u = transpose %y
      %a = %x[:, :, %i]                    ->     while(%i, %u) do {
      %y' = %y with ... in [:, :, %i]               %a = %t[%i, :, :]
    }                                               %u' = %u with ... in [%i, :, :]
                                                  }
                                                  %y = transpose %u

What a step touches has a line of the cache to itself otherwise for each of its elements: a recurrence
along the last dimension, a sweep over columns. So where those lines are more than what turning the array
before the loop, and what the loop carries after it, reads and writes. Leaves alone arrays that fit the
first-level cache, loops whose number of steps is not known, and arrays that they use in any other way.

example: test/passes/stablehlo/loops/lay_out_loops.mlir
"""

from __future__ import annotations

from typing import NamedTuple

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import LANES, TRIP_COUNT, integer_of
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops, is_inside
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import TERMINATORS, ints, size_of, splat_of
from lamina.passes.stablehlo.analysis.indexed_dims import GATHER, IndexedDims
from lamina.passes.stablehlo.fusion.fuse_ops import captured

_WHILE, _SLICE, _UPDATE = (f"stablehlo.{name}" for name in ("while", "dynamic_slice", "dynamic_update_slice"))
_SCATTER = "stablehlo.scatter"


class _Accesses(NamedTuple):
    """What a loop's body does with an array, or with what it carries of one."""

    reads: list[ir.Operation]
    writes: list[ir.Operation]

    def lines(self) -> int:
        """How many elements a step reads and writes, each in a line of its own."""
        of_reads = sum(size_of(op.results[0].type) for op in self.reads)
        return of_reads + sum(size_of(_written(op).type) for op in self.writes)


class LayOutLoops(Pass):
    """The pass `stablehlo-lay-out-loops`."""

    only_with = frozenset(("stablehlo.while",))

    least_bytes: int = REFERENCE.l1_bytes * 2 // 3
    """Of an array: a smaller one is in the first-level cache, whatever its layout."""

    def run(self, module: ir.Module) -> None:
        for loop in reversed(find_ops(module, _WHILE)):  # inner ones first
            if TRIP_COUNT in loop.attributes and LANES not in loop.attributes:
                for value in dict.fromkeys(captured(loop)):
                    self._captured(loop, value)
                for number in range(len(loop.operands)):
                    self._carried(loop, number)

    def _captured(self, loop: ir.Operation, value: ir.Value) -> None:
        accesses = self._accesses(loop, value, None)
        if accesses is None or not self._pays(loop, value, accesses, 1):
            return
        with ir.InsertionPoint(loop), loop.location:
            turned = _turned(value)
        for op in accesses.reads:
            _read(op, turned)
        self.count("arrays")

    def _carried(self, loop: ir.Operation, number: int) -> None:
        body = loop.regions[1].blocks[0]
        value, given = body.arguments[number], loop.operands[number]
        if list(loop.regions[0].blocks[0].arguments[number].uses):
            return
        accesses = self._accesses(loop, value, number)
        transposes = 1 if splat_of(given) is not None else 2
        if accesses is None or not self._pays(loop, value, accesses, transposes):
            return
        with ir.InsertionPoint(loop), loop.location:
            loop.operands[number] = _turned(given)
        of, was = loop.operands[number].type, value.type
        result = loop.results[number]
        for carried in (value, loop.regions[0].blocks[0].arguments[number], result):
            carried.set_type(of)
        for op in accesses.reads:
            _read(op, op.operands[0])
        for op in accesses.writes:
            _write(op, of)
        with ir.InsertionPoint(loop), loop.location:
            back = hlo.transpose(result, [*range(1, was.rank), 0])
        back.owner.operation.move_after(loop)
        result.replace_all_uses_except(back, back.owner.operation)
        self.count("arrays")

    def _accesses(self, loop: ir.Operation, value: ir.Value, number: int | None) -> _Accesses | None:
        """How the body uses a value; `number` if it carries that. None if by other than its last dimension."""
        of = value.type
        if not isinstance(of, ir.RankedTensorType) or of.rank < 2 or not of.has_static_shape or of.shape[-1] == 1:
            return None
        if size_of(of) * dtype_of(of).itemsize < self.least_bytes:
            return None
        body, found, work = loop.regions[1].blocks[0], _Accesses([], []), [value]
        while work:
            for use in work.pop().uses:
                op = use.owner.operation
                if op.block != body:
                    if number is None and not is_inside(op, loop):
                        continue
                    return None
                if op.name in TERMINATORS:
                    if use.operand_number != number:
                        return None
                elif use.operand_number == 0 and _reads_last(op):
                    found.reads.append(op)
                elif number is not None and use.operand_number == 0 and _writes_last(op):
                    found.writes.append(op)
                    work.append(op.results[0])
                else:
                    return None
        is_carried = number is None or bool(found.writes)
        return found if is_carried and (found.reads or found.writes) else None

    @staticmethod
    def _pays(loop: ir.Operation, value: ir.Value, accesses: _Accesses, transposes: int) -> bool:
        width = dtype_of(value.type).itemsize
        saved = integer_of(loop, TRIP_COUNT) * accesses.lines() * (REFERENCE.line_bytes - width)
        return saved > transposes * 2 * size_of(value.type) * width


def _reads_last(op: ir.Operation) -> bool:
    """Whether an op reads one position of its operand's last dimension."""
    if op.name == _SLICE:
        return ints(op, "slice_sizes")[-1] == 1
    return op.name == GATHER and _is_indexed_last(op)


def _writes_last(op: ir.Operation) -> bool:
    if op.name == _UPDATE:
        return op.operands[1].type.shape[-1] == 1
    return op.name == _SCATTER and len(op.results) == 1 and _is_indexed_last(op)


def _is_indexed_last(op: ir.Operation) -> bool:
    dims = IndexedDims.of(op)
    last = op.operands[0].type.rank - 1
    one_index = size_of(op.operands[1].type) == len(dims.named)
    return one_index and not dims.batch and last in dims.single and last in dims.named


def _written(op: ir.Operation) -> ir.Value:
    return op.operands[1 if op.name == _UPDATE else 2]


def _turned(value: ir.Value) -> ir.Value:
    """An array whose last dimension is its first."""
    rank, splat = value.type.rank, splat_of(value)
    if splat is not None:
        return hlo.full(splat, [value.type.shape[-1], *value.type.shape[:-1]], dtype_of(value.type))
    return hlo.transpose(value, [rank - 1, *range(rank - 1)])


def _read(op: ir.Operation, turned: ir.Value) -> None:
    """Let an op read what it does from the turned array."""
    if op.name == GATHER:
        op.operands[0] = turned
        _index_first(op)
        sizes = ints(op, "slice_sizes")
        op.attributes["slice_sizes"] = ir.DenseI64ArrayAttr.get([1, *sizes[:-1]])
        return
    _, *starts = op.operands
    result = op.results[0]
    sizes = list(result.type.shape)
    with ir.InsertionPoint(op), op.location:
        part = hlo.dynamic_slice(turned, [starts[-1], *starts[:-1]], [1, *sizes[:-1]])
        for use in list(result.uses):
            view = use.owner.operation
            if view.name == "stablehlo.reshape":  # one view, not a view of another
                view.operands[0] = part
        if next(iter(result.uses), None) is not None:
            result.replace_all_uses_with(hlo.reshape(part, sizes))
    op.erase()


def _write(op: ir.Operation, of: ir.Type) -> None:
    """Let an update do what it does to the turned array."""
    op.results[0].set_type(of)
    if op.name == _SCATTER:
        _index_first(op)
        return
    array, part, *starts = op.operands
    sizes = part.type.shape
    with ir.InsertionPoint(op), op.location:
        part = hlo.reshape(part, [1, *sizes[:-1]])
    for number, value in enumerate((array, part, starts[-1], *starts[:-1])):
        op.operands[number] = value


def _index_first(op: ir.Operation) -> None:
    """The numbers of dimensions of a gather or scatter, after the last one became the first."""
    dims, rank = IndexedDims.of(op), op.operands[0].type.rank
    single = sorted((d + 1) % rank for d in dims.single)
    named = [(d + 1) % rank for d in dims.named]
    IndexedDims(dims.windows, single, dims.batch, dims.batch_of_indices, named, dims.vector).put(op)
