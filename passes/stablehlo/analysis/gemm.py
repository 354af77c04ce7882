"""Which contractions are (batched) matrix products that a BLAS can read where they lie."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from lamina.dialects.types import element_name
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import DotNumbers
from lamina.records import Record

ELEMENT_TYPES = frozenset(("f32", "f64", "complex<f32>", "complex<f64>"))


class Matrix(Record):
    """One operand's part: rows to columns as BLAS sees them, in row-major memory."""

    transposed: bool
    """Whether the contracting dimension is where BLAS would not expect it (`op(A) = A^T`)."""
    leading: int
    """Elements from a row to the next."""
    batch_strides: tuple[int, ...]
    """Elements from one matrix to the next, for each batch dimension."""


class Gemm(Record):
    """`C[b, m, n] = sum over k of op(A)[b, m, k] op(B)[b, k, n]`, with C dense."""

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix

    @classmethod
    def of(cls, dot: ir.Operation) -> Gemm | None:
        """What a dot_general is as a matrix product; None when it isn't one BLAS can do."""
        lhs, rhs = (operand.type for operand in dot.operands)
        element = element_name(lhs)
        if element not in ELEMENT_TYPES or element_name(rhs) != element:
            return None
        if element_name(dot.result.type) != element:
            return None
        return cls.of_types(lhs, rhs, DotNumbers.of(dot))

    @property
    def is_counted_by_blas(self) -> bool:
        """Whether all sizes are numbers of 32 bits, which is what BLAS counts with."""
        return max(self.m, self.n, self.k, self.a.leading, self.b.leading) < 1 << 31

    def batch_stride(self, matrix: Matrix) -> int | None:
        """Elements from one of all products' matrices to the next, 0 where there is one; None where the distances
        differ."""
        found = _collapsed(list(zip(self.batch, matrix.batch_strides, strict=True)))
        return None if found is None else found[1] if prod(self.batch) > 1 else 0

    @classmethod
    def of_types(cls, lhs: ir.Type, rhs: ir.Type, numbers: DotNumbers) -> Gemm | None:
        """The same, from shapes and numbers alone, for any element type."""
        return _gemm(tuple(lhs.shape), tuple(rhs.shape), numbers)


@lru_cache(512)
def _gemm(left: tuple[int, ...], right: tuple[int, ...], numbers: DotNumbers) -> Gemm | None:
    if 0 in left or 0 in right:
        return None
    a = _matrix(left, numbers.lhs_batch, numbers.lhs_free(len(left)), numbers.lhs_contracting)
    b = _matrix(right, numbers.rhs_batch, numbers.rhs_contracting, numbers.rhs_free(len(right)))
    if a is None or b is None:
        return None
    return Gemm(
        batch=tuple(left[d] for d in numbers.lhs_batch),
        m=prod(left[d] for d in numbers.lhs_free(len(left))),
        n=prod(right[d] for d in numbers.rhs_free(len(right))),
        k=prod(left[d] for d in numbers.lhs_contracting),
        a=a,
        b=b,
    )


def _matrix(
    shape: tuple[int, ...], batch: tuple[int, ...], rows: tuple[int, ...] | list[int],
    columns: tuple[int, ...] | list[int],
) -> Matrix | None:  # fmt: skip
    """Rows and columns as one dimension each, one of them contiguous; None if they aren't."""
    strides = _strides(shape)
    row = _collapsed([(shape[d], strides[d]) for d in rows])
    column = _collapsed([(shape[d], strides[d]) for d in columns])
    if row is None or column is None:
        return None
    batch_strides = tuple(strides[d] for d in batch)
    (row_size, row_stride), (column_size, column_stride) = row, column
    if column_size == 1 or column_stride == 1:
        # A row of one matrix must not be shorter than its leading dimension says.
        leading = row_stride if row_size > 1 else column_size
        if leading >= column_size:
            return Matrix(False, leading, batch_strides)
    if row_size == 1 or row_stride == 1:
        leading = column_stride if column_size > 1 else row_size
        if leading >= row_size:
            return Matrix(True, leading, batch_strides)
    return None


def _strides(shape: tuple[int, ...]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return strides[::-1]


def _collapsed(dims: list[tuple[int, int]]) -> tuple[int, int] | None:
    """(size, stride) of dimensions walked as one, in their order; None if no stride does it."""
    size, stride = 1, 1
    for inner_size, inner_stride in reversed(dims):
        if inner_size == 1:
            continue
        if size > 1 and inner_stride != size * stride:
            return None
        if size == 1:
            stride = inner_stride
        size *= inner_size
    return size, stride
