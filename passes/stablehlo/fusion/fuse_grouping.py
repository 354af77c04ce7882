"""How `stablehlo-fuse` decides which ops of a block become one kernel.

Ops are visited users first. What an op's users are is then known for good, and three cases remain:

- One group needs the op, and computes it at the index it needs it: the op joins. That never makes
  a cycle, since every path from the op leads through that group.
- Several groups need it. They become one if they run over the same domain and neither reaches the
  other. Else the op is cloned into each if that reads no more memory, or it joins one of them,
  which then also stores it for the others, if that makes no cycle.
- Nobody can compute it in place: it starts a group of its own.

An op that costs more than a few instructions is never in two groups, nor at two places of one, nor
behind a broadcast that would repeat it. So the work of the program does not grow.
"""

from __future__ import annotations

from math import prod

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import CONSTANT
from lamina.passes.stablehlo.analysis.product_choice import Products
from lamina.passes.stablehlo.fusion import fuse_ops
from lamina.passes.stablehlo.fusion.fuse_both_ways import join_both_ways
from lamina.passes.stablehlo.fusion.fuse_graph import (
    ON_OUTER,
    OUTER,
    SCALAR,
    Graph,
    Group,
    Kind,
    Need,
    Place,
    Places,
)  # fmt: skip
from lamina.passes.stablehlo.fusion.fuse_ops import Seen, SeenValue, SeenValues
from lamina.passes.stablehlo.fusion.fuse_parts import (
    can_merge,
    note_parts,
    refusal_before_parts,
)
from lamina.passes.stablehlo.fusion.fuse_places import ONCE, place_of_operand
from lamina.passes.stablehlo.fusion.fuse_prologues import refusal_of_prologue
from lamina.passes.stablehlo.fusion.fuse_refusals import Limits, reads_argument, refusal
from lamina.passes.stablehlo.fusion.fuse_scatters import done_one_by_one

_MAX_CLONED = 3  # code: ops in a row that may be computed in several groups
_TINY = 64  # code: elements of a domain for which a call costs more than the work

Member = tuple[int, Place]
Sources = list[tuple[SeenValue, Member | None]]
"""Operands, each with the member of the group that makes it; None if it is read from memory."""


