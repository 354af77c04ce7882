"""Transpose-pack blocks of many short rows, so that vectors go across the rows.

    m[i] = max over j of x[i, j]              parallel for blocks of 128 rows:
    e[i, j] = exp(x[i, j] - m[i])                 t[j, i] = x[i, j]
    s[i] = sum over j of e[i, j]      ->          m[i] = max over j of t[j, i]
    y[i, j] = e[i, j] / s[i]                      t[j, i] = exp(t[j, i] - m[i]);  s[i] = sum over j of t[j, i]
                                                  t[j, i] = t[j, i] / s[i]
                                                  y[i, j] = t[j, i]

Ten elements are not a vector, what is left of one in each row is done with a mask or one by one, and what is
done to each sum is done to one number at a time. A block's columns are rows of a temporary in the first-level
cache, dealt there and back by shuffles (`schedule-generics`); sums of rows are sums down columns. Rows that
don't fill a block at the end are done together with those in front of them, once more.

For bufferised `linalg.generic`s that follow each other on arrays of two dimensions and numbers for each of
their rows, some of which they reduce. Leaves alone what costs no more than to turn the arrays would, and rows
that fill vectors.

example: test/passes/linalg/schedule/pack_short_rows.mlir
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import for_tasks, index
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.factor_copies import copy_elements
from lamina.passes.linalg.analysis.parallel import split, total_cost
from lamina.passes.linalg.analysis.reducing import reducing_on_buffers
from lamina.passes.linalg.analysis.structure import (
    Generic,
    accesses,
    clone_on,
    is_buffer,
    is_dense,
    part_of,
    places_of,
    read_generic,
    root_buffer,
)
from lamina.passes.linalg.schedule.neighbours import (
    changed_in_place,
    erase,
    is_used_by_none_but,
    members_around,
)
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

_MOST_COLUMNS = 96  # shape: where functions of sums are all there is to gain
_MOST_TURNED_BACK = 48  # shape: columns, where results are transposed, too
_LEAST_ROWS = 128  # code: of fewer a call takes a microsecond less, compiling 20 ms more
_BLOCKS = (256, 128, 64, 32)  # rows
_EXTREMES = range(7, 33)  # columns of which one maximum alone is worth it; fewer fill vectors (`linalg-fill-lanes`)
_PER_WEIGHT = 10  # shape: columns for each of what takes several steps in a vector
_LEAST_SUMMED = 5  # shape: columns; fewer fill vectors (`linalg-fill-lanes`)
_CHEAP = {f"math.{name}" for name in ("absf", "ceil", "copysign", "floor", "fma", "rsqrt", "sqrt", "trunc")}


class PackShortRows(Pass):
    """See the module's docstring."""

    vector_bits: int = 512

    def run(self, module: ir.Module) -> None:
        while (work := self._first(module)) is not None:
            self._rewrite(work)
            self.count("turned", len(work.members))

    def _first(self, module: ir.Module) -> _Work | None:
        """Ops that are still to be done in turned blocks."""
        for op in reducing_on_buffers(module):
            shape = _shape_of(read_generic(op)) if op.parent.name == "func.func" else None
            if shape is not None and (members := _members_around(op, *shape)):
                work = _Work.of(members, *shape, machine_of(op).l1_bytes // 2)
                if work is not None and _pays(work, self.vector_bits):
                    return work
        return None

    def _rewrite(self, work: _Work) -> None:
        cost = sum(total_cost(member.generic) for member in work.members)
        blocks = -(-work.rows // work.height)
        tasks, grain = split([blocks], cost, machine_of(work.members[0].generic.op))
        last = work.members[-1].generic.op
        with ir.InsertionPoint(last), last.location:
            if blocks == 1:
                work.emit(None)
            else:
                for_tasks([work.rows], tasks, grain, lambda at: work.emit(at[0]), steps=[work.height])
        erase(member.generic.op for member in work.members)


class _Member(Record):
    """An op, its dimension from row to row, and its operands that are whole arrays, or numbers of rows."""

    generic: Generic
    row: int
    arrays: tuple[ir.Value, ...]
    numbers: tuple[ir.Value, ...]

    @property
    def read(self) -> list[ir.Value]:
        """What it reads, with what it changes in place."""
        return [*filter(is_buffer, self.generic.inputs), *changed_in_place(self.generic)]


class _Work(Record):
    """Ops that are done block by block, of `height` rows each: all arrays lie turned in temporaries of a
    block, and so do numbers of rows that nothing else needs."""

    members: Sequence[_Member]
    rows: int
    columns: int
    height: int

    @classmethod
    def of(cls, members: Sequence[_Member], rows: int, columns: int, most: int) -> _Work | None:
        """The work with blocks as the cache holds them, if there is a way to do it."""
        arrays = dict.fromkeys(value for member in members for value in member.arrays)
        width = columns * sum(map(element_bytes, (ir.MemRefType(v.type).element_type for v in arrays)))
        heights = (rows, *_BLOCKS) if rows <= _BLOCKS[0] else _BLOCKS
        height = next((h for h in heights if h * width <= most and h <= rows), None)
        if height is None:
            return None
        work = cls(members, rows, columns, height)
        return None if rows % height and work._changes_in_place() else work

    def _changes_in_place(self) -> bool:
        """Whether rows would be other ones when they are read once more."""
        seen: set[ir.Value] = set()
        began: set[ir.Value] = set()
        for member in self.members:
            began |= {value for value in member.read if value not in seen}
            seen |= set(member.generic.outputs)
        return any(value in seen and not self._is_own(value) for value in began)

    def _is_own(self, value: ir.Value) -> bool:
        """Whether only these ops use a buffer."""
        return is_used_by_none_but(value, (member.generic.op for member in self.members))

    def emit(self, start: ir.Value | None) -> None:
        """The block that begins there, or all if it is one block."""
        if start is not None and self.rows % self.height:
            start = arith.MinSIOp(start, index(self.rows - self.height)).result
        slots: dict[ir.Value, ir.Value] = {}
        last = {value: member for member in self.members for value in member.generic.outputs}
        for member in self.members:
            for value in member.arrays:
                if value not in slots:
                    slots[value] = _temporary(value, [self.columns, self.height])
                    if value in member.read:
                        copy_elements(self._part(value, start), slots[value], _turned(2))
            for value in member.numbers:
                if value not in slots and self._is_own(value):
                    slots[value] = _temporary(value, [self.height])
            self._emit_part(member, slots, start)
            for value in member.generic.outputs:
                if value in member.arrays and last[value] is member and not self._is_own(value):
                    copy_elements(slots[value], self._part(value, start), _turned(2))

    def _part(self, array: ir.Value, start: ir.Value | None) -> ir.Value:
        at = {} if start is None else {0: start}
        return part_of(array, ir.AffineMap.get_identity(2), at, {0: self.height})

    def _emit_part(
        self, member: _Member, slots: Mapping[ir.Value, ir.Value], start: ir.Value | None
    ) -> None:
        generic = member.generic
        at = {} if start is None else {member.row: start}
        operands, maps = [], []
        for value, map_ in zip(
            (*generic.inputs, *generic.outputs), (*generic.input_maps, *generic.output_maps), strict=True
        ):
            operands.append(slots[value] if value in slots else part_of(value, map_, at, {member.row: self.height}))
            turns = value in member.arrays
            maps.append(ir.AffineMap.get(map_.n_dims, 0, list(map_.results)[::-1]) if turns else map_)
        copy = clone_on(generic.op, operands)
        copy.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps])


