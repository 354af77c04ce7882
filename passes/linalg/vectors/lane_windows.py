"""Vectors whose lanes are any elements near each other: loads side by side, shuffled together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import field

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.loops import add, index, load
from lamina.records import Record


class Window(Record):
    """How a vector comes about: one load's lanes as they are, or those that `steps` pick, each from
    what is there so far and the next load. `starts` are counted from where a block begins."""

    starts: tuple[int, ...]
    width: int
    steps: tuple[tuple[int, ...], ...] = ()

    @property
    def shuffles(self) -> int:
        return len(self.steps)


def window(offsets: Sequence[int], limits: tuple[int, int]) -> Window:
    """The elements at these offsets, one for each lane; nothing outside of the limits is read. A width
    of 1 is an element in all lanes."""
    lanes = len(offsets)
    low, high = min(offsets), max(offsets)
    if low == high:
        return Window((low,), 1)
    if list(offsets) == list(range(low, low + lanes)):
        return Window((low,), lanes)
    few = _repeated_part(offsets)
    if few:
        return Window((low,), few, (tuple(offset - low for offset in offsets),))
    begin, end = limits
    if end - begin < lanes:
        return Window((begin,), end - begin, (tuple(offset - begin for offset in offsets),))
    starts = _starts(low, high, lanes, limits)
    from_load = [bisect_right(starts, offset) - 1 for offset in offsets]
    used = sorted(set(from_load))
    picked = [
        (bisect_left(used, n), offset - starts[n]) for n, offset in zip(from_load, offsets, strict=True)
    ]
    return Window(tuple(starts[n] for n in used), lanes, _steps(picked, len(used), lanes))


def _starts(low: int, high: int, lanes: int, limits: tuple[int, int]) -> list[int]:
    """Where loads begin that reach all from `low` to `high`: at multiples of the width, which others
    load, too, unless there are fewer at other places."""
    begin, end = limits
    grid = list(range(begin + (low - begin) // lanes * lanes, high + 1, lanes))
    dense = list(range(low, high + 1, lanes))
    starts = grid if len(grid) <= len(dense) else dense
    return sorted({min(start, end - lanes) for start in starts})


def _repeated_part(offsets: Sequence[int]) -> int:
    """The length of a part of the lanes that is contiguous and that all others repeat."""
    low = offsets[0]
    for size in (2, 4, 8, 16):
        if size < len(offsets) and all(o == low + n % size for n, o in enumerate(offsets)):
            return size
    return 0


def _steps(
    picked: Sequence[tuple[int, int]], loads: int, lanes: int
) -> tuple[tuple[int, ...], ...]:
    if loads == 1:
        return (tuple(place for _, place in picked),)
    steps = []
    for number in range(1, loads):
        is_first = number == 1
        steps.append(
            tuple(
                lanes + place if of == number else place if is_first else lane
                for lane, (of, place) in enumerate(picked)
            )
        )
    # What a later step brings may be anything before; keep indices valid.
    return tuple(steps)


class Windows(Record, frozen=False):
    """Windows of one buffer, whose loads are shared, at the ambient place. `base` is where the block
    begins in the flat buffer."""

    buffer: ir.Value
    base: ir.Value
    _loaded: dict[tuple[int, int], ir.Value] = field(default_factory=dict)

    def emit(self, window: Window, lanes: int) -> ir.Value:
        """The vector of a window."""
        element = ir.MemRefType(self.buffer.type).element_type
        if window.width == 1:
            found = vector.BroadcastOp(
                ir.VectorType.get([lanes], _shuffled(element)), self._load(window.starts[0], 1)
            ).result
        else:
            found, *others = [self._load(start, window.width) for start in window.starts]
            for number, step in enumerate(window.steps):
                found = vector.ShuffleOp(found, others[number] if others else found, step).result
        if _shuffled(element) == element:
            return found
        return vector.BitCastOp(ir.VectorType.get([lanes], element), found).result

    def _load(self, start: int, width: int) -> ir.Value:
        key = (start, width)
        if key not in self._loaded:
            element = ir.MemRefType(self.buffer.type).element_type
            bits = _shuffled(element)
            at = add(self.base, index(start)) if start else self.base
            if width == 1:
                value = load(self.buffer, [at])
                if bits != element:
                    value = arith.BitcastOp(bits, value).result
            else:
                value = vector.LoadOp(ir.VectorType.get([width], element), self.buffer, [at]).result
                if bits != element:
                    value = vector.BitCastOp(ir.VectorType.get([width], bits), value).result
            self._loaded[key] = value
        return self._loaded[key]


def _shuffled(element: ir.Type) -> ir.Type:
    """What elements are taken for while they are moved: LLVM moves no small floats."""
    if isinstance(element, ir.FloatType) and element.width < 32:
        return ir.IntegerType.get_signless(element.width)
    return element
