"""Emitting a part of a padded copy: what is in the source, and the value around that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import for_steps, index
from lamina.passes.kernels.cpu.gemm.prologue import Prologue, find_prologue
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.structure import clone_on, subview
from lamina.passes.linalg.schedule.padding import Padding
from lamina.records import Record


class PaddedWindow(Record):
    """`buffer` is a part of a padded buffer of shape `whole`; where it begins in that, and its
    sizes. It begins at a constant where it has all that is read."""

    padding: Padding
    whole: Sequence[int]
    buffer: ir.Value
    begins: Sequence[ir.Value | int]
    sizes: Sequence[int]
    maker: Prologue | None = None
    """What makes the source, if parts of it are made here."""

    def emit(self) -> None:
        """Fill it with what is in the source, and the value around that."""
        self._from(0, [0] * len(self.sizes), [0] * len(self.sizes), list(self.sizes))

    def _from(
        self,
        axis: int,
        at: Sequence[ir.Value | int],
        source: Sequence[ir.Value | int],
        sizes: list[int],
    ) -> None:
        """Along the axes from this one on; the others are at one place."""
        if axis == len(self.sizes):
            if self.maker is not None:
                self._make(self.maker, at, source, sizes)
                return
            copy = self.padding.ops[-1 if self.padding.converted is not None else 1]
            from_, into = (
                subview(buffer, offsets, sizes)
                for buffer, offsets in ((self.padding.source, source), (self.buffer, at))
            )
            clone_on(copy, [from_, into])
            return
        low = self.padding.starts[axis]
        extent = ir.MemRefType(self.padding.source.type).shape[axis]
        begin, size = self.begins[axis], self.sizes[axis]

        def go_on(place: ir.Value | int, where: ir.Value | int, count: int) -> None:
            self._from(
                axis + 1,
                _replaced(at, axis, place), _replaced(source, axis, where),
                _replaced(sizes, axis, count),
            )  # fmt: skip

        def fill(place: ir.Value | int, count: int) -> None:
            part = subview(self.buffer, _replaced(at, axis, place), _replaced(sizes, axis, count))
            clone_on(self.padding.ops[0], [part])

        if isinstance(begin, int):
            if low >= size:  # sees nothing of the source
                fill(0, size)
                return
            inside = min(extent, size - low)
            if low:
                fill(0, low)
            if low + inside < size:
                fill(low + inside, size - low - inside)
            go_on(low, 0, inside)
            return
        if not low and extent == self.whole[axis]:
            go_on(0, begin, size)
            return
        first = arith.SubIOp(index(low), begin).result  # of the source, in the window
        end = arith.AddIOp(first, index(extent)).result
        first, end = _clamped(first, size), _clamped(end, size)
        for_steps(index(0), first, 1, lambda i: fill(i, 1))
        for_steps(end, index(size), 1, lambda i: fill(i, 1))
        before = arith.SubIOp(begin, index(low)).result
        for_steps(first, end, 1, lambda i: go_on(i, arith.AddIOp(i, before).result, 1))


    def _make(
        self,
        maker: Prologue,
        at: Sequence[ir.Value | int],
        source: Sequence[ir.Value | int],
        sizes: Sequence[int],
    ) -> None:
        whole = ir.MemRefType(self.padding.source.type).shape
        parts = [axis for axis, (size, extent) in enumerate(zip(sizes, whole, strict=True)) if size < extent]
        places = {axis: _value(source[axis]) for axis in parts}
        maker.emit(subview(self.buffer, at, sizes), places, {axis: sizes[axis] for axis in parts})


def maker_of(padding: Padding) -> Prologue | None:
    """What makes the source of a padded copy for that alone, if parts of it can be made where they are needed."""
    if padding.converted is not None:
        return None
    rank = len(ir.MemRefType(padding.source.type).shape)
    return find_prologue(padding.ops[1], Factor(padding.source, ir.AffineMap.get_identity(rank)))


def _value(number: ir.Value | int) -> ir.Value:
    return index(number) if isinstance(number, int) else number


def _clamped(value: ir.Value, high: int) -> ir.Value:
    return arith.MinSIOp(arith.MaxSIOp(value, index(0)).result, index(high)).result


def _replaced(values: Sequence[Any], place: int, value: Any) -> list[Any]:
    return [*values[:place], value, *values[place + 1 :]]