def _turned(rank: int) -> ir.AffineMap:
    return ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(d) for d in reversed(range(rank))])


def _temporary(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    element = ir.MemRefType(value.type).element_type
    return memref.AllocOp(ir.MemRefType.get(list(shape), element), [], []).result


def _pays(work: _Work, vector_bits: int) -> bool:
    """Whether turning costs less than reducing each row does, or functions of what fills no vectors."""
    reducing = [member for member in work.members if any(member.generic.reductions)]
    functions = [member for member in work.members if _names(member, "math.") - _CHEAP]
    writes = any(value in member.arrays for member in work.members for value in member.generic.outputs)
    if functions:
        of_sums = any(not member.arrays for member in functions)
        if work.columns > _MOST_TURNED_BACK and (writes or not of_sums):
            return False
        fills = work.columns * 32 > vector_bits and work.columns * 32 % vector_bits == 0
        return of_sums or not fills
    if len(reducing) == 1:
        return _weight(reducing[0]) > 1 and not writes and work.columns in _EXTREMES
    finds = any(_names(member, "linalg.index") for member in work.members)
    most = _PER_WEIGHT * sum(map(_weight, reducing))
    return (_LEAST_SUMMED if not (writes or finds) else 0) <= work.columns <= most


def _weight(member: _Member) -> int:
    """What a reduction in a vector takes: extremes take a NaN from any lane."""
    return 2 if _names(member, "arith.maximumf", "arith.minimumf") else 1


def _names(member: _Member, *prefixes: str) -> set[str]:
    ops = (op.operation.name for op in member.generic.body.operations)
    return {name for name in ops if name.startswith(prefixes)}


def _shape_of(generic: Generic) -> tuple[int, int] | None:
    """The rows and columns of an array of which an op reduces the rows, if these are many and short."""
    if generic.rank != 2 or sum(generic.reductions) != 1:
        return None
    column = generic.reductions.index(True)
    for value, map_ in zip(generic.inputs, generic.input_maps, strict=True):
        if is_buffer(value) and places_of(map_) == [1 - column, column]:
            rows, columns = ir.MemRefType(value.type).shape
            if 1 < columns <= _MOST_COLUMNS and rows >= _LEAST_ROWS:
                return rows, columns
    return None


def _members_around(reduction: ir.Operation, rows: int, columns: int) -> list[_Member]:
    """The ops around one that can be done for some of the rows, with it, that follow each other."""
    found = members_around(reduction, lambda generic: _member(generic, rows, columns))
    return found if _keep_apart(found) else []


def _member(generic: Generic, rows: int, columns: int) -> _Member | None:
    """An op that can be done for some of the rows."""
    touched = accesses(generic)
    arrays = [a for a in touched if _is_array(a.buffer, rows, columns)]
    if generic.extents == (rows,) and not arrays:
        row = 0
    elif arrays and generic.rank == 2:
        row, column = places_of(arrays[0].map)
        if sorted((row, column)) != [0, 1] or any(places_of(a.map) != [row, column] for a in arrays):
            return None
    else:
        return None
    if generic.reductions[row] or not _has_places(generic, row):
        return None
    numbers = [a for a in touched if places_of(a.map) == [row]]
    for access in touched:
        if access.buffer not in [a.buffer for a in (*arrays, *numbers)] and (access.writes or access.places_of(row)):
            return None
        if not _has_vectors(ir.MemRefType(access.buffer.type).element_type):
            return None
    return _Member(generic, row, tuple(a.buffer for a in arrays), tuple(a.buffer for a in numbers))


def _has_places(generic: Generic, row: int) -> bool:
    """Whether an op indexes by dimensions alone, and computes with no number of a row."""
    maps = (*generic.input_maps, *generic.output_maps)
    if not all(isinstance(e, ir.AffineDimExpr) for map_ in maps for e in map_.results):
        return False
    numbers = [ir.IntegerAttr(op.attributes["dim"]).value for op in find_ops(generic.op, "linalg.index")]
    return row not in numbers and not find_ops(generic.op, "memref.load")


def _has_vectors(element: ir.Type) -> bool:
    """Whether elements are whole bytes that vectors hold."""
    return not isinstance(element, ir.ComplexType) and element_bytes(element) * 8 == element.width


def _keep_apart(members: Sequence[_Member]) -> bool:
    """Whether no block touches what another one writes, and nothing an array by another way."""
    written = {v for member in members for v in member.generic.outputs}
    arrays = {v for member in members for v in member.arrays}
    return not any(
        (access.buffer in written and not access.places_of(member.row))
        or (root_buffer(access.buffer) in arrays and access.buffer not in arrays)
        for member in members
        for access in accesses(member.generic)
    )


def _is_array(value: ir.Value, rows: int, columns: int) -> bool:
    """Whether a value is a whole buffer of this shape."""
    return (
        is_buffer(value)
        and list(ir.MemRefType(value.type).shape) == [rows, columns]
        and is_dense(value)
        and root_buffer(value) == value
    )
