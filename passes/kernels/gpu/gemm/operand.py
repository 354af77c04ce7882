"""Reading the elements of a product's factor for a block's tile, with what is done on them first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import index, load
from lamina.passes.kernels.gpu.device.padding import load_padded
from lamina.passes.kernels.gpu.device.threads import below, positions, zero_of
from lamina.passes.kernels.gpu.gemm.reading import Factor, Product
from lamina.passes.linalg.analysis.affine_indices import indices
from lamina.passes.linalg.schedule.padding import Padding, find_padding
from lamina.records import Record


def plus(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """The sum of two indices."""
    if isinstance(b, int):
        if b == 0:
            return a
        b = index(b)
    return arith.AddIOp(a, b).result


def times(a: ir.Value, b: int) -> ir.Value:
    """An index times a constant."""
    return a if b == 1 else arith.MulIOp(a, index(b)).result


def over(a: ir.Value, b: int) -> ir.Value:
    """An index divided by a constant."""
    return a if b == 1 else arith.DivUIOp(a, index(b)).result


def modulo(a: ir.Value, b: int) -> ir.Value:
    """The rest of that division."""
    return index(0) if b == 1 else arith.RemUIOp(a, index(b)).result


class Bounds(Record):
    """Where a factor's elements end, and whether tiles reach beyond that."""

    rows: int
    depth: int
    rows_exceed: bool
    depth_exceeds: bool


class Operand:
    """A factor as a block sees it: rows from `begin` on, at the block's place in the batch."""

    def __init__(
        self,
        product: Product,
        factor: Factor,
        replaced: Mapping[ir.Value, ir.Value],
        batch: Mapping[int, ir.Value],
        begin: ir.Value,
        bounds: Bounds,
        ops: Sequence[ir.Operation],
        narrow: bool = False,
    ) -> None:
        """`ops` are those of the body that are done before an element is put into a tile. `narrow`:
        elements of padded copies are taken before they are converted."""
        self.product, self.factor, self.replaced = product, factor, replaced
        self.batch, self.begin, self.bounds, self.ops = batch, begin, bounds, ops
        self.narrow = narrow
        self.padding = find_padding(factor.buffer, product.generic)

    def position(
        self, row: ir.Value, k: ir.Value, rows: int = 1
    ) -> tuple[list[ir.Value], ir.Value | None]:
        """The indices of the element in a row of the tile at a depth, and whether it is there; None
        if that is sure. The indices are valid in any case, for that many rows from there on."""
        extents = self.product.generic.extents
        row = plus(self.begin, row)
        if self.bounds.rows_exceed:
            row = arith.MinUIOp(row, index(self.bounds.rows - rows)).result
        there = None
        if self.bounds.depth_exceeds:
            there = below(k, self.bounds.depth)
            k = arith.SelectOp(there, k, index(0)).result
        at = dict(self.batch)
        for value, dimensions in ((row, self.factor.along), (k, self.product.reduced)):
            at |= zip(dimensions, positions(value, [extents[d] for d in dimensions]))
        return indices(self.factor.map, at), there

    @property
    def buffer(self) -> ir.Value:
        """What is read from: behind any padding."""
        value = self.factor.buffer if self.padding is None else self.padding.source
        return self.replaced.get(value, value)

    def raw(self, row: ir.Value, k: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        """The element before any op of the body, and whether it counts; None if that is sure."""
        places, there = self.position(row, k)
        if self.padding is None:
            return load(self.buffer, places), there
        value = load_padded(self.padding, self.buffer, places, self.replaced, self.narrow)
        return value, there

    def element(self, row: ir.Value, k: ir.Value) -> ir.Value:
        """The element as it goes into a tile; zero beyond the depth."""
        value, there = self.raw(row, k)
        value = self.finished(value)
        if there is None:
            return value
        return arith.SelectOp(there, value, zero_of(value.type)).result

    def finished(self, value: ir.Value) -> ir.Value:
        """What the body's ops make of an element."""
        if not self.ops:
            return value
        argument = self.product.generic.body.arguments[self.factor.number]
        known = {**self.replaced, argument: value}
        for op in self.ops:
            value = copied(op, known).results[0]
        return value


def padded_source(product: Product, factor: Factor) -> Padding | None:
    """What a factor is a padded copy of, if it is one."""
    return find_padding(factor.buffer, product.generic)
