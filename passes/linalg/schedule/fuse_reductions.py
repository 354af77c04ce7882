"""Single-pass multi-reduction: reduce arrays along rows and down columns, in several ways, in one pass over them.

    r[i] += x[i, j]            for all j        for blocks of 8 rows: for vectors of columns:
    c[j] += x[i, j]            for all i    ->    eight sums of rows, in registers, and p[chunk, columns], q
    d[j] += x[i, j] * y[i, j]  for all i        c[j] = sum of p[chunk, j], d[j] = sum of q[chunk, j]

Each element is loaded once, and made once where an element-wise op that only these read makes it. Chunks
of rows run as tasks; how many there are depends on the shape alone, so results don't depend on the number
of threads. For bufferised `linalg.generic`s on two dimensions with a combiner that vectors have, whose
inputs are rows of elements side by side, one number for each row, or one in all. Leaves alone what only
goes along rows (`schedule-generics`), and columns of an array of which a kernel does more over the same rows, which
keeps blocks of them in cache.

example: test/passes/linalg/schedule/fuse_reductions.mlir
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from lamina.dialects.vendors import arith, ir, memref, vector
from lamina.passes.emit.loops import add, for_range, for_steps, for_tasks, index, load, store
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.linalg.analysis.parallel import is_worth_splitting, split, total_cost
from lamina.passes.linalg.analysis.reducing import reduced_dimensions
from lamina.passes.linalg.analysis.structure import (
    Generic,
    generics_on_buffers,
    is_buffer,
    places_of,
    read_generic,
    root_buffer,
)
from lamina.passes.linalg.schedule.fused_reductions import Member, Reduction, Walk, find_walk
from lamina.passes.linalg.schedule.split_reductions import add_up, neutral_of
from lamina.passes.linalg.vectors.vector_body import across_lanes, on_vectors

_ROWS, _FEW_ROWS = 8, 4  # code: of a block
_SHORT_BODY = 8  # code: ops on an element, of which a block of many rows is still little code
_MOST_CHUNKS, _FEW_CHUNKS = 16, 4  # rounding
_BYTES_OF_SUMS = 1 << 16  # rounding: of all chunks, unless they would be few: so much is on the stack
_LEAST_CHUNK = 32  # rounding: rows, which have 32 times the elements of the chunk's sums
_LEAST_VECTORS = 2  # rounding: of a row
_LONG_ROW = 1 << 11  # rounding: bytes: sums of columns that cost little can stay in registers (`schedule-generics`)

Step = Callable[[ir.Value, int, Sequence[ir.Value]], Sequence[ir.Value]]
"""(column, lanes, carried) -> what is carried to the next vector of a row."""


class FuseReductions(Pass):
    """See the module's docstring."""

    vector_bits: int = 512

    def run(self, module: ir.Module) -> None:
        while (walk := _first(module, self.vector_bits)) is not None:
            with ir.InsertionPoint(walk.first), walk.first.location:
                _Emitter(walk, self).emit()
            walk.erase()
            self.count("walks")


def _first(module: ir.Module, vector_bits: int) -> Walk | None:
    of_functions: dict[ir.Block, list[ir.Operation]] = defaultdict(list)
    for op in generics_on_buffers(module):
        if op.parent.name == "func.func":
            of_functions[op.block].append(op)
    for ops in of_functions.values():
        if len(ops) < 2 or not any(map(reduced_dimensions, ops)):
            continue  # no reduction and its fill
        generics = [read_generic(op) for op in ops]
        left = [one for one in map(Reduction.of, generics) if one is not None]
        while left:
            walk = find_walk(left, generics)
            if _pays(walk, generics, vector_bits) and walk.can_move(generics):
                return walk
            left = [one for one in left if one not in walk.reductions]
    return None


def _pays(walk: Walk, generics: Sequence[Generic], vector_bits: int) -> bool:
    if not walk.columns or min(walk.bits) < 8:
        return False
    height, width = walk.shape
    if height < _LEAST_CHUNK or width < _LEAST_VECTORS * _lanes(walk, vector_bits):
        return False
    if walk.rows:
        return True
    if len(walk.columns) == 1 and width * max(walk.bits) > 8 * _LONG_ROW and not _is_costly(walk):
        return False
    own = {member.generic.op for member in walk.members}
    arrays = {root_buffer(value) for member in walk.members for value in member.arrays}
    others = [generic for generic in generics if generic.op not in own and generic.rank > 1]
    return not any(
        is_buffer(value) and root_buffer(value) in arrays
        for generic in others
        for value in (*generic.inputs, *generic.outputs)
    )


