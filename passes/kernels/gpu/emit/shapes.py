"""Which generics run in one kernel, and by which scheme: read off their loops and strides."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lamina.dialects.vendors import ir
from lamina.passes.kernels.gpu.emit.reducer import Reducer
from lamina.passes.linalg.analysis.structure import (
    Access,
    Generic,
    accesses,
    loaded_buffers,
    root_buffer,
    stride_along,
)
from lamina.records import Record

VECTOR_BYTES = 16  # shape
_SQUARE = 8  # elements of an edge, at most, that a thread holds


class Group(Record):
    """Generics of one kernel. `depth` leading loops are those over blocks; None for a generic alone
    that no row scheme fits."""

    members: tuple[Generic, ...]
    depth: int | None


def row_groups(generics: Sequence[Generic]) -> list[Group]:
    """The generics in order, neighbours together where a reduction by rows is among them."""
    groups: list[Group] = []
    depths = {_leading(g) for g in generics if _is_row_reduction(g)}
    pending: list[Generic] = []

    def close() -> None:
        if any(any(g.reductions) for g in pending):
            groups.append(Group(tuple(pending), depth))
        else:
            groups.extend(Group((g,), None) for g in pending)
        pending.clear()

    depth = min(depths, default=-1)
    for generic in generics:
        if depth < 0 or not _fits(generic, depth):
            close()
            groups.append(Group((generic,), None))
            continue
        if pending and not _agree([*pending, generic], depth):
            close()
        pending.append(generic)
    close()
    return groups


def loop_groups(generics: Sequence[Generic]) -> list[list[Generic]]:
    """Element-wise generics in order, neighbours together that can be one loop."""
    groups: list[list[Generic]] = []
    for generic in generics:
        before = groups[-1] if groups else []
        alike = all(g.extents == generic.extents for g in before)
        if before and alike and _agree([*before, generic], generic.rank):
            groups[-1].append(generic)
        else:
            groups.append([generic])
    return groups


def _leading(generic: Generic) -> int:
    return generic.reductions.index(True) if any(generic.reductions) else generic.rank


def _is_row_reduction(generic: Generic) -> bool:
    return (
        Reducer.of(generic) is not None
        and all(generic.reductions[_leading(generic) :])
        and not is_columns(generic)
    )


def _fits(generic: Generic, depth: int) -> bool:
    if any(generic.reductions):
        return _is_row_reduction(generic) and _leading(generic) == depth
    return generic.rank >= depth


def _agree(members: Sequence[Generic], depth: int) -> bool:
    """Whether each iteration of the shared loops keeps to its own part of what is written."""
    if len({g.extents[:depth] for g in members}) > 1:
        return False
    found = [(access, g) for g in members for access in accesses(g)]
    written = {access.buffer for access, _ in found if access.writes}
    # Views of one buffer may overlap: then what is written may be seen under another name.
    names: dict[ir.Value, set[ir.Value]] = {}
    for access, _ in found:
        names.setdefault(root_buffer(access.buffer), set()).add(access.buffer)
    changed = {root_buffer(buffer) for buffer in written}
    if any(len(names[root]) > 1 for root in changed):
        return False
    if any(root_buffer(buffer) in changed for g in members for buffer in loaded_buffers(g)):
        return False
    for buffer in written:
        alike = {
            tuple(frozenset(access.places_of(d)) for d in range(depth))
            for access, _ in found
            if access.buffer == buffer
        }
        if len(alike) != 1 or any(len(places) != 1 for places in next(iter(alike))):
            return False
    return True


def is_columns(generic: Generic) -> bool:
    """Whether a reduction's neighbouring results read neighbouring elements."""
    parallel = [d for d, r in enumerate(generic.reductions) if not r]
    reduced = [d for d, r in enumerate(generic.reductions) if r]
    if not parallel or not reduced:
        return False

    def contiguous(dimension: int) -> bool:
        return any(
            isinstance(value.type, ir.MemRefType) and stride_along(value, map_, dimension) == 1
            for value, map_ in zip(generic.inputs, generic.input_maps, strict=True)
        )

    return generic.extents[parallel[-1]] > 1 and contiguous(parallel[-1]) and not contiguous(
        reduced[-1]
    )  # fmt: skip


