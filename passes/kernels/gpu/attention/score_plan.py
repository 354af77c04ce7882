"""What a kernel of scores in registers computes, and its tiles: see `score_tiles.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lamina.passes.kernels.gpu.attention.tiles import padded, whole
from lamina.passes.kernels.gpu.machine import SHARED_BYTES
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.stablehlo.attention.score_region import Operand, Product, ScoreRegion, Sink
from lamina.records import Record

_SIZES = ((64, 64, 2), (64, 32, 2), (64, 32, 1), (64, 16, 2), (64, 16, 1), (32, 16, 1))
_MOST_BYTES = {64: 128, 32: 256, 16: 1024}
"""Rows of the other side in a step -> of the widest row that registers have room for then."""
_COLUMNS = 128
"""Of sums that registers have room for beside the scores."""


class Share(Record):
    """Some columns of what a sink adds up, a multiple of 16 but for the last ones."""

    sink: Sink
    first: int
    width: int

    @property
    def fragments(self) -> int:
        return whole(self.width) // 8

    @classmethod
    def groups(cls, sinks: Sequence[Sink]) -> list[tuple[Share, ...]]:
        """What kernels do of sinks: as many together as registers have room for."""
        found: list[tuple[Share, ...]] = []
        for sink in sinks:
            width = sink.other.width
            for first in range(0, width, _COLUMNS):
                share = cls(sink, first, min(_COLUMNS, width - first))
                together = (*found[-1], share) if found else (share,)
                if found and sum(8 * each.fragments for each in together) <= _COLUMNS:
                    found[-1] = together
                else:
                    found.append((share,))
        return found


class Plan(Record):
    """What a kernel computes: scores by products, with `lead` as the dimensions of a block's own
    rows and `moving` as the other side's; and its tiles."""

    region: ScoreRegion
    products: tuple[Product, ...]
    shares: tuple[Share, ...]
    by_rows: bool
    """Whether the block's rows are the region's."""
    size: int
    """Of a block."""
    step: int
    stages: int

    @classmethod
    def of(
        cls, region: ScoreRegion, products: Sequence[Product], shares: Sequence[Share], *, by_rows: bool
    ) -> Plan:
        """The largest tiles that registers and shared memory have room for."""
        for size, step, stages in _SIZES:
            found = cls(region, tuple(products), tuple(shares), by_rows, size, step, stages)
            if found.row_bytes <= _MOST_BYTES[step] and found.shared <= SHARED_BYTES:
                break
        return found

    @property
    def lead(self) -> tuple[int, ...]:
        return self.region.rows if self.by_rows else (self.region.keys,)

    @property
    def moving(self) -> tuple[int, ...]:
        return (self.region.keys,) if self.by_rows else self.region.rows

    @property
    def blocks(self) -> int:
        """Of the grid."""
        extents = self.region.extents
        batches = math.prod(extents[d] for d in self.region.batch)
        return batches * -(-self.extent(self.lead) // self.size)

    @property
    def row_bytes(self) -> int:
        """Of the widest row of a tile."""
        return max(o.width * element_bytes(o.value.type.element_type) for o in self.tiles)

    def extent(self, dims: Sequence[int]) -> int:
        return math.prod(self.region.extents[d] for d in dims)

    def lead_of(self, product: Product) -> Operand:
        return product.rows if self.by_rows else product.keys

    def moving_of(self, product: Product) -> Operand:
        return product.keys if self.by_rows else product.rows

    @property
    def tiles(self) -> dict[Operand, tuple[tuple[int, ...], int, int]]:
        """Each operand's dimensions of rows, how many those are in a tile, and its stages."""
        found = {self.lead_of(p): (self.lead, self.size, 1) for p in self.products}
        others = [*map(self.moving_of, self.products), *(share.sink.other for share in self.shares)]
        return found | {other: (self.moving, self.step, self.stages) for other in others}

    def bytes_of(self, operand: Operand) -> int:
        """Of a tile, with all its stages."""
        _, rows, stages = self.tiles[operand]
        element = operand.value.type.element_type
        return rows * stages * padded(operand.width) * element_bytes(element)

    @property
    def shared(self) -> int:
        return sum(map(self.bytes_of, self.tiles))
