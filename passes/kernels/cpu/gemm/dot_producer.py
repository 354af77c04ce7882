"""The fused producer of a factor of a dot-product GEMM: a task computes the part it reads, on its stack."""

from __future__ import annotations

from lamina.dialects.vendors import ir, memref
from lamina.passes.emit.loops import index
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.dot_factors import Position, Rows
from lamina.passes.kernels.cpu.gemm.dot_instructions import TILE_ROWS
from lamina.passes.kernels.cpu.gemm.epilogue import can_be_done_together
from lamina.passes.kernels.cpu.gemm.narrow_products import NarrowProduct
from lamina.passes.kernels.cpu.gemm.prologue import Prologue, find_prologue
from lamina.passes.linalg.analysis.structure import places_of, stride_along
from lamina.records import Record

_MADE = 1 / 16  # of the second cache: rows that a task makes


class Making(Record):
    """What makes the second factor of a product, or of a turned one the first."""

    product: NarrowProduct
    prologue: Prologue

    @staticmethod
    def of(product: NarrowProduct, last: ir.Operation) -> Making | None:
        """That of a product, if it can be done in front of the last op."""
        factor = product.a if product.is_turned else product.b
        if factor.widening is None or len(product.roles.reduced) != 1:
            return None
        made = find_prologue(factor.widening, factor.factor)
        if made is None:
            return None
        own = [made.generic.op, factor.widening, product.roles.generic.op, last]
        return Making(product, made) if can_be_done_together(own, last) else None

    @property
    def rows(self) -> int | None:
        """The rows of a task that makes them; None if they are columns, or would leave some."""
        product, step = self.product, 2 * TILE_ROWS
        most = int(_MADE * machine_of(product.roles.generic.op).l2_bytes)
        rows = step * max(1, most // (step * product.depth * product.element_bytes))
        return rows if product.is_turned and product.roles.generic.extents[product.roles.row] % rows == 0 else None

    def make(
        self, position: Position, some: tuple[int, ir.Value, int], begin: ir.Value | None, terms: int
    ) -> Rows:
        """The part of the factor that begins at a place of a dimension, so many from there on, and at a term."""
        free, start, count = some
        roles, factor = self.product.roles, self.prologue.factor
        (depth,) = roles.reduced
        begin = index(0) if begin is None else begin
        sizes = dict.fromkeys(roles.around, 1) | {free: count, depth: terms}
        type_ = ir.MemRefType(factor.buffer.type)
        shape = [sizes[d] for d in places_of(factor.map)]
        buffer = memref.AllocOp(ir.MemRefType.get(shape, type_.element_type), [], []).result
        self.prologue.emit(buffer, {**position, free: start, depth: begin}, sizes)
        size = self.product.element_bytes
        strides = {d: stride_along(buffer, factor.map, d) * size for d in (free, depth)}
        return Rows(buffer, {}, strides[free], strides[depth], size, (start, begin))