def transposed_input(generic: Generic) -> tuple[int, int] | None:
    """(input, dimension) where an element-wise generic reads an input that is contiguous along
    another dimension than the last, which the outputs are contiguous along."""
    if any(generic.reductions) or generic.rank < 2 or _has_positions(generic):
        return None
    last = generic.rank - 1
    if any(
        stride_along(o, m, last) != 1 for o, m in zip(generic.outputs, generic.output_maps)
    ) or any(value in generic.outputs for value in generic.inputs):
        return None
    found = [
        (place, dimension)
        for place, (value, map_) in enumerate(zip(generic.inputs, generic.input_maps))
        if isinstance(value.type, ir.MemRefType) and stride_along(value, map_, last) > 1
        for dimension in range(last)
        if stride_along(value, map_, dimension) == 1
    ]
    if len(found) != 1 or generic.extents[last] < 8 or generic.extents[found[0][1]] < 8:
        return None
    element = ir.MemRefType(generic.inputs[found[0][0]].type).element_type
    return None if isinstance(element, ir.ComplexType) else found[0]


def _has_positions(generic: Generic) -> bool:
    return "linalg.index" in generic.op.get_asm() or bool(loaded_buffers(generic))


def vector_length(generic: Generic, private: Collection[ir.Value] = ()) -> int:
    """How many neighbours along the last loop one thread does at once, with accesses of at most 16
    bytes; 1 where rows, types or what the body does forbid it. `private` buffers are in registers."""
    last = generic.rank - 1
    if not generic.rank:
        return 1
    found = [access for access in accesses(generic) if access.buffer not in private]
    if any(generic.reductions):  # of a reduction what it reads; its result is one element
        found = [access for access in found if not access.writes]
        if not generic.reductions[last]:
            return 1
    length = min((_length_of(access, last) for access in found), default=VECTOR_BYTES)
    while length > 1 and generic.extents[last] % length:
        length //= 2
    return min(length, VECTOR_BYTES // 2) if any(generic.reductions) else length


def square_length(generic: Generic, place: int, along: int) -> int:
    """How many neighbours, along both dimensions, a thread can do at once of an element-wise generic that reads input
    `place` along another dimension than the last; 1 where rows or types forbid more, or where four lanes would read
    pieces of 32 bytes in part."""
    last = generic.rank - 1
    across = (generic.inputs[place], generic.input_maps[place])
    length = _SQUARE
    for access in accesses(generic):
        is_across = not access.writes and (access.buffer, access.map) == across
        length = min(length, _length_of(access, along if is_across else last))
    while length > 1 and any(generic.extents[d] % length for d in (along, last)):
        length //= 2
    size = ir.MemRefType(generic.inputs[place].type).element_type.width // 8
    whole = length * size >= 8 and not any(generic.extents[d] * size % 32 for d in (along, last))
    return length if length * size >= VECTOR_BYTES or whole else 1


def column_length(generic: Generic) -> int:
    """How many neighbouring results of a reduction one thread can read the elements of at once."""
    along = [d for d, r in enumerate(generic.reductions) if not r][-1]
    reads = [access for access in accesses(generic) if not access.writes]
    length = min((_length_of(access, along) for access in reads), default=1)
    length = min(length, _SQUARE)
    while length > 1 and generic.extents[along] % length:
        length //= 2
    return length


def _length_of(access: Access, along: int) -> int:
    """How many elements that follow each other along a loop one access of at most 16 bytes can reach."""
    type_ = ir.MemRefType(access.buffer.type)
    element = type_.element_type
    if not isinstance(element, (ir.FloatType, ir.IntegerType)) or element.width < 8:
        return 1
    stride = stride_along(access.buffer, access.map, along)
    if stride not in (0, 1) or (access.writes and stride != 1):
        return 1
    if stride == 0:
        return VECTOR_BYTES
    strides, offset = type_.get_strides_and_offset()
    if not isinstance(access.map.results[-1], ir.AffineDimExpr) or strides[-1] != 1:
        return 1
    length = VECTOR_BYTES * 8 // element.width
    while length > 1 and (offset < 0 or any(s % length for s in [offset, *strides[:-1]])):
        length //= 2
    return max(1, length)
