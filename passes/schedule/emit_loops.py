"""A schedule as loops: generics on buffers -> scf, with their bodies inside.

Reductions that are innermost accumulate in values that loops carry, so that they stay in registers; others
accumulate in their output. A fill that does nothing but initialise a reduction's output becomes the first value.
What an iteration stores is not loaded again by another statement in it, and a temporary that nothing loads any more
goes. Of a temporary that only a group uses, one iteration of the loops that all of it share keeps its part alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import add, for_range, for_tasks, index, load, store
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.linalg.analysis.affine_indices import indices
from lamina.passes.linalg.analysis.structure import (
    Generic,
    accesses,
    is_buffer,
    is_temporary,
    root_buffer,
)
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.schedule.schedule import Loop, Schedule, carried_from
from lamina.passes.schedule.transposes import emit_transposed_block

_LOCAL_BYTES = REFERENCE.l1_bytes * 2 // 3  # the largest part of a temporary that one iteration keeps for itself

Fills = Sequence[ir.Operation | None]
"""For each output of a generic the op that only gives it its first value."""


def emit_loops(schedule: Schedule, generics: Sequence[Generic], fills: Sequence[Fills]) -> None:
    """Emit the generics of a schedule's statements, each group in front of the last of it, and erase them, with the
    fills that are done on the way and temporaries that nothing reads any more."""
    absorbed = {fill for of_one in fills for fill in of_one if fill is not None}
    written = dict.fromkeys(output for generic in generics for output in generic.outputs)
    for group in schedule.groups():
        emitted = _Group(schedule, group, generics, fills, absorbed)
        emitted.emit()
        written |= dict.fromkeys(emitted.local)
    for op in (*(generic.op for generic in generics), *absorbed):
        op.erase()
    for buffer in written:
        _erase_if_unread(buffer)


def _erase_if_unread(buffer: ir.Value) -> None:
    """Erase a temporary that is written at most, with its stores."""
    if not is_temporary(buffer):
        return
    users = [use.owner.operation for use in buffer.uses]
    if all(user.name == "memref.store" and user.operands[0] != buffer for user in users):
        for user in users:
            user.erase()
        buffer.owner.operation.erase()


_Place = tuple[dict[int, ir.Value], dict[int, ir.Value], dict[int, int]]


class _Emitted:
    """A statement on its way: where it is in its iteration space."""

    def __init__(self, schedule: Schedule, number: int, generic: Generic, fills: Fills) -> None:
        loops = schedule.loops[number]
        self.number, self.generic, self.loops = number, generic, loops
        self.tiled = number in schedule.tiled
        self.position: dict[int, ir.Value] = {}  # dimension -> its variable
        self.block_end: dict[int, ir.Value] = {}  # dimension -> end of the block being walked
        self.whole_block: dict[int, int] = {}  # dimension -> its size, where all blocks have it
        reduces = [generic.reductions[loop.dimension] for loop in loops]
        self.first_reduction = reduces.index(True) if True in reduces else len(loops)
        self.fills = fills if self.first_reduction < len(loops) else ()
        carried = carried_from(schedule.nest.statements[number], loops)
        self.carried_from = len(loops) if carried is None else carried
        self.carried: list[ir.Value] = []

    @property
    def in_registers(self) -> bool:
        """Whether its sums are in values that loops carry from the first reduction on."""
        return self.carried_from == self.first_reduction < len(self.loops)

    def places(self) -> list[list[ir.Value]]:
        """The indices of each output at the current position."""
        return [indices(map_, self.position) for map_ in self.generic.output_maps]

    def place(self) -> _Place:
        """Where it is, to be gone back to."""
        return dict(self.position), dict(self.block_end), dict(self.whole_block)

    def go_to(self, place: _Place) -> None:
        """Be where it was."""
        position, block_end, whole_block = place
        self.position, self.block_end, self.whole_block = dict(position), dict(block_end), dict(whole_block)

    def enter(self, loop: Loop, induction: ir.Value) -> None:
        """Note the variable of a loop, and the block that it begins."""
        self.position[loop.dimension] = induction
        if loop.step > 1:
            extent = self.generic.extents[loop.dimension]
            end = add(induction, index(loop.step))
            if extent % loop.step == 0:
                self.whole_block[loop.dimension] = loop.step
            else:
                end = arith.MinSIOp(end, index(extent)).result
            self.block_end[loop.dimension] = end


class _Group:
    """Emits statements that share loops, or one alone."""

    def __init__(
        self,
        schedule: Schedule,
        group: range,
        generics: Sequence[Generic],
        fills: Sequence[Fills],
        absorbed: set[ir.Operation],
    ) -> None:
        self._schedule, self._group, self._absorbed = schedule, group, absorbed
        self._generics = [generics[number] for number in group]
        self._fills = [fills[number] for number in group]
        self._several = len(group) > 1
        self._known: dict[tuple[ir.Value, ...], ir.Value] = {}  # what is at places of buffers now
        self.local: list[ir.Value] = []
        """Temporaries that are new."""

    def emit(self) -> None:
        """The loops that all share, as tasks where the schedule says so, and what is inside."""
        schedule, first = self._schedule, self._generics[0]
        depth = schedule.common(self._group)
        tasks, grain = schedule.tasks[self._group.start]
        loops = schedule.loops[self._group.start]
        # Around a sum that one of several carries, loops are emitted one by one.
        outer = self._parallel_depth(depth) if self._several else tasks
        last = self._generics[-1].op

        def inside(inductions: list[ir.Value]) -> None:
            members = self._members(outer)
            for member in members:
                with member.generic.op.location:
                    for loop, induction in zip(member.loops, inductions, strict=False):
                        member.enter(loop, induction)
            self._level(members, len(inductions))

        with ir.InsertionPoint(last), last.location:
            extents = [first.extents[loop.dimension] for loop in loops[:outer]]
            steps = [loop.step for loop in loops[:outer]]
            for_tasks(extents, tasks, grain, inside, steps=steps)

    def _parallel_depth(self, depth: int) -> int:
        """How many of the shared loops are parallel in all."""
        for level in range(depth):
            for number, generic in zip(self._group, self._generics, strict=True):
                if generic.reductions[self._schedule.loops[number][level].dimension]:
                    return level
        return depth

    def _members(self, depth: int) -> list[_Emitted]:
        generics = self._generics
        if depth and self._several:
            generics = self._with_local_buffers(depth)
        schedule = self._schedule
        return [
            _Emitted(schedule, number, generic, fills)
            for number, generic, fills in zip(self._group, generics, self._fills, strict=True)
        ]

    def _level(self, members: Sequence[_Emitted], level: int) -> None:
        """What is inside the loops above a level, of statements that share these."""
        number = 0
        while number < len(members):
            run = [members[number]]
            while number + len(run) < len(members) and self._schedule.shared[run[-1].number] > level:
                run.append(members[number + len(run)])
            number += len(run)
            if level == len(run[0].loops):
                self._leaf(run[0])
            else:
                self._run(run, level)

    def _run(self, run: Sequence[_Emitted], level: int) -> None:
        """One loop with all statements of a run in it; around it what those need that begin to carry sums there."""
        if len(run) == 1 and run[0].tiled and level == len(run[0].loops) - 2:
            self._tile(run[0], level)
            return
        starting = [member for member in run if level in (member.first_reduction, member.carried_from)]
        stored: list[tuple[_Emitted, list[list[ir.Value]]]] = []
        for member in starting:
            with member.generic.op.location:
                if level == member.first_reduction and not member.in_registers:
                    self._initialise(member, level)
                if level == member.carried_from:
                    places = member.places()
                    member.carried = self._first_values(member, places)
                    stored.append((member, places))
        carrying = [member for member in run if member.carried]
        values = [value for member in carrying for value in member.carried]

        def inside(carried: Sequence[ir.Value]) -> list[ir.Value]:
            left = list(carried)
            for member in carrying:
                count = len(member.carried)
                member.carried, left = left[:count], left[count:]
            self._level(run, level + 1)
            return [value for member in carrying for value in member.carried]

        with run[-1].generic.op.location:
            results = self._loop(run, level, values, inside)
        for member in carrying:
            count = len(member.carried)
            member.carried, results = results[:count], results[count:]
        for member, places in stored:
            with member.generic.op.location:
                for value, output, place in zip(member.carried, member.generic.outputs, places, strict=True):
                    self._store(value, output, place)
            member.carried = []

    def _first_values(self, member: _Emitted, places: Sequence[Sequence[ir.Value]]) -> list[ir.Value]:
        fills = member.fills if member.in_registers and member.fills else [None] * len(places)
        return [
            self._load(output, place) if fill is None else fill.operands[0]
            for output, place, fill in zip(member.generic.outputs, places, fills, strict=True)
        ]

    def _tile(self, member: _Emitted, level: int) -> None:
        outer, inner = (loop.dimension for loop in member.loops[level:])
        with member.generic.op.location:
            emit_transposed_block(
                member.generic,
                member.position,
                member.block_end,
                (outer, inner),
                lambda map_: indices(map_, member.position),
            )

    def _leaf(self, member: _Emitted) -> None:
        """The body of a statement at one position."""
        generic = member.generic
        with generic.op.location:
            if member.carried:
                member.carried = self._body(member, member.carried)
                return
            places = member.places()
            arguments = list(generic.body.arguments)[len(generic.inputs) :]
            accumulators = [
                self._load(output, place) if len(list(argument.uses)) else None
                for output, place, argument in zip(generic.outputs, places, arguments, strict=True)
            ]
            for value, output, place in zip(self._body(member, accumulators), generic.outputs, places, strict=True):
                self._store(value, output, place)

    def _initialise(self, member: _Emitted, level: int) -> None:
        """Write the first values over all parallel dimensions that are still open."""
        generic = member.generic
        filled = [
            (output, map_, fill)
            for output, map_, fill in zip(generic.outputs, generic.output_maps, member.fills, strict=True)
            if fill
        ]
        if not filled:
            return
        open_ = [at for at in range(level, len(member.loops)) if not generic.reductions[member.loops[at].dimension]]

        def walk(depth: int) -> list[ir.Value]:
            if depth < len(open_):
                return self._loop([member], open_[depth], [], lambda _: walk(depth + 1))
            for output, map_, fill in filled:
                self._store(fill.operands[0], output, indices(map_, member.position))
            return []

        place = member.place()
        walk(0)
        member.go_to(place)

    def _loop(
        self,
        run: Sequence[_Emitted],
        level: int,
        carried: Sequence[ir.Value],
        body: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """The loop at a level of all members of a run, which run alike."""
        first = run[0]
        loop = first.loops[level]
        before = [member.place() for member in run]

        def restore() -> None:
            for member, place in zip(run, before, strict=True):
                member.go_to(place)

        begin = first.position.get(loop.dimension) if loop.dimension in first.block_end else None
        size = first.whole_block.get(loop.dimension) if begin is not None else None

        def iteration(at: ir.Value, values: Sequence[ir.Value]) -> Sequence[ir.Value]:
            self._known.clear()
            for member in run:
                own = member.loops[level]
                outer = member.position.get(own.dimension) if size is not None else None
                member.enter(own, at if outer is None else add(outer, at))
            yielded = body(values)
            self._known.clear()
            return yielded

        if loop.unrolled:
            results = list(carried)
            count = size if size is not None else first.generic.extents[loop.dimension]
            for number in range(count):
                restore()
                results = list(iteration(index(number), results))
        else:
            if size is not None:  # counted from 0, so that LLVM knows how often
                low, high = index(0), index(size)
            elif begin is not None:
                low, high = begin, first.block_end[loop.dimension]
            else:
                low, high = index(0), index(first.generic.extents[loop.dimension])
            results = for_range(low, high, carried, iteration, loop.step)
        restore()
        return results

    def _body(self, member: _Emitted, accumulators: Sequence[ir.Value | None]) -> list[ir.Value]:
        """The body here, on the inputs at the current position; the values it yields."""
        generic, block = member.generic, member.generic.body
        known: dict[ir.Value, ir.Value] = {}
        for argument, operand, map_ in zip(block.arguments, generic.inputs, generic.input_maps, strict=False):
            if len(list(argument.uses)):
                known[argument] = (
                    self._load(operand, indices(map_, member.position)) if is_buffer(operand) else operand
                )
        outputs = list(block.arguments)[len(generic.inputs) :]
        for argument, value in zip(outputs, accumulators, strict=True):
            if value is not None:
                known[argument] = value
        *computing, end = (view.operation for view in block.operations)
        for op in computing:
            if op.name == "linalg.index":
                known[op.results[0]] = member.position[ir.IntegerAttr(op.attributes["dim"]).value]
                continue
            copy = copied(op, known)
            if len(copy.regions):
                _replace_indices(copy, member.position)
        return [known.get(value, value) for value in end.operands]

    def _load(self, buffer: ir.Value, place: Sequence[ir.Value]) -> ir.Value:
        key = (buffer, *place)
        if not self._several:
            return load(buffer, place)
        if key not in self._known:
            self._known[key] = load(buffer, place)
        return self._known[key]

    def _store(self, value: ir.Value, buffer: ir.Value, place: Sequence[ir.Value]) -> None:
        store(value, buffer, place)
        if self._several:
            root = root_buffer(buffer)
            self._known = {key: known for key, known in self._known.items() if root_buffer(key[0]) != root}
            self._known[buffer, *place] = value

    def _with_local_buffers(self, depth: int) -> list[Generic]:
        """The generics with each buffer that only they use replaced by one iteration's part of it."""
        members = {generic.op for generic in self._generics} | self._absorbed
        places: dict[ir.Value, set[frozenset[int]]] = {}
        for number, generic in zip(self._group, self._generics, strict=True):
            outer = self._schedule.loops[number][:depth]
            for access in accesses(generic):
                at = [access.places_of(loop.dimension) for loop in outer if loop.step == 1]
                whole = len(at) == depth and all(len(one) == 1 for one in at)
                alike = frozenset().union(*at) if whole else frozenset((-1,))
                places.setdefault(access.buffer, set()).add(alike)
        local: dict[ir.Value, tuple[ir.Value, frozenset[int]]] = {}
        for buffer, found in places.items():
            (dropped, *others) = found
            if others or -1 in dropped or len(dropped) != depth or not _is_private(buffer, members):
                continue
            type_ = ir.MemRefType(buffer.type)
            shape = [size for place, size in enumerate(type_.shape) if place not in dropped]
            if math.prod(shape) * element_bytes(type_.element_type) <= _LOCAL_BYTES:
                local[buffer] = (_allocate(shape, type_.element_type), dropped)
        self.local += [value for value, _ in local.values()]
        return [_localised(generic, local) for generic in self._generics]


