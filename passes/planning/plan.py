"""From a program to a plan: the same program on storage slots, with every copy spelled out."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, NamedTuple

from lamina.passes.planning.advance import advance_last_readers
from lamina.passes.planning.coalesce import Sharing, coalesce, result_group
from lamina.passes.planning.concurrent_kernels import form_teams
from lamina.passes.planning.lend import lend_results
from lamina.passes.planning.liveness import Liveness, analyse
from lamina.passes.planning.offsets import aligned, assign_offsets
from lamina.passes.planning.order import sink_updates
from lamina.passes.planning.overlap import begin_early
from lamina.passes.planning.program import (
    Block,
    Branch,
    Call,
    Constant,
    Op,
    Program,
    View,
    Wait,
    While,
    teams_of,
    values_read_in,
)
from lamina.passes.planning.rotate import Move, Rotation, Rotator
from lamina.records import Record


class Slot(NamedTuple):
    """A place in memory: an argument, a result or a constant by its number, or an arena offset. In a
    result that is lent, `offset` says where."""

    space: Literal["argument", "result", "constant", "lent", "arena"]
    number: int
    offset: int = 0


class CallStep(Record, frozen=False):
    """Call the kernel; `in_place` maps the operands it overwrites to the results they become."""

    call: Call
    in_place: dict[int, int]


class CopyStep(Record, frozen=False):
    """Copy the bytes of `value` from one buffer to another; from the program's data where `source`
    is None. Buffers are named as values are: `Plan.slot` places both."""

    value: int
    source: int | None
    target: int


class WaitStep(Record, frozen=False):
    """Wait for the call that was begun last."""


class WhileStep(Record, frozen=False):
    """Run `cond`, leave if its predicate is false, run `body`, and again. With a `rotation`, groups of
    buffers change places where `body` ends, and `back` holds for each of its cycles, after one step and
    after two and so on up to a round, the copies that bring back what is read after the loop."""

    op: While
    cond: list[Step]
    body: list[Step]
    rotation: Rotation | None = None
    back: list[list[list[Step]]] = field(default_factory=list)


class BranchStep(Record, frozen=False):
    """Run one of `blocks`."""

    op: Branch
    blocks: list[list[Step]]


Step = CallStep | CopyStep | WaitStep | WhileStep | BranchStep


class Plan(Record, frozen=False):
    """`alias_of` maps results to the donated arguments whose buffers they are; `unused_donations`
    lists donated arguments that no result took over."""

    steps: list[Step]
    arena_bytes: int
    alias_of: dict[int, int]
    unused_donations: list[int]
    sharing: Sharing
    offsets: dict[int, int]
    own_bytes: int
    """How much of the arena, from its beginning, is small buffers with a place of their own."""
    lent: dict[int, tuple[int, int]]
    """Groups that live in the buffers of results: the result, and the offset."""

    def slot(self, value: int) -> Slot:
        """Where a value (or a temporary named by a CopyStep) is."""
        name = self.sharing.find(value)
        if name in self.lent:
            return Slot("lent", *self.lent[name])
        place = self.sharing.groups[name].place
        return Slot("arena", self.offsets[name]) if place is None else Slot(*place)

    def lifetime(self, value: int) -> tuple[int, int]:
        """The first and the last point at which the buffer of `value` is in use."""
        intervals = self.sharing.groups[self.sharing.find(value)].intervals
        return intervals[0][0], intervals[-1][1]


def make_plan(
    program: Program,
    own_place: int = 0,
    lends_results: bool = False,
    rotate_from: int | None = None,
    overlaps: bool = False,
) -> Plan:
    """Order, storage and copies for `program`, whose blocks may be reordered on the way.

    Buffers of up to `own_place` bytes each get a place of their own, before all others. Where the
    program `lends_results`, temporaries may live in results' buffers. Buffers of `rotate_from` bytes or
    more change places in loops, instead of being copied; None: none do. With `overlaps`, devices compute
    while others send them what they need later.
    """
    advance_last_readers(program)
    sink_updates(program)
    if overlaps:
        begin_early(program)
    form_teams(program)
    live = analyse(program)
    sharing = coalesce(program, live, rotate_from)
    # Steps come before offsets: a cycle of copies takes a temporary, which wants its place too.
    steps = _StepWriter(program, live, sharing, rotate_from).write()
    own, own_bytes = _own_places(sharing, own_place)
    lent = lend_results(sharing) if lends_results else {}
    offsets, shared_bytes = assign_offsets(
        {
            name: (group.bytes, group.intervals[0][0], group.intervals[-1][1])
            for name, group in sharing.groups.items()
            if group.place is None and name not in own and name not in lent
        }
    )
    offsets = own | {name: own_bytes + offset for name, offset in offsets.items()}
    unused = sorted(set(program.donated) - set(sharing.alias_of.values()))
    return Plan(
        steps, own_bytes + shared_bytes, sharing.alias_of, unused, sharing, offsets, own_bytes, lent
    )


_OWN_TOTAL = 1 << 17  # bytes of small buffers: they may be put on a stack


def _own_places(sharing: Sharing, limit: int) -> tuple[dict[int, int], int]:
    """Offsets for the buffers of up to `limit` bytes, smallest first, and where they end."""
    small = [
        (group.bytes, -name)
        for name, group in sharing.groups.items()
        if group.place is None and 0 < group.bytes <= limit
    ]
    offsets: dict[int, int] = {}
    end = 0
    for size, negative in sorted(small):
        if end + aligned(size) > _OWN_TOTAL:
            break
        offsets[-negative] = end
        end += aligned(size)
    return offsets, end


class _StepWriter:
    def __init__(
        self, program: Program, live: Liveness, sharing: Sharing, rotate_from: int | None
    ) -> None:
        self.program = program
        self.sharing = sharing
        self.spans = {id(op): (enter[0].point, again[0].point) for op, enter, again in live.loops if again}
        self.end = live.end
        self.rotator = None if rotate_from is None else Rotator(live, sharing, rotate_from)
        self.read: set[int] | None = None

    def write(self) -> list[Step]:
        body, sharing = self.program.body, self.sharing
        targets = [
            body.arguments[sharing.alias_of[position]]
            if position in sharing.alias_of
            else result_group(position)
            for position in range(len(body.yields))
        ]
        return self._block(body) + self._copies(body.yields, targets, self.end)

    def _block(self, block: Block) -> list[Step]:
        steps: list[Step] = []
        for team in teams_of(block.ops):
            written = [step for op in team for step in self._op(op)]
            if len(team) > 1:  # copies for one call must not come between it and another
                written.sort(key=lambda step: isinstance(step, CallStep))
            steps += written
        return steps

    def _op(self, op: Op) -> list[Step]:
        match op:
            case View():
                return []
            case Wait():
                return [WaitStep()]
            case Constant():
                return [CopyStep(op.result, None, op.result)] if op.fill else []
            case Call():
                return self._call(op)
            case Branch():
                # Results are new storage: no copy here overwrites what another one reads.
                blocks = [
                    self._block(block) + self._copies(block.yields, op.results, None)
                    for block in op.blocks
                ]
                return [BranchStep(op, blocks)]
            case While():
                enter = self._copies(op.operands, op.cond.arguments, None)
                return [*enter, self._while(op)]

    def _while(self, op: While) -> WhileStep:
        cond, body = self._block(op.cond), self._block(op.body)
        moves = self._moves(op.body.yields, op.cond.arguments)
        if not moves:
            return WhileStep(op, cond, body)
        span = self.spans[id(op)]
        rotation = self.rotator.rotation(op, moves, span) if self.rotator else None
        if rotation is None:
            return WhileStep(op, cond, body + self._in_order(moves, span[1]))
        body += self._in_order(rotation.copied, span[1])
        if self.read is None:
            self.read = values_read_in(self.program.body)
        needed = {
            self.sharing.find(carry): carry
            for carry, result in zip(op.cond.arguments, op.results, strict=True)
            if result in self.read
        }
        back = [
            [
                self._in_order(rotation.home(cycle, steps, needed), span[1])
                for steps in range(1, len(cycle))
            ]
            for cycle in rotation.cycles
        ]
        return WhileStep(op, cond, body, rotation, back)

    def _call(self, call: Call) -> list[Step]:
        find = self.sharing.find
        steps: list[Step] = []
        in_place: dict[int, int] = {}
        for operand, results in call.may_alias.items():
            for result in results:
                if find(call.operands[operand]) == find(call.results[result]):
                    in_place[operand] = result
        for operand, result in call.inout.items():
            old, new = call.operands[operand], call.results[result]
            if find(old) != find(new):  # the old value is still needed, or is not ours to write
                steps.append(CopyStep(old, old, new))
            in_place[operand] = result
        return [*steps, CallStep(call, in_place)]

    def _copies(self, sources: list[int], targets: list[int], point: int | None) -> list[Step]:
        return self._in_order(self._moves(sources, targets), point)

    def _moves(self, sources: list[int], targets: list[int]) -> list[Move]:
        find = self.sharing.find
        return [
            Move(value, find(value), find(target))
            for value, target in zip(sources, targets, strict=True)
            if find(value) != find(target)
        ]

    def _in_order(self, moves: list[Move], point: int | None) -> list[Step]:
        """Copies that happen at once, in an order in which none reads what another has written.

        Where they form a cycle, a temporary that lives at `point` breaks it.
        """
        pending = {move.target: (move.value, move.source) for move in moves}
        readers: dict[int, int] = {}
        for _, source in pending.values():
            readers[source] = readers.get(source, 0) + 1
        ready = [target for target in pending if target not in readers]
        steps: list[Step] = []
        while pending:
            if ready:
                target = ready.pop()
                value, source = pending.pop(target)
                steps.append(CopyStep(value, source, target))
            else:
                assert point is not None, "a cycle of copies where there can be none"
                target, (value, source) = next(iter(pending.items()))
                saved = self.sharing.add_group(self.program.bytes[value], (point, point))
                steps.append(CopyStep(value, source, saved))
                pending[target] = (value, saved)
            if source in readers:
                readers[source] -= 1
                if not readers[source]:
                    del readers[source]
                    if source in pending:
                        ready.append(source)
        return steps
