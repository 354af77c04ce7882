"""Let neighbouring loop nests share their outer loops: what one row writes, the next op reads hot.

    y[i, j] = exp(x[i, j]); s[i] = sum over j of y[i, j]; z[i, j] = y[i, j] / s[i]
runs as one loop over i around three loops over j, instead of three passes over memory. Ops may
share their leading parallel loops when the loops' extents are equal and every buffer that one of
them writes and another touches is indexed by the shared loops alike in both, so that an iteration
keeps to its own part. Ops on equal shapes share all their loops and become one.

A reduction down columns walks blocks of them. Others share the loop over the blocks, and walk what is
inside a block as before: a softmax over the first axis keeps a block of columns in cache.

Members get `lamina.shared = array<i64: group, loops>`; their tasks are chosen anew, together.
Groups end at anything between their ops that could touch memory. Ops inside other loops share
nothing, but for those of a part (`linalg-pad-in-parts`), nor does what begins with loops over blocks
of several dimensions.

example: test/passes/linalg/share_loops.mlir
"""

from __future__ import annotations

import math
from dataclasses import field
from functools import cached_property

from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.linalg.loop_nest import Loop, LoopNest, read_nest, write_nest, write_shared
from lamina.passes.linalg.parallel import split, total_cost
from lamina.passes.linalg.structure import (
    HARMLESS,
    PART,
    Access,
    Generic,
    accesses,
    generics_on_buffers,
    is_generic_on_buffers,
    loads,
    read_generic,
    root_buffer,
    sole_fill,
)
from lamina.records import Record

_LEAST_ITERATIONS = 4  # of the shared loops, where there is work for tasks


class ShareLoops(Pass):
    """See the module's docstring."""

    parallel_cost: float = 30_000.0
    task_cost: float = 10_000.0

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            if function.operation.name == "func.func" and function.regions[0].blocks:
                self._share(function.regions[0].blocks[0])
        parts = {op.block for op in generics_on_buffers(module) if PART in op.attributes}
        for block in parts:
            self.but(parallel_cost=math.inf)._share(block)

    def _share(self, block: ir.Block) -> None:
        for number, group in enumerate(self._groups(block)):
            self._record(number, group)
            self.count("sharing", len(group.members))

    def _groups(self, block: ir.Block) -> list[_Group]:
        operations = [op.operation for op in block.operations]
        generics = [read_generic(op) for op in operations if is_generic_on_buffers(op)]
        found = {generic.op: generic for generic in generics}
        absorbed = {sole_fill(g, output) for g in generics for output in g.outputs}
        groups: list[_Group] = []
        open_group: _Group | None = None
        for op in operations:
            generic = found.get(op)
            if op in absorbed or (generic is None and op.name.startswith(HARMLESS)):
                continue
            if generic is None or 0 in generic.extents:
                open_group = None
                continue
            member = _Member(generic, read_nest(op, generic.rank))
            if open_group is None or not open_group.admit(member, self.parallel_cost):
                open_group = _Group([member], _shareable(member))
                groups.append(open_group)
        return [group for group in groups if len(group.members) > 1]

    def _record(self, number: int, group: _Group) -> None:
        first = group.members[0]
        loops = first.nest.loops[: group.loops]
        counts = [-(-first.generic.extents[loop.dimension] // loop.step) for loop in loops]
        cost = sum(member.cost for member in group.members)
        tasks, grain = split(counts, cost, self.parallel_cost, self.task_cost)
        for member in group.members:
            write_nest(member.generic.op, LoopNest(member.nest.loops, tasks, grain))
            write_shared(member.generic.op, number, group.loops)


class _Member(Record):
    generic: Generic
    nest: LoopNest

    @cached_property
    def touched(self) -> list[tuple[Access, ir.Value]]:
        """The buffers of the op, each with what it is a view of."""
        found = accesses(self.generic) + loads(self.generic)
        return [(access, root_buffer(access.buffer)) for access in found]

    @cached_property
    def cost(self) -> float:
        return total_cost(self.generic)

    def outer(self, loops: int) -> tuple[Loop, ...]:
        return self.nest.loops[:loops]

    @property
    def block(self) -> int | None:
        """The width of the blocks of columns that the outermost loop walks, if that is what it
        does."""
        first, *others = self.nest.loops or (Loop(0),)
        if first.step == 1 or self.generic.reductions[first.dimension]:
            return None
        return first.step if all(loop.step == 1 for loop in others) else None

    def in_blocks(self, extent: int, width: int) -> list[_Member]:
        """The ways to walk blocks of a dimension of this extent, where this op walks none yet."""
        loops = self.nest.loops
        if any(loop.step > 1 for loop in loops):
            return []
        return [
            _Member(self.generic, self.nest._replace(loops=(Loop(loop.dimension, width), *loops)))
            for loop in loops
            if self.generic.extents[loop.dimension] == extent
            and not self.generic.reductions[loop.dimension]
        ]


def _shareable(member: _Member) -> int:
    """How many leading loops are parallel and walk their dimension whole; or one over blocks."""
    count = 0
    if member.block is not None:
        return 1
    for loop in member.nest.loops:
        if loop.step != 1 or member.generic.reductions[loop.dimension]:
            break
        count += 1
    return count


class _Group(Record, frozen=False):
    """Members in order and how many loops they share."""

    members: list[_Member]
    loops: int
    _cost: float = field(default=0.0)

    def admit(self, member: _Member, parallel_cost: float) -> bool:
        """Take a member in if it can share; says whether it did."""
        first = self.members[0]
        if first.block is not None and member.block is None:
            extent = first.generic.extents[first.nest.loops[0].dimension]
            ways = member.in_blocks(extent, first.block)
            return any(self._admit(way, parallel_cost) for way in ways)
        return first.block == member.block and self._admit(member, parallel_cost)

    def _admit(self, member: _Member, parallel_cost: float) -> bool:
        loops = min(self.loops, _shareable(member))
        for other in self.members:
            loops = _common(other, member, loops)
        if not loops:
            return False
        counts = 1
        for loop in member.outer(loops):
            counts *= -(-member.generic.extents[loop.dimension] // loop.step)
        cost = sum(m.cost for m in (*self.members, member))
        if cost >= parallel_cost and counts < _LEAST_ITERATIONS:
            return False  # sharing would leave the work on one core
        self.members.append(member)
        self.loops = loops
        return True


def _common(first: _Member, second: _Member, loops: int) -> int:
    """How many of `loops` leading loops two ops can share."""
    for count in range(loops):
        of_first, of_second = first.nest.loops[count], second.nest.loops[count]
        if first.generic.extents[of_first.dimension] != second.generic.extents[of_second.dimension]:
            loops = count
            break
    while loops and not _keep_apart(first, second, loops):
        loops -= 1
    return loops


def _keep_apart(first: _Member, second: _Member, loops: int) -> bool:
    """Whether an iteration of the shared loops touches no memory that another one writes."""
    for a, root_a in first.touched:
        for b, root_b in second.touched:
            if not (a.writes or b.writes) or root_a != root_b:
                continue
            if a.buffer != b.buffer:
                return False  # two views of one buffer
            pairs = zip(first.outer(loops), second.outer(loops), strict=True)
            if not all(_indexed_alike(a, x.dimension, b, y.dimension) for x, y in pairs):
                return False
    return True


def _indexed_alike(a: Access, of_a: int, b: Access, of_b: int) -> bool:
    """Whether some dimension of the buffer is indexed by just these loop dimensions in both."""
    return bool(a.places_of(of_a) & b.places_of(of_b))
