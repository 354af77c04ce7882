"""Which reductions of two dimensions one pass over memory can do, and their fused producers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from lamina.dialects.vendors import ir
from lamina.passes.linalg.analysis.structure import (
    Generic,
    is_buffer,
    is_temporary,
    places_of,
    root_buffer,
    sole_fill,
    stride_along,
)
from lamina.passes.linalg.schedule.split_reductions import combiner_of
from lamina.passes.linalg.vectors.vector_body import can_be_on_vectors
from lamina.records import Record


class Member(Record):
    """An op on elements of two dimensions, rows by columns, that vectors have."""

    generic: Generic
    axes: tuple[int, int]
    """Which of its dimensions are rows and columns."""

    @classmethod
    def of(cls, generic: Generic) -> Member | None:
        """None for what reads no such array, or two that are turned."""
        if generic.rank != 2 or len(generic.outputs) != 1 or not can_be_on_vectors(generic.body):
            return None
        found = {
            tuple(places_of(map_))
            for value, map_ in zip(generic.inputs, generic.input_maps, strict=True)
            if is_buffer(value) and len(map_.results) == 2
        }
        if len(found) != 1:
            return None
        (axes,) = found
        if sorted(axes) != [0, 1]:
            return None
        member = cls(generic, (axes[0], axes[1]))
        return member if all(member._can_be_read(*one) for one in member.inputs) else None

    @property
    def inputs(self) -> Iterator[tuple[ir.Value, ir.AffineMap]]:
        return zip(self.generic.inputs, self.generic.input_maps, strict=True)

    @property
    def arrays(self) -> set[ir.Value]:
        """What it reads of both dimensions."""
        return {value for value, map_ in self.inputs if is_buffer(value) and len(map_.results) == 2}

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.axes
        return self.generic.extents[rows], self.generic.extents[columns]

    def _can_be_read(self, value: ir.Value, map_: ir.AffineMap) -> bool:
        """Whether elements of a row lie side by side, or are one."""
        if not is_buffer(value):
            return True
        named = places_of(map_)
        if -1 in named or self.axes[1] in named[:-1]:
            return False
        return self.axes[1] not in named or stride_along(value, map_, self.axes[1]) == 1


class Reduction(Member):
    """One along rows or down columns."""

    fill: ir.Operation
    combiner: ir.Operation

    @classmethod
    def of(cls, generic: Generic) -> Reduction | None:
        """None for another op."""
        if sum(generic.reductions) != 1 or (member := Member.of(generic)) is None:
            return None
        fill, combiner = sole_fill(generic, generic.outputs[0]), combiner_of(generic)
        if fill is None or combiner is None:
            return None
        return cls(generic, member.axes, fill, combiner)

    @property
    def along_rows(self) -> bool:
        return self.generic.reductions[self.axes[1]]

    @property
    def result(self) -> ir.Value:
        return self.generic.outputs[0]

    @property
    def element(self) -> ir.Type:
        return self.result.type.element_type


class Walk(Record, frozen=False):
    """Reductions of the same rows and columns, and the ops that make what only they read."""

    reductions: list[Reduction]
    producers: dict[ir.Value, Member] = field(default_factory=dict)

    @property
    def rows(self) -> list[Reduction]:
        return [one for one in self.reductions if one.along_rows]

    @property
    def columns(self) -> list[Reduction]:
        return [one for one in self.reductions if not one.along_rows]

    @property
    def members(self) -> list[Member]:
        return [*self.producers.values(), *self.reductions]

    @property
    def shape(self) -> tuple[int, int]:
        return self.reductions[0].shape

    @property
    def bits(self) -> list[int]:
        """The widths of all elements; 0 of what is no number."""
        bodies = [member.generic.body for member in self.members]
        return [getattr(argument.type, "width", 0) for body in bodies for argument in body.arguments]

    @property
    def first(self) -> ir.Operation:
        """The op in whose place all are done."""
        return self.reductions[0].generic.op

    def find_producers(self, makers: Mapping[ir.Value, Generic]) -> None:
        """Find the element-wise ops that make what only the walk reads."""
        own = {one.generic.op for one in self.reductions}
        work = [value for one in self.reductions for value in one.arrays]
        found: dict[ir.Value, Member] = {}
        while work:
            value = work.pop()
            generic = makers.get(value)
            if value in found or generic is None or not is_temporary(value) or generic.op in own:
                continue
            member = Member.of(generic)
            if member is not None and _is_plain(member):
                found[value] = member
                work += member.arrays
        while True:
            inside = own | {member.generic.op for member in found.values()}
            read = [
                value for value in found if any(use.owner.operation not in inside for use in value.uses)
            ]
            if not read:
                break
            for value in read:
                del found[value]
        self.producers = found

    def can_move(self, generics: Sequence[Generic]) -> bool:
        """Whether nothing from the first op on writes what the elements are made of; what only has
        to be there earlier for all to be done at once is moved."""
        made = set(self.producers)
        read = {
            root_buffer(value)
            for member in self.members
            for value in member.generic.inputs
            if is_buffer(value) and value not in made
        }
        own = {member.generic.op for member in self.members}
        start = self.first
        for member in self.producers.values():
            start = member.generic.op if member.generic.op.is_before_in_block(start) else start
        written = {
            root_buffer(output)
            for generic in generics
            if generic.op not in own and not generic.op.is_before_in_block(start)
            for output in generic.outputs
        }
        results = {root_buffer(one.result) for one in self.reductions}
        if read & (written | results) or len(results) < len(self.reductions):
            return False
        needed = [value for one in self.reductions for value in (one.result, one.fill.operands[0])]
        needed += [value for member in self.members for value in member.generic.inputs if value not in made]
        early = [value.owner.operation for value in needed if not isinstance(value.owner, ir.Block)]
        late = [op for op in early if op.block == start.block and not op.is_before_in_block(self.first)]
        if any(len(op.operands) for op in late):
            return False
        for op in late:
            op.move_before(self.first)
        return True

    def erase(self) -> None:
        """Erase what is done by now; the fills of the columns' sums stay."""
        for one in self.reductions:
            one.generic.op.erase()
            if one.along_rows:
                one.fill.erase()
        while self.producers:
            for made, member in list(self.producers.items()):
                if all(use.owner.operation == member.generic.op for use in made.uses):
                    member.generic.op.erase()
                    made.owner.erase()
                    del self.producers[made]


