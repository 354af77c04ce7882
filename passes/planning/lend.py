"""Places for temporaries in the buffers of results that are written only later.

    %t = f(%x)                                     arena: %t, 64 bytes
    %u = g(%t)              ->                     result: %u, then what is returned
    return h(%u)

The caller's memory for a result is there from the beginning. It is rarely in a cache, though, where
the arena's is used over and over: what lives while most bytes are in use goes there, and nothing else.
"""

from __future__ import annotations

from bisect import insort

from lamina.passes.planning.coalesce import Group, Sharing
from lamina.passes.planning.offsets import aligned

_ROUNDS = 4
"""Each makes place where most bytes are in use after the one before."""
_WORTH = 64  # search
"""What has a 64th of the bytes of the largest temporary, or more, looks for a place in a result."""

Span = tuple[int, int]


class _Lender:
    """A result's buffer: bytes that are free until `until`, but for what has a place in it."""

    def __init__(self, number: int, group: Group) -> None:
        self.number = number
        self.bytes = group.bytes
        self.until = group.intervals[0][0]
        self._taken: list[tuple[int, int, Span]] = []

    def take(self, size: int, span: Span) -> int | None:
        """The offset of a place for so many bytes while they live; None if there is none."""
        if span[1] >= self.until:
            return None
        offset = 0
        for begin, end, (first, last) in self._taken:
            if first <= span[1] and span[0] <= last:
                if offset + size <= begin:
                    break
                offset = max(offset, end)
        if offset + size > self.bytes:
            return None
        insort(self._taken, (offset, offset + aligned(size), span))
        return offset


def lend_results(sharing: Sharing) -> dict[int, tuple[int, int]]:
    """The temporaries that live in results' buffers, by the names of their groups: the number of the
    result and the offset in it."""
    lenders: list[_Lender] = []
    spans: dict[int, Span] = {}
    for name, group in sharing.groups.items():
        if group.place is None and group.bytes:
            spans[name] = group.intervals[0][0], group.intervals[-1][1]
        elif group.place is not None and group.place[0] == "result" and group.bytes:
            if group.place[1] not in sharing.alias_of:
                lenders.append(_Lender(group.place[1], group))
    lenders.sort(key=lambda lender: (lender.bytes, lender.number))
    sizes = {name: sharing.groups[name].bytes for name in spans}
    least = max(sizes.values(), default=0) // _WORTH
    lent: dict[int, tuple[int, int]] = {}
    for _ in range(_ROUNDS if lenders else 0):
        peak = _peak(spans, sizes)
        wanting = [n for n, (first, last) in spans.items() if first <= peak <= last and sizes[n] > least]
        before = len(lent)
        for name in sorted(wanting, key=lambda n: (-sizes[n], spans[n][0] - spans[n][1], n)):
            for lender in lenders:
                offset = lender.take(sizes[name], spans[name])
                if offset is not None:
                    lent[name] = lender.number, offset
                    del spans[name]
                    break
        if len(lent) == before:
            break
    return lent


def _peak(spans: dict[int, Span], sizes: dict[int, int]) -> int:
    """The first point at which most bytes are in use."""
    changes: dict[int, int] = {}
    for name, (first, last) in spans.items():
        changes[first] = changes.get(first, 0) + sizes[name]
        changes[last + 1] = changes.get(last + 1, 0) - sizes[name]
    peak = most = now = 0
    for point in sorted(changes):
        now += changes[point]
        if now > most:
            peak, most = point, now
    return peak
