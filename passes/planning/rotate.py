"""Which of a loop's copies from one step to the next are done by renaming buffers.

    step: %t = f(%now, %before)               step: %t = f(%now, %before)
          copy %now -> %before          =>          %now, %before, %t = %t, %now, %before
          copy %t -> %now

The copies that end a step say which buffer's content each carried value takes over. A content that one
carried value takes over, and that nothing else needs in its old place, stays where it is: the value's
name moves to its buffer. Names and buffers form cycles, so after so many steps as a cycle has buffers
each name is back at its own; a loop that ends between copies what is read after it to where it belongs.

A content that several values take over is copied for all but one of them. What is from outside the
loop, or carried on unchanged beside, is copied as well. Small buffers are copied always: they may live
in registers, which have no addresses.
"""

from __future__ import annotations

from lamina.passes.planning.coalesce import Sharing
from lamina.passes.planning.liveness import Interval, Liveness, merge
from lamina.passes.planning.program import While
from lamina.records import Record


class Move(Record):
    """`value`, in the group `source`, is what the group `target` must hold."""

    value: int
    source: int
    target: int


class Rotation(Record):
    """How the groups of a loop change buffers: in each cycle a group takes over the buffer of the next,
    the last that of the first. `copied` are the moves that are left to do before, by groups' names
    before the change; they are in no other's way."""

    cycles: list[list[int]]
    copied: list[Move]

    def home(self, cycle: list[int], steps: int, needed: dict[int, int]) -> list[Move]:
        """The moves, at the same time, that bring back what a cycle's groups hold after `steps` steps
        since they were last at home; `needed` maps groups to the values in them that are read."""
        return [
            Move(needed[name], cycle[(position + steps) % len(cycle)], name)
            for position, name in enumerate(cycle)
            if name in needed
        ]


class Rotator:
    """Finds the rotations of a program's loops, for buffers of `least` bytes or more."""

    def __init__(self, live: Liveness, sharing: Sharing, least: int) -> None:
        self._live = live
        self._sharing = sharing
        self._least = least

    def rotation(self, op: While, moves: list[Move], span: Interval) -> Rotation | None:
        """What becomes of the moves at the end of a step of a loop, which runs from one point to
        another; None where all are to be copied. The groups that change places have their buffers to
        themselves for the whole loop."""
        groups = self._sharing.groups
        targets = {move.target for move in moves}
        kept = {self._sharing.find(carry) for carry in op.cond.arguments} - targets
        large = [move for move in moves if groups[move.target].bytes >= self._least]
        taken: dict[int, Move] = {}
        for move in large:
            if move.source in taken or move.source in kept:
                continue
            if move.source in targets or self._is_made_in_step(move, span):
                taken[move.source] = move
        if not taken:
            return None
        renamed = {move.target: move.source for move in taken.values()}
        cycles, head_of = _cycles(renamed)
        for cycle in cycles:
            for name in cycle:
                group = groups[name]
                group.intervals = merge([*group.intervals, span])
        copied = [
            Move(move.value, move.source, head_of.get(move.target, move.target))
            for move in moves
            if taken.get(move.source) is not move
        ]
        return Rotation(cycles, copied)

    def _is_made_in_step(self, move: Move, span: Interval) -> bool:
        root = self._sharing.root.get(move.value, move.value)
        begins = self._live.intervals[root][0][0]
        return begins > span[0] and not self._sharing.groups[move.source].read_only


def _cycles(renamed: dict[int, int]) -> tuple[list[list[int]], dict[int, int]]:
    """The cycles of groups that take over each other's buffers. Where the last of a path takes over
    none, it gets the one that the first gives up, which is whose in the second result."""
    sources = set(renamed.values())
    cycles: list[list[int]] = []
    first_of: dict[int, int] = {}
    seen: set[int] = set()
    for first in [*(name for name in renamed if name not in sources), *renamed]:
        if first in seen:
            continue
        cycle = [first]
        seen.add(first)
        while (following := renamed.get(cycle[-1], first)) != first:
            cycle.append(following)
            seen.add(following)
        if cycle[-1] not in renamed:
            first_of[cycle[-1]] = first
        cycles.append(cycle)
    return cycles, first_of
