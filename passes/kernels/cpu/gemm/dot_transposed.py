"""Dot-product GEMMs done as c' = b' a', of which each block is transposed at the end.

    c[m, n] += a[m, k] * b[n, k]      ->      t[n, m] += b[n, k] * a[m, k], c = t turned, in tiles

Tiles of b, whose terms lie next to each other, are multiplied where they lie, and a, which is smaller,
is packed instead.
"""

from __future__ import annotations

import math
from dataclasses import replace

from lamina.dialects.vendors import ir, memref
from lamina.passes.emit.loops import index
from lamina.passes.kernels.cpu.gemm.dot_blocks import Target
from lamina.passes.kernels.cpu.gemm.dot_factors import Position, rows_in_place
from lamina.passes.kernels.cpu.gemm.dot_instructions import TILE_BYTES, TILE_ROWS, load_at, store_at
from lamina.passes.kernels.cpu.gemm.epilogue import Epilogue
from lamina.passes.kernels.cpu.gemm.factor_copies import copy_elements
from lamina.passes.kernels.cpu.gemm.narrow_products import NarrowProduct
from lamina.passes.linalg.analysis.structure import part_of, places_of, stride_along, subview
from lamina.passes.linalg.vectors.shuffles import transposed

_MOST_ROWS = {"bf16": 256, "i8": 64}
_LEAST_COLUMNS = 64  # shape: a tile's


def turn(product: NarrowProduct) -> NarrowProduct | None:
    """The product with its rows as columns; None where the second factor is not read where it lies so, or
    columns are not many beside the rows."""
    roles = product.roles
    extents = roles.generic.extents
    rows, columns = extents[roles.row], extents[roles.column]
    if rows > _MOST_ROWS[product.element] or columns < _LEAST_COLUMNS or columns <= rows:
        return None
    if not {roles.row, roles.column} <= set(places_of(roles.c.map)):
        return None
    b = rows_in_place(product.b, roles.column, roles.around, roles.reduced, extents)
    if b is None or b.depth != b.element_bytes or product.depth * b.element_bytes % TILE_BYTES:
        return None
    factor = product.b.factor
    reduced = sorted(roles.reduced, key=lambda d: -stride_along(factor.buffer, factor.map, d))
    swapped = replace(
        roles, a=roles.b, b=roles.a, row=roles.column, column=roles.row, reduced=tuple(reduced)
    )
    return replace(product, roles=swapped, a=product.b, b=product.a, is_turned=True)


def sums_of_block(rows: int, columns: int) -> Target:
    """Where a block's sums are stored before they are turned: whole tiles, of which what is beyond the block
    is anything."""
    shape = [math.ceil(n / TILE_ROWS) * TILE_ROWS for n in (rows, columns)]
    word = ir.IntegerType.get_signless(32)
    return Target(memref.AllocOp(ir.MemRefType.get(shape, word), [], []).result, shape[1] * 4, index(0))


def store_turned(
    product: NarrowProduct, sums: Target, at: Position, extents: tuple[int, int], epilogue: Epilogue | None
) -> None:
    """Write the sums of a block of so many rows and columns, or do what follows on them, turned."""
    roles = product.roles
    shape = list(reversed(ir.MemRefType(sums.buffer.type).shape))
    element = ir.MemRefType(roles.c.buffer.type).element_type
    whole = memref.AllocOp(ir.MemRefType.get(shape, element), [], []).result
    target = Target(whole, shape[1] * 4, index(0))
    vector = ir.VectorType.get([TILE_ROWS], ir.IntegerType.get_signless(32))
    for row in range(0, shape[1], TILE_ROWS):
        for column in range(0, shape[0], TILE_ROWS):
            tile = [load_at(sums.place(row + r, column * 4), vector) for r in range(TILE_ROWS)]
            for r, line in enumerate(transposed(tile)[: extents[1] - column]):
                store_at(line, target.place(column + r, row * 4))
    sizes = {roles.row: extents[0], roles.column: extents[1]}
    tile = subview(whole, [0, 0], [extents[1], extents[0]])
    if epilogue is not None:
        epilogue.emit(tile, (roles.column, roles.row), at, sizes)
        return
    single = dict.fromkeys(roles.around, 1)
    place = part_of(roles.c.buffer, roles.c.map, at, {**single, **sizes})
    order = places_of(roles.c.map)
    reads = [ir.AffineDimExpr.get(order.index(d)) for d in (roles.column, roles.row)]
    copy_elements(tile, place, ir.AffineMap.get(len(order), 0, reads))

