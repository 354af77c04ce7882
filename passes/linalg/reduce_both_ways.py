"""Reduce an array along its rows and down its columns in one walk.

    r[i] += x[i, j]   for all j            for blocks of 8 rows: for vectors of columns:
    c[j] += x[i, j]   for all i     ->       eight sums of rows, in registers, and p[chunk, columns]
                                           c[j] = sum of p[chunk, j]

Each element is loaded once, and made once where an element-wise op that only these two read makes it. Chunks
of rows run as tasks; how many there are depends on the shape alone, so results don't depend on the number
of threads. For bufferised `linalg.generic`s on two dimensions with a combiner that vectors have, whose
inputs are rows of elements side by side, one number for each row, or one in all.

example: test/passes/linalg/reduce_both_ways.mlir
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir, memref, vector
from lamina.passes.base import Pass
from lamina.passes.linalg.parallel import split, total_cost
from lamina.passes.linalg.split_reductions import add_up, combiner_of, neutral_of
from lamina.passes.linalg.structure import (
    Generic,
    generics_on_buffers,
    is_buffer,
    is_temporary,
    places_of,
    read_generic,
    root_buffer,
    sole_fill,
    stride_along,
)
from lamina.passes.linalg.vector_body import across_lanes, can_be_on_vectors, on_vectors
from lamina.passes.loops import add, for_range, for_steps, for_tasks, index, load, store

_ROWS, _FEW_ROWS = 8, 4  # of a block
_SHORT_BODY = 8  # ops on an element, of which a block of many rows is still little code
_MOST_CHUNKS = 16
_LEAST_CHUNK = 32  # rows, which have 32 times the elements of the chunk's sums
_LEAST_VECTORS = 8  # of a row

Step = Callable[[ir.Value, int, Sequence[ir.Value]], Sequence[ir.Value]]
"""(column, lanes, carried) -> what is carried to the next vector of a row."""


@dataclass(frozen=True)
class ReduceBothWays(Pass):
    """See the module's docstring."""

    vector_bits: int = 512
    parallel_cost: float = 30_000.0
    task_cost: float = 10_000.0

    def run(self, module: ir.Module) -> None:
        while (walk := _first(module, self.vector_bits)) is not None:
            with ir.InsertionPoint(walk.first), walk.first.location:
                _Emitter(walk, self).emit()
            walk.erase()
            self.count("walks")


@dataclass(frozen=True)
class _Reduction:
    """One of an array of two dimensions along one of them."""

    generic: Generic
    fill: ir.Operation
    combiner: ir.Operation
    along_rows: bool

    @classmethod
    def of(cls, generic: Generic) -> _Reduction | None:
        if generic.rank != 2 or sum(generic.reductions) != 1 or len(generic.inputs) != 1:
            return None
        axes = places_of(generic.input_maps[0])
        if len(generic.outputs) != 1 or sorted(axes) != [0, 1] or not can_be_on_vectors(generic.body):
            return None
        fill, combiner = sole_fill(generic, generic.outputs[0]), combiner_of(generic)
        if fill is None or combiner is None:
            return None
        return cls(generic, fill, combiner, generic.reductions[axes[1]])

    @property
    def result(self) -> ir.Value:
        return self.generic.outputs[0]


@dataclass(frozen=True)
class _Walk:
    """Both reductions of the same elements, and the op that makes those, if one does."""

    producer: Generic | None
    rows: _Reduction
    columns: _Reduction
    lanes: int

    @property
    def first(self) -> ir.Operation:
        """The op in whose place both are done."""
        ops = (self.rows.generic.op, self.columns.generic.op)
        return ops[0] if ops[0].is_before_in_block(ops[1]) else ops[1]

    @property
    def bodies(self) -> list[ir.Block]:
        made = [] if self.producer is None else [self.producer.body]
        return [*made, self.rows.generic.body, self.columns.generic.body]

    @property
    def given(self) -> tuple[Generic, list[int]]:
        """The op that reads memory, and which of its dimensions are rows and columns."""
        if self.producer is not None:
            return self.producer, [0, 1]
        return self.rows.generic, places_of(self.rows.generic.input_maps[0])

    @property
    def needed(self) -> list[ir.Value]:
        """The places of the results and what they begin with."""
        both = (self.rows, self.columns)
        return [value for one in both for value in (one.result, one.fill.operands[0])]

    @property
    def shape(self) -> tuple[int, int]:
        generic, (of_rows, of_columns) = self.given
        return generic.extents[of_rows], generic.extents[of_columns]

    def erase(self) -> None:
        """Erase what is done by now; the fill of the columns' sums stays."""
        for op in (self.rows.generic.op, self.columns.generic.op, self.rows.fill):
            op.erase()
        if self.producer is not None:
            made = self.producer.outputs[0]
            self.producer.op.erase()
            made.owner.erase()