class Grouping:
    """The groups of a block, made once by `run`."""

    def __init__(
        self,
        block: ir.Block,
        limits: Limits,
        effects: set[ir.Operation],
        products: Products = fuse_ops.AS_IS,
        in_parts: bool = True,
        both_ways: bool = True,
        prologues: bool = True,
    ) -> None:
        """`limits`: how many ops a group has at most. `effects`: the ops, here and in regions, that must
        stay in their order. `products`: who does matrix products. `in_parts`: whether kernels may do
        arrays that are put together part by part, and what a scatter reads one by one. `both_ways`:
        whether they may reduce an array along rows and down columns. `prologues`: whether products may
        make their factors."""
        self._effects = effects
        self._prologues = prologues
        self._both_ways = both_ways
        self._in_parts = in_parts
        self.cache_bytes = products.machine.l2_bytes
        """Of a core's second cache."""
        self.ops = [inner.operation for inner in block.operations]
        self._values = SeenValues()
        self.seen = [
            Seen(op, position, self._values, products, in_parts)
            for position, op in enumerate(self.ops)
        ]
        self.graph = Graph()
        self.owner: dict[int, Group] = {}
        """The group that stores the results of the op at a position, if any does."""
        self._limits = limits
        self._operands: dict[Member, Sources] = {}
        self._wanted: list[dict[Group, Places]] = [{} for _ in self.ops]
        self._readers: list[dict[Group, None]] = [{} for _ in self.ops]
        self._next_effect: Group | None = None

    def run(self) -> None:
        """Put every op that is used, or has an effect, into groups."""
        for position in reversed(range(len(self.ops))):
            self._visit(position)
        self._merge_siblings()

    def operands(self, position: int, place: Place) -> Sources:
        """Each operand of a member with where in the group it would be; None if it is read."""
        key = (position, place)
        known = self._operands.get(key)
        if known is not None:
            return known
        op = self.seen[position]
        found: Sources = []
        if op.elementwise:  # most are
            for value in op.operands:
                maker = value.maker
                inside = place if value.shape == op.shape else ONCE
                found.append((value, None if maker is None else (maker, inside)))
        else:
            for number, value in enumerate(op.operands):
                maker = value.maker
                at = None if maker is None else place_of_operand(op, number, value, place, self._prologues)
                found.append((value, (maker, at) if maker is not None and at else None))
        self._operands[key] = found
        return found

    def sources(self, group: Group, member: Member) -> Sources:
        """Each operand of a member with the member that makes it; None if it is read from memory.

        What a group of rows stores, or could, its later ops may read at any index.
        """
        operands = self._operands.get(member) or self.operands(*member)
        members = group.members
        found: Sources = []
        for pair in operands:
            value, inside = pair
            if inside is not None and inside in members:
                found.append(pair)
            elif group.kind == "rows":
                found.append((value, self._stored_in(group, value)))
            else:
                found.append((value, None))
        return found

    def captured(self, position: int) -> list[SeenValue]:
        """The values from outside that the regions of an op read."""
        op = self.ops[position]
        if not len(op.regions):
            return []
        return [self._values.of(value) for value in fuse_ops.captured(op)]

    def _stored_in(self, group: Group, value: SeenValue) -> Member | None:
        position = value.maker
        if position is None or position not in self.owner:
            return None
        place = group.stored_at(position) if self.owner[position].find() is group else None
        return None if place is None else (position, place)

    # Visiting one op

    def _visit(self, position: int) -> None:
        op = self.seen[position]
        if op.name == CONSTANT and op.results[0].cloned:
            return
        readers: dict[Group, None] = {}
        for group in self._readers[position]:
            readers[group.find()] = None
        wanted: dict[Group, Places] = {}
        for group, places in self._wanted[position].items():
            found = group.find()
            if found in wanted:
                wanted[found] |= places
            else:
                wanted[found] = places
        pure = not self._effects or op.op not in self._effects
        if op.stays_in_main:
            self._stay_in_main(position, [*readers, *wanted], pure)
            return
        if not readers and not wanted and pure:
            return  # dead
        for group in list(wanted):
            places = wanted[group]
            most = self._most_ops(op, group, len(group.members) + len(places))
            why = refusal(op, group, places, group in readers, most)
            why = why or refusal_before_parts(op, group, places, self.seen)
            why = why or refusal_of_prologue(op, group, places, self.seen)
            if why:
                del wanted[group]
                readers[group] = None
                group.stops.setdefault(op.name, why)
        if not pure or not wanted:
            self._start_group(position, list(readers), pure)
        elif len(wanted) == 1 and not readers:
            (group,) = wanted
            self._join(position, group, wanted[group])
        elif op.name == "stablehlo.dot_general" or op.name == "stablehlo.convolution":
            # Its epilogue would not be the only user: no group may hold it back.
            self._start_group(position, [*readers, *wanted], pure)
        else:
            self._share(position, wanted, list(readers))

    def _most_ops(self, op: Seen, group: Group, size: int) -> int:
        """How many ops a group may have that would have this many with an op."""
        limits = self._limits
        if size <= limits.ops:
            return limits.ops
        if not op.shape and not group.shape:
            return max(limits.ops, limits.scalars)
        most = limits.ops if reads_argument(op) else limits.chain
        if most >= limits.plain:
            return most
        if group.is_plain is None:
            group.is_plain = all(self.seen[position].is_plain for position, _ in group.members)
        return limits.plain if group.is_plain and op.is_plain else most

    def _stay_in_main(self, position: int, readers: list[Group], pure: bool) -> None:
        op = self.seen[position]
        group = self.graph.new_group("main", None)
        group.members[position, ON_OUTER] = Need()
        self.owner[position] = group
        self.graph.let_read(group, readers)
        self._keep_effects_in_order(group, pure)
        for value in [*op.operands, *self.captured(position)]:
            self._read(value, group)

    def _keep_effects_in_order(self, group: Group, pure: bool) -> None:
        if pure:
            return
        if self._next_effect is not None:
            self.graph.let_read(group, [self._next_effect.find()])
        self._next_effect = group

    def _read(self, value: SeenValue, group: Group) -> None:
        if value.maker is not None:
            self._readers[value.maker][group] = None

    # Putting an op somewhere

    def _join(self, position: int, group: Group, places: Places) -> None:
        op = self.seen[position]
        if op.name == "stablehlo.reduce":
            group.kind, group.inner = "input", fuse_ops.reduction_domain(op.op)
        elif op.name in ("stablehlo.dot_general", "stablehlo.convolution"):
            group.kind = "output"
        note_parts(op, group, places, self.seen)
        if group.is_plain:
            group.is_plain = op.is_plain
        for place, need in places.items():
            group.members[position, place] = need
            self._need_operands(position, group, place, need)

    def _start_group(self, position: int, readers: list[Group], pure: bool) -> None:
        op = self.seen[position]
        kind: Kind = "output"
        if op.library:
            kind = "library"
        elif op.name in fuse_ops.UPDATES:
            kind = "update"
        elif op.name == "stablehlo.reduce":
            kind = "input"
        elif op.joins_loops or op.name in fuse_ops.REARRANGEMENTS:
            kind = "loop"
        group = self.graph.new_group(kind, op.shape)
        group.library = op.library
        note_parts(op, group, {ON_OUTER: Need()}, self.seen)
        if kind == "update" and self._in_parts:
            group.scattered = done_one_by_one(op, self.seen)
        if kind == "input":
            group.inner = fuse_ops.reduction_domain(op.op)
        self.owner[position] = group
        self.graph.let_read(group, readers)
        self._keep_effects_in_order(group, pure)
        group.members[position, ON_OUTER] = Need()
        self._need_operands(position, group, ON_OUTER, Need())

    def _need_operands(self, position: int, group: Group, place: Place, need: Need) -> None:
        op = self.seen[position]
        repeated = need.repeated
        if op.name == "stablehlo.broadcast_in_dim":
            repeated += prod(op.shape or ()) > prod(op.operands[0].shape) > 1
        elif repeated and op.cheap and not op.mapped:
            repeated += 1
        passed = need if repeated == need.repeated else Need(need.cloned, repeated)
        for value, inside in self.operands(position, place):
            if inside is None:
                if value.maker is not None:
                    self._readers[value.maker][group] = None
                continue
            maker, child = inside
            wanted = self._wanted[maker]
            places = wanted.get(group)
            if places is None:
                wanted[group] = {child: passed}
                continue
            before = places.get(child, passed)
            if before is passed:
                places[child] = passed
            else:
                places[child] = Need(
                    max(before.cloned, passed.cloned), max(before.repeated, passed.repeated)
                )

    def _share(self, position: int, wanted: dict[Group, Places], readers: list[Group]) -> None:
        """Place an op that several groups need, or that is also read from memory."""
        op = self.seen[position]
        moves = op.name in fuse_ops.MAPPED or op.name in fuse_ops.LEAVES
        if not moves:
            wanted = self._merged(op, wanted)
            if len(wanted) == 1 and not readers:
                (group,) = wanted
                self._join(position, group, wanted[group])
                return
        if fuse_ops.is_small_operation(op, self.seen) and (moves or not readers):
            self._clone(position, wanted, readers, counts=not moves)
            return
        for group, places in wanted.items():
            others = [*readers, *(other for other in wanted if other is not group)]
            if self._can_store(op, group, places) and self.graph.let_read(group, others):
                self.owner[position] = group
                self._join(position, group, places)
                for other in wanted:
                    if other is not group:
                        other.stops.setdefault(op.name, "stored by another kernel that needs it")
                return
        for group in wanted:
            group.stops.setdefault(op.name, f"needed by {len(wanted) + len(readers)} kernels")
        self._start_group(position, [*readers, *wanted], pure=True)

    def _clone(
        self, position: int, wanted: dict[Group, Places], readers: list[Group], counts: bool
    ) -> None:
        """Compute an op in each group that needs it."""
        for group, places in wanted.items():
            deepest = max(need.cloned for need in places.values())
            if counts and deepest >= _MAX_CLONED:
                group.stops.setdefault(self.seen[position].name, "cloned often enough")
                readers.append(group)
                continue
            self._join(
                position,
                group,
                {p: Need(need.cloned + counts, need.repeated) for p, need in places.items()},
            )
        if readers:
            self._start_group(position, readers, pure=True)

    def _can_store(self, op: Seen, group: Group, places: Places) -> bool:
        """Whether a group computes each element of an op once, and in the order of its domain."""
        if len(places) != 1 or group.kind not in ("loop", "input"):
            return False
        (place,) = places
        if place.path or place.domain == SCALAR:
            return False
        if place.domain == OUTER:
            return group.shape == op.shape
        return group.inner is not None and group.inner[0] == op.shape

    def _merged(self, op: Seen, wanted: dict[Group, Places]) -> dict[Group, Places]:
        """The groups that need an op, those made one that can be."""
        kept: dict[Group, Places] = {}
        for group, places in wanted.items():
            for first in kept:
                can_store = self._can_store(op, first, kept[first]) and self._can_store(op, group, places)
                if can_store and (
                    (self._is_mergeable(first, group) and self.graph.merge(first, group))
                    or (
                        self._both_ways
                        and len(wanted) == 2
                        and join_both_ways(self, first, group, self._limits.ops)
                    )
                ):
                    kept[first] |= places
                    break
            else:
                kept[group] = places
        return kept

    def _is_mergeable(self, first: Group, second: Group) -> bool:
        return (
            first.kind == second.kind
            and first.kind in ("loop", "input")
            and first.shape is not None
            and (first.shape, first.inner) == (second.shape, second.inner)
            and len(first.members) + len(second.members) <= self._limits.ops
            and can_merge(first, second)
        )

    # Afterwards

    def _merge_siblings(self) -> None:
        """Make groups one that run over the same domain at the same height, and read the same
        array, or are tiny."""
        first_of: dict[object, Group] = {}
        for group in self.graph.groups():
            if group.kind not in ("loop", "input") or group.shape is None:
                continue
            names = {self.seen[position].name for position, _ in group.members}
            if not names.isdisjoint(fuse_ops.REARRANGEMENTS):
                continue
            keys: list[object] = list(self._arrays_read(group))
            if prod(group.shape) <= _TINY and group.kind == "loop":
                keys.append("tiny")
            for key in keys:
                bucket = (key, group.kind, group.shape, group.inner, group.height)
                first = first_of.setdefault(bucket, group).find()
                if first is group.find():
                    continue
                if self._is_mergeable(first, group.find()):
                    self.graph.merge(first, group.find())
                else:
                    first_of[bucket] = group

    def _arrays_read(self, group: Group) -> list[SeenValue]:
        found: dict[SeenValue, None] = {}
        for member in group.members:
            for value, inside in self.sources(group, member):
                if inside is None and value.shape and not value.cloned:
                    found[value] = None
        return list(found)
