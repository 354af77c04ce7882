"""Cache blocking by columns: copy blocks of columns that are walked several times into the second-level cache.

    m[j] = max over i of x[i, j]                  parallel for blocks of j:
    e[i, j] = exp(x[i, j] - m[j])                   t = x[:, block]
    s[j] = sum over i of e[i, j]           ->       m[block] = max over i of t
    y[i, j] = e[i, j] / s[j]                        t = exp(t - m[block]);  s[block] = sum over i of t
                                                    y[:, block] = t / s[block]

Where rows are some power of two bytes apart, a block of columns has few of the cache's sets to itself
and is read from beyond it by each op: a softmax over the first axis of 1024x1024 walked memory seven
times and walks it three times. A block's rows lie side by side in its copy, a temporary of a task; so
do arrays that are read by these ops alone. The ops get views of their buffers, and are lowered by the
passes after this one as they would be alone, but for being in a task already.

For bufferised `linalg.generic`s that follow each other on arrays of two dimensions and vectors of
their columns. Leaves alone: arrays of which the cache holds blocks anyway, those of which a task's
temporaries don't hold a block, and what walks its array once.

example: test/passes/linalg/schedule/block_columns.mlir
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from lamina.dialects.vendors import ir, memref
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import for_tasks
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine import Machine
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.factor_copies import copy_elements
from lamina.passes.linalg.analysis.parallel import split, total_cost
from lamina.passes.linalg.analysis.reducing import reducing_on_buffers
from lamina.passes.linalg.analysis.structure import (
    Generic,
    accesses,
    clone_on,
    is_buffer,
    is_temporary,
    make_generic,
    part_of,
    places_of,
    read_generic,
    strides_of,
)
from lamina.passes.linalg.schedule.neighbours import (
    changed_in_place,
    erase,
    is_used_by_none_but,
    members_around,
)
from lamina.passes.linalg.schedule.tileable import has_plain_indices
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record

_BLOCKS = (256, 128)  # bytes of a row: lines that processors fetch ahead
_LEAST_BLOCKS = 8  # shape: enough for tasks
_PAST_CACHES, _PARTS = 2, 2  # second caches that all columns are more than; parts of one, which a block is
_LEAST_READS = 3  # shape: of arrays, which pay for a copy; those that are reduced twice are walked fast anyway
_MOST_APART = 2  # shape: pages from row to row: each is on one of its own, and these are looked up


class BlockColumns(Pass):
    """See the module's docstring."""


    def run(self, module: ir.Module) -> None:
        while (found := self._first(module)) is not None:
            self._rewrite(*found)

    def _first(self, module: ir.Module) -> tuple[_Work, int] | None:
        """Ops that are still to be done in blocks, and how wide these are."""
        for op in reducing_on_buffers(module):
            space = _columns_of(read_generic(op), machine_of(op))
            if space is not None and op.parent.name == "func.func":
                work = _read(op, *space)
                if work is not None and (width := self._width(work)):
                    return work, width
        return None

    def _rewrite(self, work: _Work, width: int) -> None:
        cost = sum(total_cost(member.generic) for member in work.members)
        tasks, grain = split([work.columns // width], cost, machine_of(work.members[0].generic.op))
        last = work.members[-1].generic.op
        with ir.InsertionPoint(last), last.location:
            for_tasks(
                [work.columns], tasks, grain, lambda at: work.emit(at[0], width), steps=[width]
            )
        erase(member.generic.op for member in work.members)
        self.count("walked in blocks", len(work.members))

    def _width(self, work: _Work) -> int:
        """Of a block; 0 if there is no good one."""
        size = sum(map(element_bytes, work.slots))
        cache = machine_of(work.members[0].generic.op).l2_bytes
        for row in _BLOCKS:
            width = row // max(map(element_bytes, work.slots), default=row)
            if not width or work.columns % width or work.columns < _LEAST_BLOCKS * width:
                continue
            if work.rows * width * size <= cache // _PARTS:
                return width
        return 0


class _Member(Record):
    """An op, its dimension along the columns, and its operands that are whole arrays."""

    generic: Generic
    column: int
    arrays: tuple[ir.Value, ...]

    @property
    def read(self) -> list[ir.Value]:
        """The arrays it reads, those that it changes in place among them."""
        read = (*self.generic.inputs, *changed_in_place(self.generic))
        return [value for value in dict.fromkeys(read) if value in self.arrays]

    @property
    def written(self) -> list[ir.Value]:
        return [value for value in self.generic.outputs if value in self.arrays]


class _Work(Record, frozen=False):
    """Ops that are done block by block. What they read or write is in the slots of a block's
    temporaries for some of them, else in views of their buffers."""

    members: Sequence[_Member]
    rows: int
    columns: int
    slots: list[ir.Type] = field(default_factory=list)
    """The element type of each temporary of a block."""
    copies: dict[int, list[tuple[ir.Value, int]]] = field(default_factory=dict)
    """By the number of an op what is copied into which slot before it."""
    found: list[dict[ir.Value, int]] = field(default_factory=list)
    """For each op the slots of what it reads."""
    put: list[dict[ir.Value, int]] = field(default_factory=list)
    """For each op the slots of what it writes."""

    def place(self) -> None:
        """Choose what is in slots."""
        held: dict[ir.Value, int] = {}
        for number, member in enumerate(self.members):
            for value in member.read:
                if value not in held and self._is_worth_a_copy(value, number):
                    held[value] = self._slot(value, held, self.members[number:])
                    self.copies.setdefault(number, []).append((value, held[value]))
            self.found.append({value: held[value] for value in member.read if value in held})
            into: dict[ir.Value, int] = {}
            later = self.members[number + 1 :]
            for value in member.written:
                if self._stays(value, number):
                    into[value] = held[value] if value in held else self._slot(value, held, later)
                    held[value] = into[value]
                else:
                    held.pop(value, None)
            self.put.append(into)

    def _is_worth_a_copy(self, value: ir.Value, number: int) -> bool:
        """Whether an array is read again before it is written."""
        for member in self.members[number:]:
            if value in member.written:
                return False
            if member is not self.members[number] and value in member.read:
                return True
        return False

    def _stays(self, value: ir.Value, number: int) -> bool:
        """Whether nothing outside needs what is written there by an op."""
        later = self.members[number + 1 :]
        if any(value in member.written for member in later):
            return True
        return is_used_by_none_but(value, (member.generic.op for member in self.members))

    def _slot(
        self, value: ir.Value, held: dict[ir.Value, int], later: Sequence[_Member]
    ) -> int:
        """A slot for an array: one whose array no later op touches, else a new one."""
        element = ir.MemRefType(value.type).element_type
        for other, slot in list(held.items()):
            needed = any(other in (*member.read, *member.written) for member in later)
            if not needed and self.slots[slot] == element:
                del held[other]
                return slot
        self.slots.append(element)
        return len(self.slots) - 1

    def emit(self, start: ir.Value, width: int) -> None:
        """The block that begins there."""
        temporaries = [
            memref.AllocOp(ir.MemRefType.get([self.rows, width], element), [], []).result
            for element in self.slots
        ]
        whole = ir.AffineMap.get_identity(2)
        for number, member in enumerate(self.members):
            for value, slot in self.copies.get(number, ()):
                block = part_of(value, whole, {1: start}, {1: width})
                copy_elements(block, temporaries[slot], whole)
            self._emit_part(number, temporaries, {member.column: start}, {member.column: width})

    def _emit_part(
        self,
        number: int,
        temporaries: Sequence[ir.Value],
        at: Mapping[int, ir.Value],
        size: Mapping[int, int],
    ) -> None:
        """A part of an op, where arrays are found or put in slots."""
        member, generic = self.members[number], self.members[number].generic
        found, put = self.found[number], self.put[number]

        def place(value: ir.Value, map_: ir.AffineMap, slots: Mapping[ir.Value, int]) -> ir.Value:
            return temporaries[slots[value]] if value in slots else part_of(value, map_, at, size)

        reads = list(zip(generic.inputs, generic.input_maps, strict=True))
        writes = list(zip(generic.outputs, generic.output_maps, strict=True))
        inputs = [place(*read, found) for read in reads]
        outputs = [place(*write, put) for write in writes]
        moved = [
            k for k, (v, _) in enumerate(writes) if v in member.read and found.get(v) != put.get(v)
        ]
        if moved:  # what it changes in place lies elsewhere before
            _emit_on_copies(generic, inputs, outputs, {k: place(*writes[k], found) for k in moved})
        else:
            clone_on(generic.op, [*inputs, *outputs])


def _emit_on_copies(
    generic: Generic,
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    olds: Mapping[int, ir.Value],
) -> None:
    """An op on other buffers that finds some of what it changes in `olds`, by numbers of outputs."""
    maps = [*generic.input_maps, *(generic.output_maps[k] for k in olds), *generic.output_maps]
    op = make_generic([*inputs, *olds.values()], outputs, maps, generic.reductions)
    given = list(generic.body.arguments)[: len(inputs)]
    results = list(generic.body.arguments)[len(inputs) :]
    before = [results[k] for k in olds]
    types = [argument.type for argument in (*given, *before, *results)]
    body = ir.Block.create_at_start(op.regions[0], types)
    now, count = list(body.arguments), len(given) + len(before)
    known = dict(zip([*given, *results], [*now[: len(given)], *now[count:]], strict=True))
    known |= dict(zip(before, now[len(given) : count], strict=True))
    with ir.InsertionPoint(body):
        for inner in generic.body.operations:
            copied(inner.operation, known)


def _read(reduction: ir.Operation, rows: int, columns: int) -> _Work | None:
    """The ops around one that reduces columns, if they read arrays often enough."""
    work = _Work(members_around(reduction, lambda generic: _member(generic, rows, columns)), rows, columns)
    if not _keep_apart(work.members):
        return None
    work.place()
    return work if sum(map(len, work.found)) >= _LEAST_READS else None


def _columns_of(generic: Generic, machine: Machine) -> tuple[int, int] | None:
    """The rows and columns of an array of which an op reduces the columns, if the caches don't hold
    a block of them: of rows so many bytes apart they hold the fewer, the higher the power of two in
    that."""
    if generic.rank != 2 or sum(generic.reductions) != 1:
        return None
    row = generic.reductions.index(True)
    for value, map_ in zip(generic.inputs, generic.input_maps, strict=True):
        if not is_buffer(value) or places_of(map_) not in ([row, 1 - row], [1 - row, row]):
            continue
        rows, columns = ir.MemRefType(value.type).shape
        if _is_array(value, rows, columns) and strides_of(value.type, map_)[1 - row] == 1:
            apart = columns * element_bytes(ir.MemRefType(value.type).element_type)
            crowd = rows * (apart & -apart)
            if crowd >= 2 * _PAST_CACHES * machine.l2_bytes and apart <= _MOST_APART * machine.page_bytes:
                return rows, columns
    return None


def _member(generic: Generic, rows: int, columns: int) -> _Member | None:
    """An op that can be done for some of the columns."""
    touched = accesses(generic)
    arrays = [a for a in touched if _is_array(a.buffer, rows, columns)]
    if generic.extents == (columns,) and not arrays:
        column = 0
    elif arrays and generic.rank == 2:
        row, column = places_of(arrays[0].map)
        if sorted((row, column)) != [0, 1] or any(places_of(a.map) != [row, column] for a in arrays):
            return None
    else:
        return None
    if generic.reductions[column] or not has_plain_indices(generic):
        return None
    for access in touched:
        places = access.places_of(column)
        if places - {len(list(access.map.results)) - 1} or (access.writes and not places):
            return None
    return _Member(generic, column, tuple(a.buffer for a in arrays))


def _keep_apart(members: Sequence[_Member]) -> bool:
    """Whether no block touches what another one writes."""
    written = {v for member in members for v in member.generic.outputs}
    for member in members:
        for access in accesses(member.generic):
            if access.buffer in written and not access.places_of(member.column):
                return False
    return True


def _is_array(value: ir.Value, rows: int, columns: int) -> bool:
    """Whether a value is a whole buffer of this shape."""
    return (
        is_buffer(value)
        and list(ir.MemRefType(value.type).shape) == [rows, columns]
        and (isinstance(value.owner, ir.Block) or is_temporary(value))
    )
