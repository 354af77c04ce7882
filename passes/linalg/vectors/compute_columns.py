"""Compute arrays of a few columns in vectors of each, and deal these into rows as they are stored.

    r[i, 0] = x[i, 1] * y[i]                 x0, x1 = columns of 16 rows of x, dealt from two vectors
    r[i, 1] = x[i, 0] + y[i]          ->     r[16 rows] = the elements of x1 * y and x0 + y in turn

where each op alone would load and store every second element, one by one. For bufferised element-wise
`linalg.generic`s that follow each other over equal spaces and write all columns of an array, which a
concatenation or pads along the last dimension do (`stablehlo-compute-parts`). A temporary that only
they read stays in registers. Rows that don't fill vectors at the end are done together with those in
front of them, once more.

Leaves alone what vectors don't have, and ops that read what one of them overwrites elsewhere.

example: test/passes/linalg/vectors/compute_columns.mlir
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.loops import for_tasks, index
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.linalg.analysis.dense_access import (
    DenseAccess,
    bits_of,
    dense_access,
    flat,
    place_in,
)
from lamina.passes.linalg.analysis.parallel import split, total_cost
from lamina.passes.linalg.analysis.structure import (
    HARMLESS,
    Generic,
    is_buffer,
    is_generic_on_buffers,
    is_temporary,
    outputs_of,
    read_generic,
    stride_along,
    strides_of,
)
from lamina.passes.linalg.vectors.lane_windows import Windows, window
from lamina.passes.linalg.vectors.shuffles import interleaved
from lamina.passes.linalg.vectors.vector_body import can_be_on_vectors, on_vectors
from lamina.records import Record

_MOST_COLUMNS = 8  # shape: each is a vector in a register
_LEAST_LANES = 4  # shape


class ComputeColumns(Pass):
    """See the module's docstring."""

    vector_bits: int = 512

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            if function.operation.name != "func.func" or not function.regions[0].blocks:
                continue
            for generics in list(_neighbours(function.regions[0].blocks[0])):
                columns = _read(generics, self.vector_bits)
                if columns is not None:
                    ops = [generic.op for generic in generics]
                    with ir.InsertionPoint(ops[-1]), ops[-1].location:
                        _Emitter(columns, self).emit()
                    _erase(ops)
                    self.count("arrays of columns", len(columns.dealt))


class _Member(Record):
    """An op by what its operands reach, along dimensions that are the same for all members."""

    generic: Generic
    inputs: tuple[DenseAccess | None, ...]
    output: DenseAccess


class _Columns(Record):
    members: tuple[_Member, ...]
    outer: tuple[int, ...]
    rows: int
    lanes: int
    dealt: dict[DenseAccess, tuple[DenseAccess, ...]]
    """By the first column of an array all that lie side by side."""


def _neighbours(block: ir.Block) -> Iterator[list[Generic]]:
    """Ops over equal spaces that nothing which touches memory stands between."""
    together: list[Generic] = []
    space: list[int] = []
    for op in (inner.operation for inner in block.operations):
        if is_generic_on_buffers(op):
            generic = read_generic(op)
            extents = [extent for extent in generic.extents if extent != 1]
            if extents != space and len(together) > 1:
                yield together
            together = [*together, generic] if extents == space else [generic]
            space = extents
        elif not op.name.startswith(HARMLESS):
            if len(together) > 1:
                yield together
            together = []
    if len(together) > 1:
        yield together


def _read(generics: Sequence[Generic], vector_bits: int) -> _Columns | None:
    """How to do these, over equal spaces, together; None if they can't be."""
    extents = tuple(n for n in generics[0].extents if n != 1)
    if 0 in extents or not extents or not any(map(_writes_column, generics)):
        return None
    if not all(_is_elementwise(generic) for generic in generics):
        return None
    members = [_member(generic) for generic in generics]
    if None in members:
        return None
    found = [member for member in members if member is not None]
    groups = _groups(extents, [a for m in found for a in (*m.inputs, m.output) if a is not None])
    *outer, rows = [math.prod(extents[d] for d in group) for group in groups]
    last = [group[-1] for group in groups]
    found = [_along(member, last) for member in found]
    bits = [bits_of(argument.type) for generic in generics for argument in generic.body.arguments]
    lanes = vector_bits // max(bits)
    dealt = _dealt(found)
    if rows < lanes or lanes < _LEAST_LANES or not dealt or not _are_apart(found, rows % lanes == 0):
        return None
    if not all(_within(a, outer, rows) for m in found for a in (*m.inputs, m.output) if a is not None):
        return None
    return _Columns(tuple(found), tuple(outer), rows, lanes, dealt)