def _first(module: ir.Module, vector_bits: int) -> _Walk | None:
    ops = [op for op in generics_on_buffers(module) if op.parent.name == "func.func"]
    if len(ops) < 4:  # two reductions and their fills
        return None
    generics = [read_generic(op) for op in ops]
    found = [one for one in map(_Reduction.of, generics) if one is not None]
    for rows in found:
        for columns in found:
            if rows.along_rows and not columns.along_rows:
                walk = _read(rows, columns, generics, vector_bits)
                if walk is not None:
                    return walk
    return None


def _read(
    rows: _Reduction, columns: _Reduction, generics: Sequence[Generic], vector_bits: int
) -> _Walk | None:
    """How to do both together; None if they can't be."""
    if rows.generic.inputs != columns.generic.inputs:
        return None
    walk = _Walk(_producer(rows, columns, generics), rows, columns, 0)
    bits = [getattr(argument.type, "width", 0) for body in walk.bodies for argument in body.arguments]
    if min(bits) < 8:
        return None
    height, width = walk.shape
    lanes = vector_bits // max(bits)
    if height < _LEAST_CHUNK or width < _LEAST_VECTORS * lanes:
        return None
    generic, axes = walk.given
    values = zip(generic.inputs, generic.input_maps, strict=True)
    if not all(_can_be_read(value, map_, axes) for value, map_ in values):
        return None
    return _Walk(walk.producer, rows, columns, lanes) if _can_move(walk, generics) else None


def _producer(rows: _Reduction, columns: _Reduction, generics: Sequence[Generic]) -> Generic | None:
    """The element-wise op that makes what only the two reductions read."""
    (made,) = rows.generic.inputs
    if not is_buffer(made) or not is_temporary(made):
        return None
    users = {use.owner.operation for use in made.uses} - {rows.generic.op, columns.generic.op}
    found = [generic for generic in generics if generic.op in users]
    if len(users) != 1 or len(found) != 1:
        return None
    (producer,) = found
    is_plain = (
        producer.outputs == (made,)
        and producer.rank == 2
        and not any(producer.reductions)
        and places_of(producer.output_maps[0]) == [0, 1]
        and not list(producer.body.arguments[-1].uses)
        and can_be_on_vectors(producer.body)
    )
    return producer if is_plain else None


def _can_be_read(value: ir.Value, map_: ir.AffineMap, axes: list[int]) -> bool:
    """Whether elements of a row lie side by side, or are one."""
    if not is_buffer(value):
        return True
    named = places_of(map_)
    if -1 in named or axes[1] in named[:-1]:
        return False
    return axes[1] not in named or stride_along(value, map_, axes[1]) == 1


def _can_move(walk: _Walk, generics: Sequence[Generic]) -> bool:
    """Whether nothing from the op that makes the elements to the last reduction writes what they are
    made of; what only has to be there earlier for both to be done at once is moved."""
    read = {root_buffer(value) for value in walk.given[0].inputs if is_buffer(value)}
    own = {walk.rows.generic.op, walk.columns.generic.op}
    start = walk.first if walk.producer is None else walk.producer.op
    written = {
        root_buffer(output)
        for generic in generics
        if not generic.op.is_before_in_block(start)
        for output in generic.outputs
        if generic.op not in own and (walk.producer is None or generic.op != walk.producer.op)
    }
    results = {root_buffer(one.result) for one in (walk.rows, walk.columns)}
    if read & (written | results) or len(results) < 2:
        return False
    early = [one.owner.operation for one in walk.needed if not isinstance(one.owner, ir.Block)]
    late = [op for op in early if op.block == walk.first.block and not op.is_before_in_block(walk.first)]
    if any(len(op.operands) for op in late):
        return False
    for op in late:
        op.move_before(walk.first)
    return True


