"""How `stablehlo-fuse` joins kernels that follow each other along the same rows.

    m = max of x along a row; e = exp(x - m); s = sum of e along the row; y = e / s

is three groups: two reductions over one domain, and a loop over it that reads their results. They
become one of the kind "rows". Its kernel does one row after the other (`schedule-generics`), so
that a row is read from memory once and what passes between its ops stays in cache.

A reduction joins with what reads its result (or what it stores on the way) if that is a reduction
over the same domain, or a loop over the domain or over the reduction's results. Members keep their
places: OUTER are the reduction's results, INNER is the domain.

A reduction over the rows' results, as the mean of their losses, stays a kernel of its own. What makes
its operands goes to the rows: there the row is in cache that a label picks from.
"""

from __future__ import annotations

from math import prod

from lamina.passes.stablehlo.fusion.fuse_graph import INNER, ON_INNER, OUTER, Group, Need, Place
from lamina.passes.stablehlo.fusion.fuse_grouping import Grouping

_LEAST_ROWS = 4  # rounding: fewer are no work to share out, and the reductions are split instead
_ROWS_HELD = 4  # values of a row that the second cache holds
_WIDEST_ELEMENT = 8
_LEAST_ROW = 64  # rounding: elements; what is done once for each shorter row is better done over vectors of rows


def join_rows(grouping: Grouping, max_ops: int) -> int:
    """Join all groups that can be; how often that was done."""
    joined = 0
    # Those that read nothing of the others first.
    for group in sorted(grouping.graph.groups(), key=lambda g: (-g.height, g.number)):
        first = group.find()
        if first.kind not in ("input", "rows") or not _has_rows(first, grouping.cache_bytes):
            continue
        waiting = list(first.consumers)
        while waiting:
            second = waiting.pop(0).find()
            if second is first or len(first.members) + len(second.members) > max_ops:
                continue
            moved = _moved(first, second)
            if moved is None:
                joined += _hand_over(grouping, first, second)
                continue
            if not grouping.graph.merge_in_order(first, second):
                continue
            joined += 1
            first.kind = "rows"
            first.members |= moved
            waiting = list(first.consumers)
    return joined


def _has_rows(group: Group, cache_bytes: int) -> bool:
    if group.shape is None or group.inner is None or prod(group.shape) < _LEAST_ROWS:
        return False
    return _row_elements(group) * _WIDEST_ELEMENT * _ROWS_HELD <= cache_bytes


def _row_elements(group: Group) -> int:
    assert group.shape is not None and group.inner is not None
    domain, _ = group.inner
    assert isinstance(domain, tuple)
    return prod(domain) // prod(group.shape)


def _moved(first: Group, second: Group) -> dict[tuple[int, Place], Need] | None:
    """The second group's members at their places in the first, if it can do them."""
    assert first.inner is not None
    domain, _ = first.inner
    if second.kind in ("input", "rows"):
        alike = (second.shape, second.inner) == (first.shape, first.inner)
        return second.members if alike else None
    if second.kind != "loop" or second.cuts:
        return None
    if second.shape == first.shape:
        return second.members
    if second.shape != domain:
        return None
    return {
        (position, Place(INNER, place.path) if place.domain == OUTER else place): need
        for (position, place), need in second.members.items()
    }


def _hand_over(grouping: Grouping, first: Group, second: Group) -> bool:
    """Let a group of rows compute what the second reduces of the rows' results; whether it does."""
    if second.kind != "input" or second.inner is None or second.inner[0] != first.shape:
        return False
    if _row_elements(first) < _LEAST_ROW:
        return False
    owner = grouping.owner
    given = [member for member in second.members if member[1].domain != OUTER]
    makers, stored = set(), []
    for member in second.members:
        for value, inside in grouping.sources(second, member):
            if inside is None:
                if member in given and value.maker in owner:
                    makers.add(owner[value.maker].find())
            elif member not in given and inside[1] == ON_INNER:
                stored.append(inside[0])
    own = [position for position, place in given if place == ON_INNER and _is_of(grouping, position, second)]
    if first not in makers or any(p in owner and p not in own for p in stored):
        return False
    # What else the rows read now has to be made before them.
    if not all(grouping.graph.let_read(maker, [first]) for maker in makers if maker is not first):
        return False
    grouping.graph.let_read(first, list(second.consumers))
    for position in (*own, *stored):
        owner[position] = first
    for position, place in given:
        need = second.members[position, place]
        first.members[position, Place(OUTER, place.path) if place.domain == INNER else place] = need
        if place.domain == INNER:
            del second.members[position, place]
    first.kind = "rows"
    for producer, consumer in [
        *((second, consumer) for consumer in list(second.consumers)),
        *((maker, second) for maker in makers),
    ]:
        if not _reads(grouping, consumer, producer):
            del producer.consumers[consumer], consumer.producers[producer]
    return True


def _reads(grouping: Grouping, group: Group, producer: Group) -> bool:
    values = [
        value
        for member in group.members
        for value in (
            *(value for value, inside in grouping.sources(group, member) if inside is None),
            *(grouping.captured(member[0]) if group.kind == "main" else ()),
        )
    ]
    return any(value.maker is not None and _is_of(grouping, value.maker, producer) for value in values)


def _is_of(grouping: Grouping, position: int, group: Group) -> bool:
    """Whether it is this group that stores what an op makes."""
    return position in grouping.owner and grouping.owner[position].find() is group
