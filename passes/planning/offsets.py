"""Offsets in one arena for buffers that live for known intervals."""

from __future__ import annotations

from bisect import bisect_left, insort

ALIGNMENT = 64


def aligned(size: int) -> int:
    """`size` rounded up to the alignment of buffers in the arena."""
    return -(-size // ALIGNMENT) * ALIGNMENT


_SMALL = 16  # search
"""What has a 16th of the bytes of the largest buffer, or less, may be kept apart."""

_FEW = 128  # search
"""Of so many the largest may come first, which takes longer."""

_Buffers = dict[int, tuple[int, int, int]]


def assign_offsets(buffers: _Buffers) -> tuple[dict[int, int], int]:
    """Offsets for `buffers` (name -> bytes, first point, last point), and the arena's size.

    Buffers whose closed intervals meet never overlap; each offset is a multiple of ALIGNMENT.
    Of several ways the one that makes the smallest arena is taken: all in the order in which they
    come, or the largest first, or small ones with a place of their own behind the others, since one
    of them in a gap that a large one left keeps the next large one out.
    """
    found = [_best_fit(buffers)]
    if len(buffers) <= _FEW:
        found.append(_largest_first(buffers))
    most = max((bytes_ for bytes_, _, _ in buffers.values()), default=0)
    small = {name: buffer for name, buffer in buffers.items() if buffer[0] * _SMALL <= most}
    large, start = _best_fit({name: b for name, b in buffers.items() if name not in small})
    behind, rest = _best_fit(small)
    found.append((large | {name: start + at for name, at in behind.items()}, start + rest))
    return min(found, key=lambda plan: plan[1])


def _largest_first(buffers: _Buffers) -> tuple[dict[int, int], int]:
    """Each as far in front as those that are placed before it allow: a large one never makes place
    for a small one. Takes quadratic time."""
    offsets: dict[int, int] = {}
    placed: list[tuple[int, int, int, int]] = []
    top = 0
    for name in sorted(buffers, key=lambda name: (-buffers[name][0], buffers[name][1])):
        size, first, last = buffers[name]
        offset, wanted = 0, aligned(size)
        for begin, end, other_first, other_last in placed:
            if begin < offset + wanted and offset < end and first <= other_last and other_first <= last:
                offset = end
        offsets[name] = offset
        insort(placed, (offset, offset + wanted, first, last))
        top = max(top, offset + wanted)
    return offsets, top


def _best_fit(buffers: _Buffers) -> tuple[dict[int, int], int]:
    """Best fit in order of the first point, with free neighbours joined: O(n log n) on real programs."""
    free = _FreeList()
    offsets: dict[int, int] = {}
    order = sorted(buffers, key=lambda name: (buffers[name][1], -buffers[name][0]))
    endings = sorted(order, key=lambda name: buffers[name][2])
    ended = 0
    for name in order:
        size, first, _ = buffers[name]
        while ended < len(endings) and buffers[endings[ended]][2] < first:
            gone = endings[ended]
            free.release(offsets[gone], aligned(buffers[gone][0]))
            ended += 1
        offsets[name] = free.take(aligned(size))
    return offsets, free.top


class _FreeList:
    """Free ranges below `top`, found by size and joined with their neighbours."""

    def __init__(self) -> None:
        self.top = 0
        self.by_size: list[tuple[int, int]] = []  # (size, offset), ascending
        self.starts: dict[int, int] = {}  # offset -> size
        self.ends: dict[int, int] = {}  # end -> offset

    def take(self, size: int) -> int:
        if size == 0:
            return 0
        position = bisect_left(self.by_size, (size, 0))
        if position < len(self.by_size):
            found, offset = self.by_size[position]
            self._remove(offset, found)
            if found > size:
                self._insert(offset + size, found - size)
            return offset
        last = self.ends.get(self.top)
        if last is None:
            last = self.top
        else:  # grow the free range that touches the top
            self._remove(last, self.starts[last])
        self.top = last + size
        return last

    def release(self, offset: int, size: int) -> None:
        if size == 0:
            return
        if offset + size in self.starts:
            following = self.starts[offset + size]
            self._remove(offset + size, following)
            size += following
        if offset in self.ends:
            start = self.ends[offset]
            size += self.starts[start]
            self._remove(start, self.starts[start])
            offset = start
        self._insert(offset, size)

    def _insert(self, offset: int, size: int) -> None:
        insort(self.by_size, (size, offset))
        self.starts[offset] = size
        self.ends[offset + size] = offset

    def _remove(self, offset: int, size: int) -> None:
        del self.by_size[bisect_left(self.by_size, (size, offset))]
        del self.starts[offset]
        del self.ends[offset + size]