def _localised(
    generic: Generic, local: Mapping[ir.Value, tuple[ir.Value, frozenset[int]]]
) -> Generic:
    """The generic on parts of buffers, whose other indices are gone."""

    def part(value: ir.Value, map_: ir.AffineMap) -> tuple[ir.Value, ir.AffineMap]:
        if value not in local:
            return value, map_
        value, dropped = local[value]
        kept = [e for place, e in enumerate(map_.results) if place not in dropped]
        return value, ir.AffineMap.get(map_.n_dims, 0, kept)

    inputs = [part(*one) for one in zip(generic.inputs, generic.input_maps, strict=True)]
    outputs = [part(*one) for one in zip(generic.outputs, generic.output_maps, strict=True)]
    return generic._replace(
        inputs=tuple(value for value, _ in inputs),
        input_maps=tuple(map_ for _, map_ in inputs),
        outputs=tuple(value for value, _ in outputs),
        output_maps=tuple(map_ for _, map_ in outputs),
    )


def _is_private(buffer: ir.Value, members: set[ir.Operation]) -> bool:
    """Whether a buffer is a temporary that only these ops use."""
    return is_temporary(buffer) and all(use.owner.operation in members for use in buffer.uses)


def _allocate(shape: Sequence[int], element: ir.Type) -> ir.Value:
    return ir.Operation.create(
        "memref.alloc",
        results=[ir.MemRefType.get(list(shape), element)],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
    ).result


def _replace_indices(op: ir.Operation, position: Mapping[int, ir.Value]) -> None:
    """Positions instead of linalg.index in an op's regions."""
    for region in op.regions:
        for block in region.blocks:
            for inner in [view.operation for view in block.operations]:
                if inner.name == "linalg.index":
                    dimension = ir.IntegerAttr(inner.attributes["dim"]).value
                    inner.results[0].replace_all_uses_with(position[dimension])
                    inner.erase()
                else:
                    _replace_indices(inner, position)
