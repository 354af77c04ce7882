"""How the packed product that all products of a type share (product_code.py) divides its work, for a width of
vectors: blocks of sums, packed blocks of factors, tasks, and which factors are read where they lie."""

from __future__ import annotations

from math import ceil, gcd, inf

from lamina.passes.framework.machine import REFERENCE, Machine

DEPTH = 192  # terms at a time, of which packed a and b are in a first cache: how sums are cut is the same everywhere
VECTORS = 2  # of a block's columns
PANEL = 4  # blocks of b that are packed together, which reads lines side by side
_PACKED_BYTES = REFERENCE.l2_bytes // 4  # of a, on a task's stack
_TASK_COLUMNS = 512  # enough to make up for packing a
FEW_TASKS, ENOUGH_TASKS = 4, 16  # shape: so that threads get equal shares; at most, where that is free
_FEW_BLOCKS = 8  # shape: of columns, for which rows of a are not worth packing
_HEIGHTS = {512: 14}  # of blocks, by the width of vectors: sums, those of b and one of a fill the registers
_LEAST_HEIGHT = 6  # shape: rows of a block where vectors leave fewer registers


class Shape:
    """Blocks for a width of vectors, in elements of `bits`; whether the columns of a, and of b, are contiguous."""

    def __init__(self, vector_bits: int, bits: int, a_turned: bool = False, b_turned: bool = False) -> None:
        self.lanes = vector_bits // bits
        self.columns = VECTORS * self.lanes
        self.rows = _HEIGHTS.get(vector_bits, _LEAST_HEIGHT)
        self.heights = (self.rows, self.rows // 2)
        self.bytes = bits // 8
        self.element = {32: "float", 64: "double"}[bits]
        self.vector = f"<{self.lanes} x {self.element}>"
        self.mask = f"<{self.lanes} x i1>"
        self.suffix = f"v{self.lanes}f{bits}"
        self.a_turned, self.b_turned = a_turned, b_turned
        # Of packed a; after a block, there is room for a vector that is stored at its last term.
        self.block = self.rows * DEPTH * self.bytes + REFERENCE.line_bytes
        self.most_rows = _PACKED_BYTES // (DEPTH * self.bytes) // self.rows * self.rows

    def division(self, m: int, n: int, least: int, most: int, in_place: tuple[bool, bool]) -> tuple[int, int, int]:
        """Rows of a task, in whole blocks, and into how many tasks the rows and the columns of a product go, `least`
        in all if it has so many blocks. Tasks for other rows pack b again, those for other columns a, if it is not
        read `in_place`: what is packed less goes into more; where nothing is packed again, into `most`."""
        blocks_of_rows, blocks = ceil(m / self.rows), ceil(n / self.columns)
        chunks, panels = ceil(m / self.most_rows), ceil(n / _TASK_COLUMNS)
        while (tasks := chunks * panels) < min(most, blocks_of_rows * blocks):
            high, wide = m / chunks, n / panels
            by_rows = inf if chunks == blocks_of_rows else 0 if in_place[1] else wide  # what is packed again
            by_columns = inf if panels == blocks else 0 if in_place[0] else high
            if tasks >= least and min(by_rows, by_columns) > 0:
                break
            if by_rows < by_columns or (by_rows == by_columns and wide <= high):
                chunks = min(2 * chunks, blocks_of_rows)
            else:
                panels = min(2 * panels, blocks)
        rows = ceil(blocks_of_rows / chunks) * self.rows
        return rows, ceil(m / rows), panels

    def in_place(self, machine: Machine, lda: int, ldb: int, k: int, columns: int) -> tuple[bool, bool]:
        """Whether whole blocks of a, and of b, are read where they lie, `lda` and `ldb` bytes from one contiguous row
        or column to the next: where the lines that a block needs have places of their own in the first cache, or
        rows of a are read for few columns."""
        terms = min(k, DEPTH)
        if self.a_turned:
            a = _stays(machine, lda, terms, self.rows * self.bytes)
        else:
            a = columns <= _FEW_BLOCKS * self.columns or _stays(machine, lda, self.rows, 1)
        return a, not self.b_turned and _stays(machine, ldb, terms, self.columns * self.bytes)


SHARED = "lamina_product_"
"""What the names of these functions begin with."""


def shared_symbol(element: str, a_turned: bool, b_turned: bool) -> str:
    """The function for a type and order of factors; `backends/cpu/products.py` adds what else decides its code."""
    return SHARED + element + "_" + "".join("t" if turned else "n" for turned in (a_turned, b_turned))


def task_limits(machine: Machine, ns: float, batch: int) -> tuple[int, int]:
    """(least, most) tasks, into which each product of a batch that takes so long in all is to go."""
    if ns < machine.parallel_ns:
        return 1, 1
    return ceil(FEW_TASKS / batch), ceil(min(ENOUGH_TASKS, ns / machine.task_ns) / batch)


def _stays(machine: Machine, stride: int, count: int, width: int) -> bool:
    """Whether the first cache, and what holds the addresses of pages beside it, keep `count` pieces of `width` bytes
    that begin `stride` bytes apart."""
    lines = ceil(width / machine.line_bytes)
    begins = machine.page_bytes // max(machine.line_bytes, gcd(stride, machine.page_bytes))
    sets = min(machine.page_bytes // machine.line_bytes, begins * lines)
    return count * lines <= sets * machine.l1_ways and count * stride <= machine.near_pages * machine.page_bytes
