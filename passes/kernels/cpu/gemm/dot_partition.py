"""How a task of a dot-product GEMM packs the second factor for itself: which columns, how many terms.

What is packed before all tasks goes to memory and comes back. A task that alone multiplies some columns packs
them on its stack; where their terms are too many for that, a part after the other, and the sums stay
beside it. The columns of a part are several cache lines of each row: those of a tall matrix lie in as
many pages, each of which has to be found for every line.
"""

from __future__ import annotations

import math

from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.dot_factors import Rows
from lamina.passes.kernels.cpu.gemm.dot_instructions import TILE_BYTES
from lamina.passes.kernels.cpu.gemm.narrow_products import NarrowProduct
from lamina.records import Record

_OWN_TASKS = 8
# Of the second cache: the first factor's rows, walked again for each block of columns; panels with all their terms;
# parts of others; and the sums beside these.
FIRST_ROWS, _WHOLE, _PART, _SUMS = 1 / 2, 1 / 32, 1 / 16, 1 / 16
_ROW_LINES = 4  # of a part's rows


class Own(Record):
    """So many columns, and so many terms of their sums at a time."""

    columns: int
    terms: int


def choose_own(product: NarrowProduct, a: Rows, b: Rows, step: int, strip: int) -> Own | None:
    """What a task packs for itself, in blocks of `step` columns, which are packed by the `strip`; None where
    it is better packed before all tasks.

    Such a task does all rows of its columns: they have to stay in cache, and be no more than the
    columns, since results are written in stripes."""
    roles, extents = product.roles, product.roles.generic.extents
    rows, columns = extents[roles.row], extents[roles.column]
    repeated = any(extents[d] > 1 and d not in b.around for d in roles.around)
    machine = machine_of(roles.generic.op)
    if repeated or rows > columns or rows * (a.free or 1) > FIRST_ROWS * machine.l2_bytes:
        return None
    around = math.prod(extents[d] for d in roles.around)
    terms = math.ceil(product.depth * b.element_bytes / TILE_BYTES) * TILE_BYTES

    def fitting(step: int, column_bytes: int, most: int) -> int:
        tasks = math.ceil(columns / step) * around
        return min(most // (step * column_bytes), tasks // _OWN_TASKS, math.ceil(columns / step)) * step

    wide = max(step, strip)
    most = int(_WHOLE * machine.l2_bytes)
    whole = fitting(wide, terms, most) or fitting(step, terms, most)
    if whole:
        return Own(whole, product.depth)
    if strip <= step and b.free != b.element_bytes:
        return None
    some = min(
        fitting(wide, b.element_bytes, _ROW_LINES * machine.line_bytes),
        fitting(wide, 4 * rows, int(_SUMS * machine.l2_bytes)),
    )
    if not some:
        return None
    tiles = max(1, int(_PART * machine.l2_bytes) // (some * TILE_BYTES))  # of terms
    parts = math.ceil(terms / TILE_BYTES / tiles)
    return Own(some, math.ceil(terms / TILE_BYTES / parts) * TILE_BYTES // b.element_bytes)
