"""When `stablehlo-fuse` makes a reduction of an array along rows and one down columns one kernel, which
walks the array once (`linalg-fuse-reductions`). Rows and columns may be several dimensions each, all of which
are one there (`linalg-merge-dimensions`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import ints
from lamina.passes.stablehlo.fusion.fuse_graph import INNER, ON_OUTER, Group, Places
from lamina.passes.stablehlo.fusion.fuse_ops import Seen, SeenValue

if TYPE_CHECKING:
    from lamina.passes.stablehlo.fusion.fuse_grouping import Grouping

_LEAST_ROWS, _LEAST_COLUMNS = 32, 32  # rounding
_MOST_MAKERS = 32  # search
_ON_VECTORS = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs add and broadcast_in_dim compare convert cosine exponential exponential_minus_one log"
        " log_plus_one maximum minimum multiply negate or rsqrt select sine sqrt subtract tanh xor"
    ).split()
)


def goes_both_ways(group: Group) -> bool:
    """Whether a group is two reductions that go different ways over one domain."""
    return group.inner is not None and len(group.inner) > 2


def refusal_both_ways(op: Seen, group: Group, places: Places) -> str | None:
    """Why a group that reduces both ways may not compute an op; None if it may."""
    if not goes_both_ways(group) or all(place.domain != INNER for place in places):
        return None
    return None if _is_on_vectors(op) else "not done in vectors of columns"


def join_both_ways(grouping: Grouping, first: Group, second: Group, max_ops: int) -> bool:
    """Make two groups one that reduce the same array along rows and down columns, if they are such;
    whether they were. What reads the array again, row by row, had better follow the rows alone."""
    if not _is_pair(first, second) or len(first.members) + len(second.members) > max_ops:
        return False
    operands = [_reduced(grouping, group) for group in (first, second)]
    if operands[0] is None or operands[0] is not operands[1]:
        return False
    assert first.inner is not None and second.inner is not None
    domain = first.inner[0]
    if any(consumer.find().shape == domain for one in (first, second) for consumer in one.consumers):
        return False
    if not all(_can_be_walked(grouping, group) for group in (first, second)):
        return False
    if not _has_rows(grouping, operands[0], (first.inner[1], second.inner[1])):
        return False
    if not grouping.graph.merge(first, second):
        return False
    first.shape, first.inner = None, (*first.inner, second.inner[1])  # nothing else is over both
    return True


def join_all_both_ways(grouping: Grouping, max_ops: int) -> int:
    """Join the groups that only reduce, and one array, in pairs; how many."""
    joined = 0
    waiting: dict[SeenValue, Group] = {}
    for group in grouping.graph.groups():
        if group.kind != "input" or group.inner is None or goes_both_ways(group):
            continue
        operand = _reduced(grouping, group)
        if operand is None:
            continue
        other = waiting.setdefault(operand, group)
        if other is not group and join_both_ways(grouping, other, group, max_ops):
            del waiting[operand]
            joined += 1
    return joined


def _is_pair(first: Group, second: Group) -> bool:
    if first.kind != "input" or second.kind != "input" or first.inner is None or second.inner is None:
        return False
    if len(first.inner) > 2 or len(second.inner) > 2:
        return False
    (domain, ways), (other, back) = first.inner, second.inner
    assert isinstance(domain, tuple) and isinstance(ways, tuple) and isinstance(back, tuple)
    down, along = sorted((ways, back))
    if domain != other or not down or (*down, *along) != tuple(range(len(domain))):
        return False
    return prod(domain[: len(down)]) >= _LEAST_ROWS and prod(domain[len(down) :]) >= _LEAST_COLUMNS


def _reduced(grouping: Grouping, group: Group) -> SeenValue | None:
    """The array that the one reduction of a group is of."""
    found = [
        grouping.seen[position]
        for position, place in group.members
        if place == ON_OUTER and grouping.seen[position].name == "stablehlo.reduce"
    ]
    return found[0].operands[0] if len(found) == 1 and len(found[0].results) == 1 else None


def _has_rows(grouping: Grouping, array: SeenValue, ways: Sequence[object]) -> bool:
    """Whether what makes an array, as far as that is seen here, goes along all of the dimensions of a way or
    none, so that they are one."""
    work, found = [array], {array}
    while work and len(found) < _MOST_MAKERS:
        value = work.pop()
        if value.maker is None or value.shape != array.shape:
            continue
        op = grouping.seen[value.maker]
        if op.name == "stablehlo.broadcast_in_dim":
            dims = tuple(ints(op.op, "broadcast_dimensions"))
            if dims and dims not in ways:
                return False
        elif op.elementwise:
            work += [operand for operand in op.operands if operand not in found]
            found.update(op.operands)
    return True


def _can_be_walked(grouping: Grouping, group: Group) -> bool:
    for member in group.members:
        op = grouping.seen[member[0]]
        if member[1].domain == INNER and not _is_on_vectors(op):
            return False
        if member[1].domain == INNER or op.name == "stablehlo.reduce":
            read = [value for value, inside in grouping.sources(group, member) if inside is None]
            if any(_width(value.type) < 8 for value in read):
                return False
    return True


def _is_on_vectors(op: Seen) -> bool:
    if op.name == "stablehlo.divide":
        return isinstance(op.results[0].type.element_type, ir.FloatType)
    return op.name in _ON_VECTORS


def _width(of: ir.Type) -> int:
    return getattr(of.element_type, "width", 0)
