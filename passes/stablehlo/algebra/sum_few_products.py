"""Sum the products of a matrix with a few columns as reductions, which compute the matrix on the way.

    %e = exp(%a)                            %e = exp(%a)
    %r = dot_general(%e, %b)         ->     %r0 = sum over k of %e * spread(%b[:, 0]);  %r1 = ... %b[:, 1]
      : (f32[m,k], f32[k,2])                %r = concatenate(%r0, %r1)

A product with a vector or a few of them does as much reading as computing: what makes the matrix, element by
element, is best done in its loop, and all sums in one walk (`stablehlo-fuse`, `linalg-fuse-reductions`). So
for f32 and f64 where nothing but such products and reductions read what is made; and for matrices in memory whose
rows are summed, of which each vector of a row serves all columns. A matrix of bf16, f16 or narrower is always one
that is made: converted to f32, in which products of these are summed. Products of complex numbers with a vector are
such sums, too, of their parts, which reads memory at full speed where libraries do not. So is a product of two
vectors of which one is made, or read at a traced place. Leaves alone small matrices, and batches.

example: test/passes/stablehlo/algebra/sum_few_products.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.algebra.keep_products_small import sum_of_products
from lamina.passes.stablehlo.analysis.facts import DotNumbers, computes_elements, defining, size_of
from lamina.passes.stablehlo.analysis.product_choice import implementation_of
from lamina.passes.stablehlo.canonicalize.rewriting import replace
from lamina.passes.stablehlo.fusion.fuse_ops import LEAVES

_REDUCE, _PRODUCT = "stablehlo.reduce", "stablehlo.dot_general"
_TILED_COLUMNS = 8  # of bf16, for which processors have tiles


class SumFewProducts(Pass):
    """The pass `stablehlo-sum-few-products`."""

    only_with = frozenset(("stablehlo.dot_general",))

    most_columns: int = 8  # rounding
    least_made: int = 1 << 14  # rounding
    """Elements of a matrix that is made on the way."""
    least_read: int = 1 << 17  # rounding
    """Of one in memory: reading less takes no longer than to begin."""

    least_complex: int = 1 << 10  # rounding
    """Elements of a complex matrix or vector that is multiplied by a vector."""

    def run(self, module: ir.Module) -> None:
        if implementation_of(module.operation) == "library":
            return
        sides = [(op, self._matrix_of(op)) for op in find_ops(module, _PRODUCT)]
        for op, side in sides:
            if side is not None:
                with ir.InsertionPoint(op), op.location:
                    wide = _widened(op)
                    sums = self._sums(wide, side)
                    if wide != op:
                        sums = hlo.convert(sums, dtype_of(op.results[0].type))
                        wide.erase()
                    replace(op, [sums])
                self.count("products")

    def _matrix_of(self, dot: ir.Operation) -> int | None:
        """Which operand is the matrix, if the other has few columns and sums are the better."""
        if self._is_one_sum(dot):
            return 0
        for side in (0, 1):
            if self._is_complex_with_vector(dot, side):
                return side
            if not self._has_few_columns(dot, side):
                continue
            matrix = dot.operands[side]
            if matrix.type.element_type != _sum_of(dot):
                if self._sums_converted(dot, side):
                    return side
                continue
            maker = defining(matrix)
            if maker is not None and computes_elements(maker) and size_of(matrix.type) >= self.least_made:
                if all(self._sums_up(use.owner.operation, matrix) for use in matrix.uses):
                    return side
            if size_of(matrix.type) >= self.least_read and self._sums_rows_in_memory(dot, side):
                return side
        return None

    def _is_one_sum(self, dot: ir.Operation) -> bool:
        """Whether a product is of two vectors of which one is made on the way or read at a traced place."""
        types = [value.type for value in dot.operands]
        return (
            all(of.rank == 1 and of.has_static_shape for of in types)
            and DotNumbers.of(dot).lhs_contracting == (0,)
            and _sum_of(dot) == types[0].element_type == types[1].element_type
            and any(map(_is_made, dot.operands))
        )

    def _has_few_columns(self, dot: ir.Operation, side: int) -> bool:
        numbers = DotNumbers.of(dot)
        matrix, columns = dot.operands[side], dot.operands[1 - side]
        return (
            not numbers.lhs_batch
            and len(numbers.lhs_contracting) == 1
            and _sum_of(dot) is not None
            and all(of.type.has_static_shape for of in dot.operands)
            and len(matrix.type.shape) > 1
            and len(columns.type.shape) <= 2
            and _count(dot, side) <= self.most_columns
            and _count(dot, side) * size_of(columns.type) < size_of(matrix.type)
        )

    def _sums_converted(self, dot: ir.Operation, side: int) -> bool:
        """Whether sums are the better for a matrix of narrow numbers: by one column in any layout, else where
        rows are summed, and tiles don't do it."""
        matrix, count = dot.operands[side].type, _count(dot, side)
        if size_of(matrix) < self.least_read:
            return False
        has_tiles = count >= _TILED_COLUMNS and isinstance(matrix.element_type, ir.BF16Type)
        return count == 1 or (self._sums_rows_in_memory(dot, side) and not has_tiles)

    def _is_complex_with_vector(self, dot: ir.Operation, side: int) -> bool:
        numbers = DotNumbers.of(dot)
        types = [of.type for of in (*dot.operands, dot.results[0])]
        return (
            isinstance(types[0].element_type, ir.ComplexType)
            and all(of.element_type == types[0].element_type and of.has_static_shape for of in types)
            and not numbers.lhs_batch
            and len(numbers.lhs_contracting) == 1
            and types[1 - side].rank <= 2
            and _count(dot, side) == 1
            and size_of(types[side]) >= self.least_complex
        )

    def _sums_up(self, user: ir.Operation, matrix: ir.Value) -> bool:
        if user.name == _REDUCE:
            return True
        if user.name != _PRODUCT:
            return False
        return any(
            user.operands[side] == matrix and user.operands[1 - side] != matrix
            and self._has_few_columns(user, side)
            for side in (0, 1)
        )  # fmt: skip

    @staticmethod
    def _sums_rows_in_memory(dot: ir.Operation, side: int) -> bool:
        matrix = dot.operands[side]
        (summed,) = DotNumbers.of(dot).contracting(side)
        return summed == len(matrix.type.shape) - 1 and _count(dot, side) > 1

    @staticmethod
    def _sums(dot: ir.Operation, side: int) -> ir.Value:
        columns = dot.operands[1 - side]
        if len(columns.type.shape) == 1:
            return sum_of_products(dot, side, columns)
        (summed,) = DotNumbers.of(dot).contracting(1 - side)
        length, count = columns.type.shape[summed], _count(dot, side)
        shape = list(dot.results[0].type.shape)
        place = len(shape) - 1 if side == 0 else 0
        if count == 1:
            return hlo.reshape(sum_of_products(dot, side, hlo.reshape(columns, [length])), shape)
        parts = []
        for number in range(count):
            starts, ends = [0, 0], [length, length]
            starts[1 - summed], ends[1 - summed] = number, number + 1
            column = hlo.reshape(hlo.slice(columns, starts, ends, [1, 1]), [length])
            total = sum_of_products(dot, side, column)
            parts.append(hlo.reshape(total, [*shape[:place], 1, *shape[place + 1 :]]))
        return hlo.concatenate(parts, place)


