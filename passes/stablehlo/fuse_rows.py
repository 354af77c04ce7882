"""How `stablehlo-fuse` joins kernels that follow each other along the same rows.

    m = max of x along a row; e = exp(x - m); s = sum of e along the row; y = e / s

is three groups: two reductions over one domain, and a loop over it that reads their results. They
become one of the kind "rows". Its kernel does one row after the other (`linalg-share-loops`), so
that a row is read from memory once and what passes between its ops stays in cache.

A reduction joins with what reads its result (or what it stores on the way) if that is a reduction
over the same domain, or a loop over the domain or over the reduction's results. Members keep their
places: OUTER are the reduction's results, INNER is the domain.
"""

from __future__ import annotations

from math import prod

from lamina.passes.stablehlo.fuse_graph import INNER, OUTER, Group, Need, Place
from lamina.passes.stablehlo.fuse_grouping import Grouping

_LEAST_ROWS = 4  # fewer are no work to share out, and the reductions are split instead
_MAX_ROW_BYTES = 1 << 18  # of a value of the row; more would not stay in cache
_WIDEST_ELEMENT = 8


def join_rows(grouping: Grouping, max_ops: int) -> int:
    """Join all groups that can be; how often that was done."""
    joined = 0
    # Those that read nothing of the others first.
    for group in sorted(grouping.graph.groups(), key=lambda g: (-g.height, g.number)):
        first = group.find()
        if first.kind not in ("input", "rows") or not _has_rows(first):
            continue
        waiting = list(first.consumers)
        while waiting:
            second = waiting.pop(0).find()
            if second is first or len(first.members) + len(second.members) > max_ops:
                continue
            moved = _moved(first, second)
            if moved is None or not grouping.graph.merge_in_order(first, second):
                continue
            joined += 1
            first.kind = "rows"
            first.members |= moved
            waiting = list(first.consumers)
    return joined


def _has_rows(group: Group) -> bool:
    if group.shape is None or group.inner is None or prod(group.shape) < _LEAST_ROWS:
        return False
    domain, _ = group.inner
    assert isinstance(domain, tuple)
    return prod(domain) // prod(group.shape) * _WIDEST_ELEMENT <= _MAX_ROW_BYTES


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
