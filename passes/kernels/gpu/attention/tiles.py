"""What attention by tensor cores has in shared memory: rows of its operands, as tiles of products."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import index
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.gemm.block import Arena
from lamina.passes.kernels.gpu.gemm.copies import AsyncCopies, RegisterCopies, TileShape
from lamina.passes.kernels.gpu.gemm.operand import Bounds, Operand
from lamina.passes.kernels.gpu.gemm.reading import Factor, Product
from lamina.passes.kernels.gpu.machine import SHARED_BYTES, STATIC_SHARED_BYTES
from lamina.passes.linalg.analysis.structure import Generic
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.stablehlo.attention.shape import AttentionShape
from lamina.records import Record

_MOST_COLUMNS = 128  # shape: of a tile

Tile = AsyncCopies | RegisterCopies


class Tiles(Record):
    """Queries of a block and keys of a step, and the widths of q and k, and of v, in shared memory."""

    queries: int
    keys: int
    width: int
    value_width: int
    """Of one of the parts that different blocks do."""
    parts: int
    bytes: int
    """Of an element."""

    @classmethod
    def of(cls, shape: AttentionShape, element: ir.Type, multiprocessors: int) -> Tiles:
        """64 of each, or as many as shared memory has room for; 128 queries, which read keys and values half as often,
        where each multiprocessor still has a block. Sums of more than 128 columns of v have no room in registers."""
        parts = -(-shape.value_width // _MOST_COLUMNS)
        value_width = padded(-(-shape.value_width // parts))
        for queries, keys in ((128, 64), (64, 64), (32, 32)):
            found = cls(
                queries, keys, padded(shape.width), value_width, parts, element_bytes(element)
            )
            if queries > 64 and not found._fills(shape, multiprocessors):
                continue
            if found.total <= SHARED_BYTES:
                break
        return found

    def _fills(self, shape: AttentionShape, blocks: int) -> bool:
        """Whether there are as many blocks, with less than an eighth of their queries beyond the last, and each thread
        has 16 bytes of a step's keys and values to copy."""
        rows = -(-shape.queries // self.queries) * self.queries
        enough = blocks_of(shape, self.queries) * self.parts >= blocks
        copied = self.keys * min(self.width, self.value_width) * self.bytes
        return enough and 8 * (rows - shape.queries) < rows and copied >= 16 * self.threads

    def columns(self, shape: AttentionShape) -> int:
        """How many of v a block does, a multiple of 16: beyond those are zeros."""
        return whole(-(-shape.value_width // self.parts))

    @property
    def offsets(self) -> tuple[int, int, int]:
        """Where q, k and v begin."""
        k = self.queries * self.width * self.bytes
        return 0, k, k + self.keys * self.width * self.bytes

    @property
    def total(self) -> int:
        return self.offsets[2] + self.keys * self.value_width * self.bytes

    @property
    def threads(self) -> int:
        """Of a block: a warp for 16 queries."""
        return 2 * self.queries

    def arena(self, kernel: Kernel) -> Arena:
        """A block's shared memory."""
        return arena_of(kernel, self.total)


def blocks_of(shape: AttentionShape, queries: int) -> int:
    """How many blocks of so many queries there are."""
    return math.prod(shape.extents[d] for d in shape.batch) * -(-shape.queries // queries)


def arena_of(kernel: Kernel, size: int) -> Arena:
    """Shared memory of so many bytes, which is asked for where not every GPU grants them."""
    return Arena(kernel, size, dynamic=size > STATIC_SHARED_BYTES)


class Operands(Record):
    """Makes tiles of a block's operands, at the block's place in the batch. `extents` are those of
    the scores; the number behind their dimensions' stands for a width."""

    job: Job
    kernel: Kernel
    extents: Sequence[int]
    batch: Mapping[int, ir.Value]
    threads: int

    def tile(
        self, value: ir.Value, dims: Mapping[int, int], rows: Sequence[int], width: int,
        size: tuple[int, int], arena: Arena, offset: int, stages: int = 1,
    ) -> Tile:  # fmt: skip
        """Rows of an operand by its width, in a tile of `size`; the tile of a left or right factor
        of the scores. `dims`: where its dimensions are among those of scores."""
        count = math.prod(self.extents[d] for d in rows)
        bounds = Bounds(count, width, bool(count % size[0]), width != size[1])
        reduced = len(self.extents)
        return self._of(
            value, dims, tuple(rows), reduced, width, bounds, size, arena, offset, stages
        )

    def turned(
        self, value: ir.Value, dims: Mapping[int, int], rows: int, width: int,
        size: tuple[int, int], arena: Arena, offset: int,
    ) -> Tile:  # fmt: skip
        """The same the other way round: `size` is of the width by rows, which are summed over."""
        count = self.extents[rows]
        bounds = Bounds(width, count, bool(width % size[0]), bool(count % size[1]))
        along = (len(self.extents),)
        return self._of(value, dims, along, rows, width, bounds, size, arena, offset, 1)

    def _of(
        self, value: ir.Value, dims: Mapping[int, int], along: tuple[int, ...], reduced: int, width: int,
        bounds: Bounds, size: tuple[int, int], arena: Arena, offset: int, stages: int,
    ) -> Tile:  # fmt: skip
        array, rank = self.job.array(self.kernel, value), len(self.extents)
        places = [ir.AffineDimExpr.get(dims[d]) for d in range(len(dims))]
        map_ = ir.AffineMap.get(rank + 1, 0, places)
        reductions = tuple(d == reduced for d in range(rank + 1))
        extents = (*self.extents, width)
        generic = Generic(None, (), (), (map_,), (), reductions, extents)  # type: ignore[arg-type]
        factor = Factor(0, array.buffer, map_, (), array.buffer, along)
        product = Product(
            generic, factor, factor, None, None, tuple(self.batch), (reduced,)  # type: ignore[arg-type]
        )  # fmt: skip
        one_by_one = reduced != rank and element_bytes(array.element) == 4
        tile_shape = TileShape.of(product, factor, *size, array.element, (), one_by_one)
        buffer = arena.view(offset, [stages, *tile_shape.shape], array.element)
        copies = AsyncCopies if tile_shape.copied else RegisterCopies
        operand = Operand(product, factor, {}, self.batch, index(0), bounds, ())
        return copies(operand, tile_shape, buffer, self.threads)


def whole(width: int) -> int:
    """The least multiple of 16 that holds a width."""
    return -(-width // 16) * 16


def padded(width: int) -> int:
    """The least power of two that holds a width, and 16 at least."""
    return max(16, 1 << (width - 1).bit_length())