def _is_made(value: ir.Value) -> bool:
    maker = defining(value)
    while maker is not None and maker.name == "stablehlo.reshape":
        maker = defining(maker.operands[0])
    return maker is not None and (computes_elements(maker) or maker.name in LEAVES)


def _count(dot: ir.Operation, side: int) -> int:
    """How many columns the other operand has."""
    columns = dot.operands[1 - side]
    (summed,) = DotNumbers.of(dot).contracting(1 - side)
    return size_of(columns.type) // max(1, columns.type.shape[summed])


def _sum_of(dot: ir.Operation) -> ir.Type | None:
    """The type that products are summed in: that of all, or f32 for narrower floats; None for other types."""
    types = [value.type.element_type for value in (*dot.operands, *dot.results)]
    if all(isinstance(of, ir.F64Type) for of in types):
        return types[0]
    if all(isinstance(of, ir.FloatType) and of.width <= 32 for of in types):
        return ir.F32Type.get()
    return None


def _widened(dot: ir.Operation) -> ir.Operation:
    """The product in the type that it is summed in."""
    element, (result,) = _sum_of(dot), dot.results
    if element is None or all(of.type.element_type == element for of in (*dot.operands, result)):
        return dot  # complex numbers are, too
    type_ = ir.RankedTensorType.get(result.type.shape, element)
    of = dtype_of(type_)
    return remade(dot, [type_], [x if x.type.element_type == element else hlo.convert(x, of) for x in dot.operands])