def _writes_column(generic: Generic) -> bool:
    """Whether what an op writes may be a column of an array of few; quick to see, and few do."""
    *_, last = (d for d, extent in enumerate(generic.extents) if extent != 1)
    return 1 < stride_along(generic.outputs[0], generic.output_maps[0], last) <= _MOST_COLUMNS


def _is_elementwise(generic: Generic) -> bool:
    return (
        len(generic.outputs) == 1
        and not any(generic.reductions)
        and not list(generic.body.arguments[-1].uses)
        and can_be_on_vectors(generic.body)
    )


def _member(generic: Generic) -> _Member | None:
    dims = [d for d, extent in enumerate(generic.extents) if extent != 1]

    def reached(value: ir.Value, map_: ir.AffineMap) -> DenseAccess | None:
        if not is_buffer(value):
            return None
        strides = strides_of(value.type, map_)
        return dense_access(value, [strides[d] for d in dims], map_)

    values = zip(generic.inputs, generic.input_maps, strict=True)
    inputs = tuple(reached(*given) for given in values)
    output = reached(generic.outputs[0], generic.output_maps[0])
    pairs = zip(inputs, generic.inputs, strict=True)
    if output is None or any(access is None and is_buffer(value) for access, value in pairs):
        return None
    return _Member(generic, inputs, output)


def _groups(extents: Sequence[int], accesses: Sequence[DenseAccess]) -> list[list[int]]:
    """The dimensions, together where they are one to all."""
    groups: list[list[int]] = []
    for d in range(len(extents)):
        if groups and all(
            a.strides[groups[-1][-1]] == a.strides[d] * extents[d] for a in accesses
        ):
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def _along(member: _Member, dims: Sequence[int]) -> _Member:
    def of(access: DenseAccess) -> DenseAccess:
        strides = tuple(access.strides[d] for d in dims)
        return DenseAccess(access.buffer, access.offset, strides, access.size)

    inputs = tuple(None if access is None else of(access) for access in member.inputs)
    return _Member(member.generic, inputs, of(member.output))


def _dealt(members: Sequence[_Member]) -> dict[DenseAccess, tuple[DenseAccess, ...]]:
    """The arrays of which all columns are written; none if something else is that is not side by
    side."""
    written = {member.output for member in members}
    found: dict[DenseAccess, tuple[DenseAccess, ...]] = {}
    for first in written:
        count = first.strides[-1]
        if count == 1 or first.offset % count:
            continue
        row = tuple(_moved(first, column) for column in range(count))
        if not 1 < count <= _MOST_COLUMNS or not written.issuperset(row):
            return {}
        found[first] = row
    columns = {access for row in found.values() for access in row}
    return found if all(access in columns or access.strides[-1] == 1 for access in written) else {}


def _moved(access: DenseAccess, by: int) -> DenseAccess:
    return DenseAccess(access.buffer, access.offset + by, access.strides, access.size)


def _are_apart(members: Sequence[_Member], once: bool) -> bool:
    """Whether none reads what another writes for other rows; or for the same ones, which a row done
    twice would find overwritten."""
    written: dict[ir.Value, set[DenseAccess]] = {}
    for member in members:
        written.setdefault(member.output.buffer, set()).add(member.output)
    made: set[DenseAccess] = set()
    for member in members:
        for access in member.inputs:
            if access is None or access.buffer not in written or access in made:
                continue
            if not once or any(_row(other) != _row(access) for other in written[access.buffer]):
                return False
        if member.output in made:
            return False
        made.add(member.output)
    return True


