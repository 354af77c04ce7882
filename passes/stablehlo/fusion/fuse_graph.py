"""Groups of ops and the order between them, which must stay free of cycles.

Each group has a height: more than that of any group that reads what it makes. So a group can only
reach groups of smaller height, and most questions about cycles are one comparison; the others walk
the few groups whose heights would have to grow, up to a bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Literal, NamedTuple

from lamina.passes.stablehlo.fusion.fuse_ops import Seen
from lamina.passes.stablehlo.piecewise.boundaries import Cuts, joined
from lamina.records import Record

Kind = Literal["loop", "input", "rows", "output", "library", "update", "main"]
"""The kinds of kernel of the fused form; "main" is what stays in @main."""

Path = tuple[object, ...]
"""The index maps between a group's domain and an op in it; empty for ops on the domain itself."""

OUTER, INNER, SCALAR = "outer", "inner", "scalar"
"""The domains of a group: its results', what its reductions run over, and what is done once."""


class Place(NamedTuple):
    """Where in a group's iteration an op's value is needed."""

    domain: str
    path: Path = ()


ON_OUTER, ON_INNER = Place(OUTER), Place(INNER)


class Need(NamedTuple):
    """How a place came to need an op: through how many cloned ops, and repeated ones."""

    cloned: int = 0
    repeated: int = 0


Places = dict[Place, Need]
"""Where in a group an op is needed."""


class Group(Record, frozen=False, eq=False):
    """Ops that become one kernel, or one op that stays in @main."""

    number: int
    kind: Kind
    shape: tuple[int, ...] | None
    """The outer domain; None where nothing may join."""
    inner: tuple[object, ...] | None = None
    """What reductions run over: operand shape and dimensions. Equal for all of a group."""
    members: dict[tuple[int, Place], Need] = field(default_factory=dict)
    """(position in the block, place) of each op computed here."""
    height: int = 0
    producers: dict[Group, None] = field(default_factory=dict)
    consumers: dict[Group, None] = field(default_factory=dict)
    stops: dict[str, str] = field(default_factory=dict)
    """Ops this group reads instead of computing, with the reason."""
    library: str | None = None
    cuts: Cuts = field(default_factory=dict)
    """Where what it computes is put together from parts."""
    cuts_to_come: Cuts = field(default_factory=dict)
    """The same, with what its members read and it may compute."""
    comes_in_parts: bool = True
    """Whether all its members can be computed for a part alone."""
    is_plain: bool | None = None
    """Whether all its members are, once that was asked."""
    scattered: frozenset[Seen] = frozenset()
    """The ops that a scatter may do where it needs their elements."""
    merged_into: Group | None = None

    def stored_at(self, position: int) -> Place | None:
        """Where the group computes an op in the order of a domain, so that it can store it."""
        for place in (ON_OUTER, ON_INNER):
            if (position, place) in self.members:
                return place
        return None

    def find(self) -> Group:
        """The group that this one is part of by now."""
        group = self
        while group.merged_into is not None:
            group = group.merged_into
        return group


class Graph:
    """The groups of one block."""

    def __init__(self, walk_limit: int = 256) -> None:
        self._walk_limit = walk_limit
        self._groups: list[Group] = []

    def new_group(self, kind: Kind, shape: tuple[int, ...] | None) -> Group:
        """A group that nothing reads yet."""
        group = Group(len(self._groups), kind, shape)
        self._groups.append(group)
        return group

    def groups(self) -> list[Group]:
        """All groups that are not part of another."""
        return [group for group in self._groups if group.merged_into is None]

    def let_read(self, producer: Group, consumers: list[Group]) -> bool:
        """Let consumers read what producer makes; False, and nothing changed, if that is a cycle
        or takes too long to know."""
        others = [c for c in consumers if c is not producer and c not in producer.consumers]
        if not others:
            return True
        height = max(c.height for c in others) + 1
        if not self._raise(producer, height, set(others)):
            return False
        for consumer in others:
            producer.consumers[consumer] = None
            consumer.producers[producer] = None
        return True

    def merge(self, first: Group, second: Group) -> bool:
        """Make the groups one, `first`; False, and nothing changed, if one reaches the other
        through a third, or may."""
        if first is second:
            return True
        if second in first.consumers or first in second.consumers:
            return False
        low, high = (first, second) if first.height < second.height else (second, first)
        if low.height < high.height and not self._raise(low, high.height, {high}):
            return False
        first.members |= second.members
        self._take_edges(first, second)
        return True

    def merge_in_order(self, first: Group, second: Group) -> bool:
        """Make a group and one that reads it one, all but the members; False, and nothing
        changed, if a third is between them, or may be."""
        if self._reaches([c for c in first.consumers if c is not second], second):
            return False
        del first.consumers[second], second.producers[first]
        # What only the second reads has to be made before the first runs now.
        if not self._raise_all(second.producers, first.height + 1, first):
            first.consumers[second] = second.producers[first] = None
            return False
        self._take_edges(first, second)
        return True

    def _take_edges(self, first: Group, second: Group) -> None:
        for consumer in second.consumers:
            first.consumers[consumer] = None
            del consumer.producers[second]
            consumer.producers[first] = None
        for producer in second.producers:
            first.producers[producer] = None
            del producer.consumers[second]
            producer.consumers[first] = None
        first.stops |= second.stops
        first.is_plain = None
        first.cuts = joined(first.cuts, second.cuts)
        first.cuts_to_come = joined(first.cuts_to_come, second.cuts_to_come)
        first.comes_in_parts = first.comes_in_parts and second.comes_in_parts
        second.merged_into = first

    def _reaches(self, starts: list[Group], goal: Group) -> bool:
        """Whether a group is a start or reads one, at any distance; True if that takes too long
        to know."""
        seen: set[Group] = set()
        work = list(starts)
        while work:
            at = work.pop()
            if at is goal or len(seen) > self._walk_limit:
                return True
            if at not in seen and at.height > goal.height:
                seen.add(at)
                work += at.consumers
        return False

    def _raise_all(self, groups: Iterable[Group], height: int, forbidden: Group) -> bool:
        return all(self._raise(group, height, {forbidden}) for group in list(groups))

    def _raise(self, group: Group, height: int, forbidden: set[Group]) -> bool:
        """Give a group at least this height, and what it reads from more, unless that reaches a
        forbidden group."""
        new: dict[Group, int] = {}
        work = [(group, height)]
        while work:
            at, needed = work.pop()
            if max(new.get(at, 0), at.height) >= needed:
                continue
            if at in forbidden or len(new) > self._walk_limit:
                return False
            new[at] = needed
            work += [(producer, needed + 1) for producer in at.producers]
        for at, raised in new.items():
            at.height = raised
        return True