def _is_costly(walk: Walk) -> bool:
    names = [op.operation.name for member in walk.members for op in member.generic.body.operations]
    return any(name.startswith("math.") or "div" in name for name in names)


def _lanes(walk: Walk, vector_bits: int) -> int:
    return vector_bits // max(walk.bits)


class _Emitter:
    """Emits the walk at the ambient place, in front of the first of the reductions."""

    def __init__(self, walk: Walk, options: FuseReductions) -> None:
        self._walk, self._options = walk, options
        self._lanes = _lanes(walk, options.vector_bits)
        self._height, self._width = walk.shape
        self._of_rows, self._of_columns = walk.rows, walk.columns
        ops = sum(len(list(member.generic.body.operations)) - 1 for member in walk.members)
        self._rows = _ROWS if ops <= _SHORT_BODY and len(self._of_rows) <= 1 else _FEW_ROWS
        self._neutral_of_rows = [_neutral(one) for one in self._of_rows]
        self._neutral_of_columns = [_neutral(one) for one in self._of_columns]
        self._partial: list[ir.Value] = []

    def emit(self) -> None:
        walk = self._walk
        cost = sum(total_cost(member.generic) for member in walk.members)
        whole = self._height - self._height % self._rows
        chunks = self._count_chunks() if is_worth_splitting(cost) else 1
        size = -(-whole // (chunks * self._rows)) * self._rows
        chunks = -(-whole // size)
        for one in self._of_columns:
            type_ = ir.MemRefType.get([chunks, self._width], one.element)
            self._partial.append(memref.AllocOp(type_, [], []).result)
        tasks, grain = split([chunks], cost, machine_of(walk.first))
        for_tasks([chunks], tasks, grain, lambda at: self._chunk(at[0], size, whole))
        if whole < self._height:
            self._block(index(whole), self._height - whole, index(chunks - 1))
        # Sums of columns are complete where they were, after what fills them.
        for one, partial in zip(self._of_columns, self._partial, strict=True):
            with ir.InsertionPoint(one.generic.op):
                add_up(partial, one.result, one.combiner)

    def _count_chunks(self) -> int:
        of_chunk = sum(self._width * one.element.width // 8 for one in self._of_columns)
        fitting = min(_MOST_CHUNKS, max(_FEW_CHUNKS, _BYTES_OF_SUMS // of_chunk))
        return max(1, min(fitting, self._height // _LEAST_CHUNK))

    def _chunk(self, chunk: ir.Value, size: int, whole: int) -> None:
        """The sums of some blocks of rows, begun anew."""

        def clear(at: ir.Value, lanes: int, _: Sequence[ir.Value]) -> list[ir.Value]:
            for neutral, partial in zip(self._neutral_of_columns, self._partial, strict=True):
                vector.StoreOp(_in_all_lanes(neutral, lanes), partial, [chunk, at])
            return []

        self._along_row(clear, [])
        low = arith.MulIOp(chunk, index(size)).result
        high = add(low, index(size))
        if whole % size:
            high = arith.MinSIOp(high, index(whole)).result
        for_steps(low, high, self._rows, lambda row: self._block(row, self._rows, chunk))

    def _along_row(self, step: Step, none: Sequence[ir.Value]) -> list[list[ir.Value]]:
        """A step for each vector of a row, and what those of whole vectors leave; then one for what is
        left of it, which begins with nothing, and what that leaves."""
        lanes, left = self._lanes, self._width % self._lanes
        end = index(self._width - left)
        carried = [_in_all_lanes(value, lanes) for value in none]
        found = [for_range(index(0), end, carried, lambda at, now: step(at, lanes, now), lanes)]
        if left:
            found.append(list(step(end, left, [_in_all_lanes(value, left) for value in none])))
        return found

    def _block(self, first: ir.Value, count: int, chunk: ir.Value) -> None:
        """Some rows: what they add up to, and what they add to a chunk's sums of columns."""
        rows = [add(first, index(n)) if n else first for n in range(count)]
        of_rows = [_Row(self._walk, row) for row in rows]
        none = self._neutral_of_rows * count
        totals = self._along_row(lambda *now: self._step(of_rows, chunk, *now), none)
        for number, row in enumerate(rows):
            for place, one in enumerate(self._of_rows):
                result = one.fill.operands[0]
                for total in totals:
                    result = across_lanes(one.combiner, total[number * len(self._of_rows) + place], result)
                store(result, one.result, [row])

    def _step(
        self, rows: Sequence[_Row], chunk: ir.Value, at: ir.Value, lanes: int, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """A vector of each row, and the sums of rows after it."""
        columns = [
            vector.LoadOp(ir.VectorType.get([lanes], one.element), partial, [chunk, at]).result
            for one, partial in zip(self._of_columns, self._partial, strict=True)
        ]
        results = []
        of_columns: dict[Access, ir.Value] = {}
        left = iter(sums)
        for row in rows:
            vectors = row.vectors(at, lanes, of_columns)
            results += [vectors.added(one, next(left)) for one in self._of_rows]
            columns = [
                vectors.added(one, total) for one, total in zip(self._of_columns, columns, strict=True)
            ]
        for total, partial in zip(columns, self._partial, strict=True):
            vector.StoreOp(total, partial, [chunk, at])
        return results


Access = tuple[ir.Value, tuple[bool, ...]]
"""An input, and which of its dimensions are columns."""


class _Row:
    """A row, with what is the same in all of it."""

    def __init__(self, walk: Walk, row: ir.Value) -> None:
        self.walk, self.row = walk, row
        self._same: dict[ir.Value, ir.Value] = {}
        for member in walk.members:
            for value, map_ in member.inputs:
                if is_buffer(value) and member.axes[1] not in places_of(map_) and value not in self._same:
                    self._same[value] = load(value, [row] * len(map_.results))

    def vectors(self, at: ir.Value, lanes: int, of_columns: dict[Access, ir.Value]) -> _Vectors:
        """The vectors of this row that begin at a column."""
        return _Vectors(self, at, lanes, of_columns)

    def same(self, value: ir.Value) -> ir.Value:
        """An input that is one number in the row."""
        return self._same.get(value, value)


class _Vectors:
    """What is at some columns of a row, each loaded or made once."""

    def __init__(self, row: _Row, at: ir.Value, lanes: int, of_columns: dict[Access, ir.Value]) -> None:
        self._row, self._at, self._lanes = row, at, lanes
        self._known: dict[Access, ir.Value] = {}
        self._of_columns = of_columns

    def added(self, one: Reduction, total: ir.Value) -> ir.Value:
        """A sum with these elements in it."""
        arguments = one.generic.body.arguments
        given = dict(zip(arguments, [*self._inputs(one), total], strict=True))
        (result,) = on_vectors(one.generic.body, given, self._lanes)
        return result

    def _inputs(self, member: Member) -> list[ir.Value]:
        return [self._input(member, value, map_) for value, map_ in member.inputs]

    def _input(self, member: Member, value: ir.Value, map_: ir.AffineMap) -> ir.Value:
        named = places_of(map_) if is_buffer(value) else []
        if member.axes[1] not in named:
            return self._row.same(value)
        key = value, tuple(place == member.axes[1] for place in named)
        known = self._known if member.axes[0] in named else self._of_columns
        if key not in known:
            known[key] = self._found(value, key[1])
        return known[key]

    def _found(self, value: ir.Value, are_columns: tuple[bool, ...]) -> ir.Value:
        producer = self._row.walk.producers.get(value)
        if producer is not None:
            body = producer.generic.body
            given = dict(zip(body.arguments, self._inputs(producer), strict=False))
            (made,) = on_vectors(body, given, self._lanes)
            return made
        of = ir.VectorType.get([self._lanes], ir.MemRefType(value.type).element_type)
        place = [self._at if is_column else self._row.row for is_column in are_columns]
        return vector.LoadOp(of, value, place).result


def _neutral(reduction: Reduction) -> ir.Value:
    return arith.ConstantOp(reduction.element, neutral_of(reduction.combiner, reduction.element)).result


def _in_all_lanes(value: ir.Value, lanes: int) -> ir.Value:
    return vector.BroadcastOp(ir.VectorType.get([lanes], value.type), value).result