class _Emitter:
    """Emits the walk at the ambient place, in front of the first of the reductions."""

    def __init__(self, walk: _Walk, options: ReduceBothWays) -> None:
        self._walk, self._options = walk, options
        self._height, self._width = walk.shape
        little = sum(len(list(body.operations)) - 1 for body in walk.bodies) <= _SHORT_BODY
        self._rows = _ROWS if little else _FEW_ROWS
        self._of_columns = walk.columns.result.type.element_type
        self._neutral_of_rows = self._neutral(walk.rows)
        self._neutral_of_columns = self._neutral(walk.columns)
        self._partial: ir.Value

    def emit(self) -> None:
        walk, options = self._walk, self._options
        members = [walk.rows.generic, walk.columns.generic, *([walk.producer] if walk.producer else [])]
        cost = sum(map(total_cost, members))
        whole = self._height - self._height % self._rows
        chunks = min(_MOST_CHUNKS, self._height // _LEAST_CHUNK) if cost >= options.parallel_cost else 1
        size = -(-whole // (chunks * self._rows)) * self._rows
        chunks = -(-whole // size)
        type_ = ir.MemRefType.get([chunks, self._width], self._of_columns)
        self._partial = memref.AllocOp(type_, [], []).result
        tasks, grain = split([chunks], cost, options.parallel_cost, options.task_cost)
        for_tasks([chunks], tasks, grain, lambda at: self._chunk(at[0], size, whole))
        if whole < self._height:
            self._block(index(whole), self._height - whole, index(chunks - 1))
        # Sums of columns are complete where they were, after what fills them.
        with ir.InsertionPoint(walk.columns.generic.op):
            add_up(self._partial, walk.columns.result, walk.columns.combiner)

    def _neutral(self, reduction: _Reduction) -> ir.Value:
        element = reduction.result.type.element_type
        return arith.ConstantOp(element, neutral_of(reduction.combiner, element)).result

    def _chunk(self, chunk: ir.Value, size: int, whole: int) -> None:
        """The sums of some blocks of rows, begun anew."""

        def clear(at: ir.Value, lanes: int, _: Sequence[ir.Value]) -> list[ir.Value]:
            none = _in_all_lanes(self._neutral_of_columns, lanes)
            vector.StoreOp(none, self._partial, [chunk, at])
            return []

        self._along_row(clear, [])
        low = arith.MulIOp(chunk, index(size)).result
        high = add(low, index(size))
        if whole % size:
            high = arith.MinSIOp(high, index(whole)).result
        for_steps(low, high, self._rows, lambda row: self._block(row, self._rows, chunk))

    def _along_row(self, step: Step, carried: Sequence[ir.Value]) -> list[list[ir.Value]]:
        """A step for each vector of a row, and what those of whole vectors leave; then one for what is
        left of it, which begins with nothing, and what that leaves."""
        lanes, left = self._walk.lanes, self._width % self._walk.lanes
        end = index(self._width - left)
        found = [for_range(index(0), end, carried, lambda at, now: step(at, lanes, now), lanes)]
        if left:
            none = [_in_all_lanes(self._neutral_of_rows, left) for _ in carried]
            found.append(list(step(end, left, none)))
        return found

    def _block(self, first: ir.Value, count: int, chunk: ir.Value) -> None:
        """Some rows: what they add up to, and what they add to a chunk's sums of columns."""
        rows = [add(first, index(n)) if n else first for n in range(count)]

        def step(at: ir.Value, lanes: int, sums: Sequence[ir.Value]) -> list[ir.Value]:
            return self._step(rows, at, lanes, sums, chunk)

        none = _in_all_lanes(self._neutral_of_rows, self._walk.lanes)
        totals = self._along_row(step, [none] * count)
        reduction = self._walk.rows
        for number, row in enumerate(rows):
            result = reduction.fill.operands[0]
            for total in totals:
                result = across_lanes(reduction.combiner, total[number], result)
            store(result, reduction.result, [row])

    def _step(
        self, rows: Sequence[ir.Value], at: ir.Value, lanes: int, sums: Sequence[ir.Value], chunk: ir.Value
    ) -> list[ir.Value]:
        """A vector of each row, and the sums of rows after it."""
        walk = self._walk
        of_row, of_column = walk.rows.generic.body, walk.columns.generic.body
        place = [chunk, at]
        columns = vector.LoadOp(ir.VectorType.get([lanes], self._of_columns), self._partial, place).result
        results = []
        for row, total in zip(rows, sums, strict=True):
            element = self._elements(row, at, lanes)
            given = {of_row.arguments[0]: element, of_row.arguments[1]: total}
            results += on_vectors(of_row, given, lanes)
            given = {of_column.arguments[0]: element, of_column.arguments[1]: columns}
            (columns,) = on_vectors(of_column, given, lanes)
        vector.StoreOp(columns, self._partial, place)
        return results

    def _elements(self, row: ir.Value, at: ir.Value, lanes: int) -> ir.Value:
        generic, axes = self._walk.given
        position = dict(zip(axes, (row, at), strict=True))
        found: list[ir.Value] = []
        for value, map_ in zip(generic.inputs, generic.input_maps, strict=True):
            named = places_of(map_) if is_buffer(value) else []
            place = [position[d] for d in named]
            if axes[1] in named:
                of = ir.VectorType.get([lanes], ir.MemRefType(value.type).element_type)
                found.append(vector.LoadOp(of, value, place).result)
            else:
                found.append(load(value, place) if is_buffer(value) else value)
        if self._walk.producer is None:
            return found[0]
        known = dict(zip(generic.body.arguments, found, strict=False))
        (element,) = on_vectors(generic.body, known, lanes)
        return element


def _in_all_lanes(value: ir.Value, lanes: int) -> ir.Value:
    return vector.BroadcastOp(ir.VectorType.get([lanes], value.type), value).result
