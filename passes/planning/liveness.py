"""When each value is needed: intervals on a numbering of the program.

Operations are numbered in the order in which they are written, calls of one team alike; a `while`
takes a number where it starts, one between its condition and its body and one where its body ends.
A value lives in the closed interval from its definition to its last use. What a loop reads from
outside lives until the loop ends, since the next time around reads it again. The carry of a loop is
one value: block arguments and result, whose intervals leave a hole from the last use of the old
value in the body to the body's end, where the new one must be in place.

A result that takes over the storage of an operand meets it at exactly one point, the *handover*:
elsewhere two values with intersecting intervals never share storage.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import field
from typing import NamedTuple

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
)
from lamina.records import Record

Interval = tuple[int, int]


class Handover(NamedTuple):
    """At `point` the storage of `old` may become the storage of `new`."""

    old: int
    new: int
    point: int


class Liveness(Record, frozen=False):
    """`root` maps a value to the value that owns its content (views and loop carries are one value
    with what they view or carry); the other tables are keyed by root."""

    root: dict[int, int] = field(default_factory=dict)
    intervals: dict[int, list[Interval]] = field(default_factory=dict)
    calls: list[tuple[Call, int]] = field(default_factory=list)
    loops: list[tuple[While, list[Handover], list[Handover]]] = field(default_factory=list)
    branches: list[tuple[Branch, list[Handover]]] = field(default_factory=list)
    read_only: set[int] = field(default_factory=set)
    contested: set[tuple[int, int]] = field(default_factory=set)
    """Roots and points at which several calls read them at the same time."""
    end: int = 0


def analyse(program: Program) -> Liveness:
    """The liveness of every value of `program`."""
    return _Analysis(program).run()


class _Scope(Record, frozen=False, eq=False):
    """A block being read: what encloses it, and where the loop it belongs to ends, if any."""

    parent: _Scope | None
    loop_end: int | None


class _Analysis:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.live = Liveness()
        self.start: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.scope: dict[int, _Scope] = {}
        self.loop_ends: dict[int, int] = {}
        self.carries: dict[int, list[Interval]] = {}

    def run(self) -> Liveness:
        live, body = self.live, self.program.body
        top = _Scope(None, None)
        for value in body.arguments:
            self._define(value, 0, top)
        live.read_only.update(
            value
            for position, value in enumerate(body.arguments)
            if position not in self.program.donated
        )
        self._number(body, 1)
        live.end = self._read(body, top, 1)
        for value in body.yields:
            self._use(value, live.end, top)
        for root, start in self.start.items():
            live.intervals[root] = merge(
                [(start, max(self.last[root], start + 1))] + self.carries.get(root, [])
            )
        return live

    # Numbering first: a use inside a loop must know where the loop ends.
    def _number(self, block: Block, point: int) -> int:
        for op, *_ in teams_of(block.ops):
            point += 1
            if isinstance(op, While):
                point = self._number(op.body, self._number(op.cond, point))
                self.loop_ends[id(op)] = point
            elif isinstance(op, Branch):
                for inner in op.blocks:
                    point = self._number(inner, point)
                point += 1
        return point + 1

    def _define(self, value: int, point: int, scope: _Scope, root: int | None = None) -> None:
        root = value if root is None else root
        self.live.root[value] = root
        self.scope[value] = scope
        if root == value:
            self.start[value] = self.last[value] = point

    def _use(self, value: int, point: int, scope: _Scope) -> None:
        defined = self.scope[value]
        while scope is not defined:
            if scope.loop_end is not None:
                point = scope.loop_end
            assert scope.parent is not None, "a value is used outside its block"
            scope = scope.parent
        root = self.live.root[value]
        self.last[root] = max(self.last[root], point)

    def _read(self, block: Block, scope: _Scope, point: int) -> int:
        for team in teams_of(block.ops):
            point += 1
            if len(team) > 1:
                self._note_contested(team, point)
                for op in team:
                    self._read_op(op, scope, point)
            else:
                point = self._read_op(team[0], scope, point)
        return point + 1

    def _note_contested(self, team: list[Op], point: int) -> None:
        readers = Counter(
            root for op in team for root in {self.live.root[value] for value in op.operands}
        )
        self.live.contested.update((root, point) for root, count in readers.items() if count > 1)

    def _read_op(self, op: Op, scope: _Scope, point: int) -> int:
        match op:
            case Call():
                for value in op.operands:
                    self._use(value, point, scope)
                for value in op.results:
                    self._define(value, point, scope)
                self.live.calls.append((op, point))
            case Wait():
                for value in op.operands:
                    self._use(value, point, scope)
            case View():
                self._use(op.operand, point, scope)
                self._define(op.result, point, scope, self.live.root[op.operand])
            case Constant():
                self._define(op.result, point, scope)
                if not op.fill:
                    self.live.read_only.add(op.result)
            case Branch():
                point = self._read_branch(op, scope, point)
            case While():
                point = self._read_while(op, scope, point)
        return point

    def _read_branch(self, op: Branch, scope: _Scope, point: int) -> int:
        self._use(op.selector, point, scope)
        handovers: list[Handover] = []
        ends: list[Interval] = []
        for block in op.blocks:
            inner = _Scope(scope, None)
            point = self._read(block, inner, point)
            ends.append((point, point))
            for value, result in zip(block.yields, op.results, strict=True):
                self._use(value, point, inner)
                handovers.append(Handover(self.live.root[value], result, point))
        point += 1
        for result in op.results:
            self._define(result, point, scope)
            self.carries[result] = ends
        self.live.branches.append((op, handovers))
        return point

    def _read_while(self, op: While, scope: _Scope, point: int) -> int:
        start, end = point, self.loop_ends[id(op)]
        inner = _Scope(scope, end)
        enter: list[Handover] = []
        for value, carry in zip(op.operands, op.cond.arguments, strict=True):
            self._use(value, start, scope)
            self._define(carry, start, inner)
            enter.append(Handover(self.live.root[value], carry, start))
        point = self._read(op.cond, inner, point)
        for value in op.cond.yields:
            self._use(value, point, inner)
        for carry, new in zip(op.cond.arguments, op.body.arguments, strict=True):
            self._use(carry, point, inner)  # what leaves the loop is the value here
            self._define(new, start, inner, carry)
        point = self._read(op.body, inner, point)
        assert point == end, "numbering and reading disagree"
        again: list[Handover] = []
        for value, carry in zip(op.body.yields, op.cond.arguments, strict=True):
            self._use(value, end, inner)
            again.append(Handover(self.live.root[value], carry, end))
        for carry, result in zip(op.cond.arguments, op.results, strict=True):
            # The old value's interval is complete here: from now on `last` is the result's.
            self.carries.setdefault(carry, []).append((self.start[carry], self.last[carry]))
            self.start[carry] = self.last[carry] = end
            self._define(result, end, scope, carry)
        self.live.loops.append((op, enter, again))
        return end


def merge(intervals: list[Interval]) -> list[Interval]:
    """The same points in ascending, disjoint intervals; touching ones become one."""
    merged: list[Interval] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def intersection(a: list[Interval], b: list[Interval]) -> list[Interval]:
    """The points that lie in both lists, as intervals; each list ascending and disjoint."""
    if len(a) > len(b):
        a, b = b, a
    common: list[Interval] = []
    for low, high in a:
        position = max(bisect_right(b, (low, low)) - 1, 0)
        while position < len(b) and b[position][0] <= high:
            first, last = max(low, b[position][0]), min(high, b[position][1])
            if first <= last:
                common.append((first, last))
            position += 1
    return common