def find_walk(reductions: Sequence[Reduction], generics: Sequence[Generic]) -> Walk:
    """The first reduction with all others of arrays that it is made of, or one of them is."""
    makers = {generic.outputs[0]: generic for generic in generics if len(generic.outputs) == 1}
    first, *others = [(one, _made_of(one, makers)) for one in reductions if one.shape == reductions[0].shape]
    found, arrays = [first[0]], first[1]
    while True:
        more = [pair for pair in others if pair[1] & arrays]
        if not more:
            break
        found += [one for one, _ in more]
        arrays = arrays.union(*(own for _, own in more))
        others = [pair for pair in others if pair not in more]
    walk = Walk([one for one in reductions if one in found])
    walk.find_producers(makers)
    return walk


def _made_of(reduction: Reduction, makers: Mapping[ir.Value, Generic]) -> set[ir.Value]:
    """The arrays of the same rows and columns that a reduction's operand is made of."""
    found: set[ir.Value] = set()
    work = list(reduction.arrays)
    while work:
        value = work.pop()
        if value in found:
            continue
        found.add(value)
        member = Member.of(makers[value]) if value in makers else None
        if member is not None and not any(member.generic.reductions):
            work += member.arrays
    return found


def _is_plain(member: Member) -> bool:
    """Whether an op only makes elements, each from those at its place."""
    generic = member.generic
    return (
        not any(generic.reductions)
        and tuple(places_of(generic.output_maps[0])) == member.axes
        and not list(generic.body.arguments[-1].uses)
    )