def _row(access: DenseAccess) -> tuple[object, ...]:
    """Equal for columns of the same rows."""
    count = max(1, access.strides[-1])
    return (access.offset // count, access.strides)


def _within(access: DenseAccess, outer: Sequence[int], rows: int) -> bool:
    """Whether whole rows lie in a buffer, and are few elements."""
    step = access.strides[-1]
    if not 0 <= step <= _MOST_COLUMNS or any(stride < 0 for stride in access.strides):
        return False
    first = access.offset - access.offset % max(1, step)
    last = sum((n - 1) * stride for n, stride in zip(outer, access.strides, strict=False))
    return first + last + max(1, step * rows) <= access.size


def _erase(ops: Sequence[ir.Operation]) -> None:
    buffers = {outputs_of(op)[0] for op in ops}
    for op in reversed(ops):
        op.erase()
    for buffer in buffers:
        if is_temporary(buffer) and not list(buffer.uses):
            buffer.owner.erase()


class _Emitter:
    """Emits the loop over blocks of rows at the ambient place."""

    def __init__(self, columns: _Columns, options: ComputeColumns) -> None:
        self._columns, self._options = columns, options
        accesses = [a for m in columns.members for a in (*m.inputs, m.output) if a is not None]
        buffers = dict.fromkeys(a.buffer for a in accesses if not self._is_private(a.buffer))
        self._flat = {buffer: flat(buffer) for buffer in buffers}
        self._windows: dict[tuple[object, ...], Windows] = {}
        self._made: dict[DenseAccess, ir.Value] = {}

    def emit(self) -> None:
        """Blocks of as many rows as vectors have lanes, the leading loops of them as tasks."""
        columns = self._columns
        counts = [*columns.outer, -(-columns.rows // columns.lanes)]
        cost = sum(total_cost(member.generic) for member in columns.members)
        tasks, grain = split(counts, cost, machine_of(columns.members[0].generic.op))
        steps = [1] * len(columns.outer) + [columns.lanes]
        for_tasks([*columns.outer, columns.rows], tasks, grain, self._block, steps=steps)

    def _block(self, position: list[ir.Value]) -> None:
        columns = self._columns
        *outer, first = position
        if columns.rows % columns.lanes:
            first = arith.MinSIOp(first, index(columns.rows - columns.lanes)).result
        at = [*outer, first]
        for member in columns.members:
            self._made[member.output] = self._result(member, at)
        for row in columns.dealt.values():
            vectors = interleaved([self._made[column] for column in row])
            for number, value in enumerate(vectors):
                self._store(value, _moved(row[0], number * columns.lanes), at)
        for member in columns.members:
            if member.output.strides[-1] == 1 and member.output.buffer in self._flat:
                self._store(self._made[member.output], member.output, at)

    def _result(self, member: _Member, at: Sequence[ir.Value]) -> ir.Value:
        generic = member.generic
        given = zip(member.inputs, generic.inputs, generic.body.arguments, strict=False)
        known = {
            argument: value if access is None else self._vector(access, at)
            for access, value, argument in given
        }
        (result,) = on_vectors(generic.body, known, self._columns.lanes)
        return result

    def _vector(self, access: DenseAccess, at: Sequence[ir.Value]) -> ir.Value:
        """A column of a block of rows."""
        if access not in self._made:
            step, lanes = access.strides[-1], self._columns.lanes
            column = access.offset % max(1, step)
            first = access.offset - column
            key = (access.buffer, first, access.strides)
            if key not in self._windows:
                place = place_in(first, access.strides, at)
                self._windows[key] = Windows(self._flat[access.buffer], place)
            wanted = window([column + step * n for n in range(lanes)], (0, max(1, step * lanes)))
            self._made[access] = self._windows[key].emit(wanted, lanes)
        return self._made[access]

    def _store(self, value: ir.Value, access: DenseAccess, at: Sequence[ir.Value]) -> None:
        place = place_in(access.offset, access.strides, at)
        vector.StoreOp(value, self._flat[access.buffer], [place])

    def _is_private(self, buffer: ir.Value) -> bool:
        """Whether a buffer is a temporary of one column that only these ops use."""
        members = {member.generic.op for member in self._columns.members}
        return is_temporary(buffer) and all(use.owner.operation in members for use in buffer.uses)
