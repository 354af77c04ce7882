"""Which values share storage.

Values are gathered into groups, one buffer each. Two groups may become one when their intervals do
not meet, or meet only at handovers: the point where a kernel overwrites an operand, a loop takes
its initial or its next values, a branch or the program returns. Tried first for donated arguments,
then in the order of what a failure costs: in-place kernels and loop carries (a copy each time
around), results, and last large temporaries that a kernel could overwrite (memory only).
Arguments that are not donated and constants are never shared: nobody may write them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import field
from typing import Literal

from lamina.passes.planning.liveness import Handover, Interval, Liveness, intersection, merge
from lamina.passes.planning.program import Call, Program
from lamina.records import Record

# Overwriting an operand means one more variant of a kernel that is called elsewhere, too: below this
# many bytes the memory it saves is not worth it.
_WORTH_ALIASING = 1 << 18  # code
_WORTH_ALIASING_ONCE = 1 << 12  # code

Place = tuple[Literal["argument", "result", "constant"], int]


class Group(Record, frozen=False):
    """Values in one buffer. `place` says where it is when not in the arena."""

    bytes: int
    intervals: list[Interval]
    place: Place | None = None
    read_only: bool = False


class Sharing(Record, frozen=False):
    """The groups; `find` gives the group of a value. `alias_of` maps results to the donated
    arguments whose buffers they take over."""

    groups: dict[int, Group]
    root: dict[int, int]
    last_name: int
    parent: dict[int, int] = field(default_factory=dict)
    alias_of: dict[int, int] = field(default_factory=dict)

    def find(self, value: int) -> int:
        """The group (named by one of its values) that holds `value`."""
        node = self.root.get(value, value)
        parent = self.parent
        if node not in parent:
            return node
        path = []
        while node in parent:
            path.append(node)
            node = parent[node]
        for passed in path:
            parent[passed] = node
        return node

    def add_group(self, size: int, interval: Interval) -> int:
        """A new group of its own, for storage that belongs to no value."""
        self.last_name -= 1
        self.groups[self.last_name] = Group(size, [interval])
        return self.last_name


def result_group(position: int) -> int:
    """The name under which the caller's buffer for a result enters the groups."""
    return -1 - position


def coalesce(program: Program, live: Liveness, rotate_from: int | None = None) -> Sharing:
    """Decide which values of `program` share storage. Buffers of `rotate_from` bytes or more change
    places in loops for nothing."""
    return _Coalescer(program, live, rotate_from).run()


class _Coalescer:
    def __init__(self, program: Program, live: Liveness, rotate_from: int | None) -> None:
        self.program = program
        self.rotate_from = rotate_from
        self.live = live
        self.handovers: dict[int, list[tuple[int, int]]] = defaultdict(list)
        groups = {
            root: Group(program.bytes[root], intervals, read_only=root in live.read_only)
            for root, intervals in live.intervals.items()
        }
        for position, value in enumerate(program.body.arguments):
            groups[value].place = ("argument", position)
        for value in live.read_only:
            if groups[value].place is None:
                groups[value].place = ("constant", value)
        for position, value in enumerate(program.body.yields):
            groups[result_group(position)] = Group(
                program.bytes[value], [(live.end, live.end + 1)], ("result", position)
            )
        self.sharing = Sharing(groups, live.root, -len(program.body.yields))

    def run(self) -> Sharing:
        live = self.live
        must: list[Handover] = []
        may: list[Handover] = []
        worth: list[Handover] = []
        calls_of = Counter(call.kernel for call, _ in live.calls)
        for call, point in live.calls:
            if call.inout:
                must += _eligible(call, call.inout.items(), point, live)
            if not call.may_alias:
                continue
            pairs = ((o, r) for o, results in call.may_alias.items() for r in results)
            least = _WORTH_ALIASING if calls_of[call.kernel] > 1 else _WORTH_ALIASING_ONCE
            eligible = _eligible(call, pairs, point, live)
            may += eligible
            worth += [h for h in eligible if self.program.bytes[h.new] >= least]
        enters = [h for _, enter, _ in live.loops for h in enter]
        agains = [h for _, _, again in live.loops for h in again]
        leaves = [h for _, ends in live.branches for h in ends]
        for handover in must + may + enters + agains + leaves:
            self.handovers[handover.point].append((handover.old, handover.new))
        if self.rotate_from is not None:
            for _, _, again in live.loops:
                self._let_change_places(again, self.rotate_from)

        self._donate()
        for handover in must + agains + enters + leaves:
            self._try(handover.old, handover.new, handover.point)
        for position, value in enumerate(self.program.body.yields):
            if position not in self.sharing.alias_of:
                self._try(value, result_group(position), live.end)
        for handover in worth:
            self._try(handover.old, handover.new, handover.point)
        return self.sharing

    def _let_change_places(self, again: list[Handover], least: int) -> None:
        """Let what a step makes of one carried value be in another's buffer, where that has been read:
        all take over their next values at the same time."""
        large = [handover for handover in again if self.program.bytes[handover.new] >= least]
        for made in large:
            for other in large:
                if other is not made and self.program.bytes[made.old] == self.program.bytes[other.new]:
                    self.handovers[made.point].append((made.old, other.new))

    def _donate(self) -> None:
        """Give donated arguments' buffers to results.

        A result that must take a buffer over and can't be computed there is copied there at the
        end. What no result takes stays untouched, since the caller is told of no other.
        """
        program, sharing = self.program, self.sharing
        kept = set(program.promised.values())
        for position, results in program.donated.items():
            argument, promised = program.body.arguments[position], program.promised.get(position)
            for result in results if promised is None else (promised,):
                value = program.body.yields[result]
                free = result not in sharing.alias_of and (result not in kept or promised == result)
                if free and self._try(argument, value, None):
                    sharing.alias_of[result] = position
                    break
            else:
                sharing.groups[sharing.find(argument)].read_only = True
                if promised is not None and promised not in sharing.alias_of:
                    sharing.alias_of[promised] = position

    def _try(self, a: int, b: int, point: int | None) -> bool:
        """Make one group of the groups of `a` and `b` if that is sound; `point` is a handover."""
        sharing = self.sharing
        a, b = sharing.find(a), sharing.find(b)
        if a == b:
            return True
        one, other = sharing.groups[a], sharing.groups[b]
        if one.read_only or other.read_only or one.bytes != other.bytes:
            return False
        if one.place is not None and other.place is not None:
            return False
        for low, high in intersection(one.intervals, other.intervals):
            if low != high or (low != point and not self._handed_over(low, a, b)):
                return False
        sharing.parent[b] = a
        one.intervals = merge(one.intervals + other.intervals)
        one.place = one.place or other.place
        del sharing.groups[b]
        return True

    def _handed_over(self, point: int, a: int, b: int) -> bool:
        find = self.sharing.find
        return any({find(old), find(new)} == {a, b} for old, new in self.handovers.get(point, ()))


def _eligible(
    call: Call, pairs: Iterable[tuple[int, int]], point: int, live: Liveness
) -> list[Handover]:
    """(operand, result) where the operand could be overwritten: it is not given twice, nor to
    another call at the same time."""
    roots = [live.root[value] for value in call.operands]
    return [
        Handover(roots[operand], live.root[call.results[result]], point)
        for operand, result in pairs
        if roots.count(roots[operand]) == 1 and (roots[operand], point) not in live.contested
    ]
