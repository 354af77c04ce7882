"""Lower `stablehlo.triangular_solve` and `stablehlo.cholesky` to loops by substitution.

A triangular system is solved row by row, each row of the right-hand sides at once, so that the
innermost loop runs over contiguous memory when the matrix stands on the left. Cholesky computes one
column after another; the triangle that is not asked for becomes zero, and the other one NaN where
the matrix is not positive definite.

example: test/passes/stablehlo/lower/lower_solvers.mlir
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import flag
from lamina.dialects.vendors import arith, ir, math, tensor
from lamina.dialects.vendors import complex as complex_
from lamina.passes.emit.loops import extract, for_each, for_range, index, insert, replace_each
from lamina.passes.framework.base import Pass
from lamina.passes.linalg.analysis.structure import make_copy


class LowerSolvers(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        self.count(
            "triangular", replace_each(module, "stablehlo.triangular_solve", _triangular_solve)
        )
        self.count("cholesky", replace_each(module, "stablehlo.cholesky", _cholesky))


def _triangular_solve(op: ir.Operation) -> list[ir.Value]:
    a, b = op.operands
    left, lower, unit = (
        ir.BoolAttr(op.attributes[name]).value for name in ("left_side", "lower", "unit_diagonal")
    )
    transpose = str(op.attributes["transpose_a"])
    adjoint = "ADJOINT" in transpose
    # x op(a) = b is op(a)^T x^T = b^T
    swapped = ("NO_TRANSPOSE" not in transpose) == left
    forward = lower != swapped
    *batch, rows, columns = b.type.shape
    if not left:
        rows, columns = columns, rows

    def of_matrix(at: list[ir.Value], i: ir.Value, j: ir.Value) -> ir.Value:
        value = extract(a, [*at, *((j, i) if swapped else (i, j))])
        return _conjugate(value) if adjoint else value

    def place(at: list[ir.Value], i: ir.Value, column: ir.Value) -> list[ir.Value]:
        return [*at, *((i, column) if left else (column, i))]

    def one_system(at: list[ir.Value], carried: list[ir.Value]) -> Sequence[ir.Value]:
        def one_row(step: ir.Value, x: list[ir.Value]) -> Sequence[ir.Value]:
            i = step if forward else arith.SubIOp(index(rows - 1), step).result

            def eliminate(earlier: ir.Value, x: list[ir.Value]) -> Sequence[ir.Value]:
                j = earlier if forward else arith.SubIOp(index(rows - 1), earlier).result
                factor = of_matrix(at, i, j)

                def subtract(column: ir.Value, x: list[ir.Value]) -> Sequence[ir.Value]:
                    known = _multiply(factor, extract(x[0], place(at, j, column)))
                    here = place(at, i, column)
                    return [insert(_subtract(extract(x[0], here), known), x[0], here)]

                return for_range(index(0), index(columns), x, subtract)

            x = for_range(index(0), step, x, eliminate)
            if unit:
                return x
            pivot = of_matrix(at, i, i)

            def divide(column: ir.Value, x: list[ir.Value]) -> Sequence[ir.Value]:
                here = place(at, i, column)
                return [insert(_divide(extract(x[0], here), pivot), x[0], here)]

            return for_range(index(0), index(columns), x, divide)

        return for_range(index(0), index(rows), carried, one_row)

    return for_each(batch, [_copy(b)], one_system)


def _cholesky(op: ir.Operation) -> list[ir.Value]:
    a = op.operands[0]
    lower = flag(op, "lower")
    *batch, size, _ = a.type.shape

    def read(x: ir.Value, at: list[ir.Value], i: ir.Value, j: ir.Value) -> ir.Value:
        """Element i, j of the lower factor."""
        return extract(x, [*at, i, j]) if lower else _conjugate(extract(x, [*at, j, i]))

    def write(
        value: ir.Value, x: ir.Value, at: list[ir.Value], i: ir.Value, j: ir.Value
    ) -> ir.Value:
        return insert(value, x, [*at, i, j]) if lower else insert(_conjugate(value), x, [*at, j, i])

    def one_matrix(at: list[ir.Value], carried: list[ir.Value]) -> Sequence[ir.Value]:
        def one_column(j: ir.Value, factor: list[ir.Value]) -> Sequence[ir.Value]:
            def remainder(i: ir.Value, x: ir.Value) -> ir.Value:
                def less(k: ir.Value, rest: list[ir.Value]) -> Sequence[ir.Value]:
                    product = _multiply(read(x, at, i, k), _conjugate(read(x, at, j, k)))
                    return [_subtract(rest[0], product)]

                return for_range(index(0), j, [read(a, at, i, j)], less)[0]

            pivot = _square_root(remainder(j, factor[0]))
            factor = [write(pivot, factor[0], at, j, j)]

            def below(i: ir.Value, x: list[ir.Value]) -> Sequence[ir.Value]:
                return [write(_divide(remainder(i, x[0]), pivot), x[0], at, i, j)]

            below_diagonal = arith.AddIOp(j, index(1)).result
            return for_range(below_diagonal, index(size), factor, below)

        factor = for_range(index(0), index(size), carried, one_column)
        # A pivot that is NaN makes all later ones NaN.
        last = index(size - 1)
        pivot = read(factor[0], at, last, last)

        def one_row(i: ir.Value, x: list[ir.Value]) -> Sequence[ir.Value]:
            def one_element(j: ir.Value, x: list[ir.Value]) -> Sequence[ir.Value]:
                return [write(_nan_if_nan(pivot, read(x[0], at, i, j)), x[0], at, i, j)]

            return for_range(index(0), arith.AddIOp(i, index(1)).result, x, one_element)

        return for_range(index(0), index(size), factor, one_row)

    zero = hlo.full(0, list(a.type.shape), _dtype(a))
    return for_each(batch, [zero], one_matrix)


def _dtype(value: ir.Value) -> object:
    from lamina.dialects.types import dtype_of

    return dtype_of(value.type)


def _copy(value: ir.Value) -> ir.Value:
    empty = tensor.EmptyOp(list(value.type.shape), value.type.element_type).result
    return make_copy(value, empty).result


def _is_complex(value: ir.Value) -> bool:
    return isinstance(value.type, ir.ComplexType)


def _by_type(
    real: Callable[..., ir.Value], of_complex: Callable[..., ir.Value]
) -> Callable[..., ir.Value]:
    return lambda *values: (of_complex if _is_complex(values[0]) else real)(*values)


_multiply = _by_type(
    lambda x, y: arith.MulFOp(x, y).result, lambda x, y: complex_.MulOp(x, y).result
)
_subtract = _by_type(
    lambda x, y: arith.SubFOp(x, y).result, lambda x, y: complex_.SubOp(x, y).result
)
_divide = _by_type(lambda x, y: arith.DivFOp(x, y).result, lambda x, y: complex_.DivOp(x, y).result)
_conjugate = _by_type(lambda x: x, lambda x: complex_.ConjOp(x).result)


def _nan_if_nan(pivot: ir.Value, value: ir.Value) -> ir.Value:
    """A value, or the pivot where that is NaN."""
    tested = complex_.ReOp(pivot).result if _is_complex(pivot) else pivot
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, tested, tested).result
    return arith.SelectOp(is_nan, pivot, value).result


def _positive_root(value: ir.Value) -> ir.Value:
    """The root of a positive number, NaN for others."""
    zero = arith.ConstantOp(value.type, 0.0).result
    nan = arith.ConstantOp(value.type, float("nan")).result
    positive = arith.CmpFOp(arith.CmpFPredicate.OGT, value, zero).result
    return arith.SelectOp(positive, math.sqrt(value), nan).result


def _square_root(value: ir.Value) -> ir.Value:
    """The root of a number that is real, though its type may be complex."""
    if not _is_complex(value):
        return _positive_root(value)
    part = ir.ComplexType(value.type).element_type
    root = _positive_root(complex_.ReOp(value).result)
    return complex_.CreateOp(value.type, root, arith.ConstantOp(part, 0.0).result).result
