"""Which contractions are (batched) matrix products that a BLAS can read where they lie."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Literal, TypeAlias, cast, get_args

from lamina.dialects.attributes import MATRIX_PRODUCTS, string_of
from lamina.dialects.types import element_name
from lamina.dialects.vendors import ir
from lamina.passes.base import CompileError
from lamina.passes.stablehlo.facts import DotNumbers, computes_elements, defining, has_one_use
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


_LEAST_LIBRARY_PRODUCTS = 4096
_BLOCKED_PRODUCTS = (1 << 20, 1 << 27)  # of one matrix product, where ours is the faster
_BLOCKED_BATCH = 4  # or that many products, each below the upper bound
_BLOCKED_BYTES = 5 << 19  # of the right matrix, which is read again for each block of rows
_BLOCKED_DEPTH = 1024  # of large ones: a block's rows of the left matrix stay in the first cache
_BLOCKED_ROWS, _BLOCKED_ROWS_BYTES = 128, 1 << 22  # so few rows read a larger one seldom enough
_LAID_OUT_ROWS = 128  # enough for laying out a right matrix that is no larger than the left one
_PANEL_ROWS, _PANEL_COLUMNS = 192, 128  # so few rows take panels of a right matrix of any size
_TURNED_ROWS = 128  # where the panels are turned, too
_MOST_WIDE_PRODUCTS = 1 << 33  # of f64, with panels for any rows
_LAID_OUT_ELEMENTS = 1 << 19  # of smaller ones that does not matter
_DEEP_BYTES = 3 << 19  # of a right matrix with more terms than that
_LARGE = 1 << 24
_SKINNY = 15  # rows or columns: then memory limits, and BLAS reads with one core
_NARROW, _LEAST_NARROW = 128, 1 << 17  # columns of which one row's sums are the library's, up to so many elements


SHARED_PRODUCT = "lamina.product"
"""The library whose one function does all products of a type: `backends/cpu/products.py`."""
_SHARED_ROWS, _SHARED_COLUMNS, _SHARED_TERMS = 156, 128, 32  # fewer are code for their shape

Doers: TypeAlias = Literal["auto", "kernel", "library"]
"""Who does matrix products: the faster, code that we generate, or a library wherever it can."""


def doers_of(op: ir.Operation) -> Doers:
    """Who does the matrix products of a module or a control kernel, by its attribute."""
    found = string_of(op, MATRIX_PRODUCTS)
    if found in ("", "auto", "kernel", "library"):
        return cast(Doers, found or "auto")
    raise CompileError.at(
        op, f"{MATRIX_PRODUCTS} is {found!r}; expected one of {', '.join(get_args(Doers))}"
    )


def makes_right_factor(dot: ir.Operation) -> bool:
    """Whether an element-wise op makes the right factor for a product alone."""
    maker = defining(dot.operands[1])
    return maker is not None and computes_elements(maker) and has_one_use(maker.results[0])


def stands_alone(dot: ir.Operation) -> bool:
    """Whether no element-wise op makes a factor for a product alone, and none alone reads its sums."""
    makers = [defining(operand) for operand in dot.operands]
    if any(maker is not None and computes_elements(maker) and has_one_use(maker.results[0]) for maker in makers):
        return False
    sums = dot.results[0]
    return not has_one_use(sums) or not computes_elements(next(iter(sums.uses)).owner.operation)


def is_shared_product(gemm: Gemm, element: str) -> bool:
    """Whether a product that stands alone is a call of the function that all of a type share, which takes nothing
    to compile.

    Where rows and columns are many it is within 7 % of code for the shape: GFLOP/s of one Zen 5 core (code for the
    shape, JAX 0.12) at 512 108 (108, 108), 800 111 (113, 105), 1024 101 (104, 106), 2048 104 (92, 87), 600x700x650
    105 (110, 98), 1400x600x600 104 (101, 104), 2300x260x700 110 (107, 93), 3600x128x128 109 (111, 84).
    """
    if element != "f64" or gemm.batch or gemm.a.transposed or gemm.b.transposed:
        return False
    if gemm.m < _SHARED_ROWS or gemm.n < _SHARED_COLUMNS or gemm.k < _SHARED_TERMS:
        return False
    return _BLOCKED_PRODUCTS[0] <= gemm.m * gemm.n * gemm.k <= _MOST_WIDE_PRODUCTS


def library_wins(gemm: Gemm, element: str, made: bool = False) -> bool:
    """Whether BLAS does a product faster than the code we generate for it; `made` says that this makes the
    right factor on the way.

    Measured with OpenBLAS on one AVX-512 core: 57 to 97 GFLOP/s at size 64 (ours 106 to 141), 148
    at 256 (171), 136 at 512 (150 to 168), 160 at 2048 (146), 119 for 128x512x512 (150 to 167); a
    call of it costs a tenth of our code to compile. Products with a vector or a few rows are
    limited by memory, which ours reads with all cores: 1x1024x1024 311 us (OpenBLAS 562, JAX 377),
    1024x1024x1 85 (305, 234), 8x4096x512 451 (958, 821), on a busy machine; in a loop, of f64 on Zen 5,
    64x64x1 0.13 us (0.19), 200x160x1 1.42 (2.15), 256x256x1 2.43 (4.38), 1x256x256 4.14 (4.86), 8x128x128 2.31
    (2.77), but 1x300x64 1.22 (1.05). There, too: 32x1024x1024 419
    (782), 128x1024x1024 1165 (1364), 128x2048x128 379 (486); with a transposed right matrix 256x256x256
    163 (208), 512x64x512 257 (253), 100x300x500 310 (202). Panels of a large right matrix (`linalg-multiply-panels`)
    are faster for some rows: of one core's time 16x1024x4096 1470 (2530), 32x4096x1024 2330 (3310), 64x1024x1024
    890 (1120), 128x2048x2048 7560 (9520), 192x2048x2048 11200 (12600), and no more for 256x1024x1024 3440 (3600).
    So is a transposed one, of which panels are turned: 16x1024x1024 444 (678), 32x2048x2048 2375 (3177),
    64x512x2048 1049 (1293), 128x1024x1024 1913 (2179), and no more for 192x2048x2048 12674 (12212). What is made
    panel by panel is laid out by the way for any rows.

    Of f64, panels are faster for any rows that lie contiguous: GFLOP/s of one Zen 5 core (OpenBLAS, JAX 0.12) at
    512 98 (87, 99), 800 106 (91, 102), 1024 106 (96, 103), 2048 100 (102, 84), 1400x600x600 109 (92, 107); with a
    transposed right matrix 800 114 (93, 109), 1024 103 (97, 107), 600x1400x600 100 (91, 102). With a transposed
    left matrix they are not: 73 (94, 55) at 1024.
    """
    if made and gemm.m > _SKINNY:
        gemm = replace(gemm, b=replace(gemm.b, transposed=False))
    products = gemm.m * gemm.n * gemm.k
    if products <= _LEAST_LIBRARY_PRODUCTS or _is_skinny(gemm, element):
        return False
    if element not in ("f32", "f64") or min(gemm.m, gemm.n, gemm.k) < 16:
        return True
    least, most = _BLOCKED_PRODUCTS
    if not gemm.batch and products >= least:
        rows = _TURNED_ROWS if gemm.b.transposed and gemm.n * gemm.k > _LAID_OUT_ELEMENTS else _PANEL_ROWS
        if element == "f64" and not gemm.a.transposed and products <= _MOST_WIDE_PRODUCTS:
            rows = gemm.m
        if gemm.m <= rows and gemm.n >= _PANEL_COLUMNS:
            return False
    if gemm.b.transposed and not gemm.batch:
        if gemm.m < max(_LAID_OUT_ROWS, gemm.n) or products > _LARGE:
            return True
    bytes_of_b = gemm.n * gemm.k * (4 if element == "f32" else 8)
    if products > _LARGE and gemm.k > _BLOCKED_DEPTH and bytes_of_b > _DEEP_BYTES:
        return True
    many = prod(gemm.batch) >= _BLOCKED_BATCH and products * prod(gemm.batch) >= least
    blocked = (many or products >= least) and products <= most
    few = gemm.m <= _BLOCKED_ROWS and gemm.k <= _BLOCKED_DEPTH
    return not (blocked and bytes_of_b <= (_BLOCKED_ROWS_BYTES if few else _BLOCKED_BYTES))


def _is_skinny(gemm: Gemm, element: str) -> bool:
    least, most = sorted((gemm.m, gemm.n))
    if element not in ("f32", "f64") or least > _SKINNY:
        return False
    if most == 1:
        return True  # a sum
    by_columns = gemm.a.transposed if gemm.m > gemm.n else not gemm.b.transposed
    if least == 1 and by_columns and most < _NARROW and most * gemm.k < _LEAST_NARROW and gemm.k >= 2 * most:
        return False
    if gemm.n == 1 and gemm.a.transposed and gemm.m <= _SKINNY:
        return False  # a few sums side by side
    return least == 1 or not (gemm.b if gemm.m < gemm.n else gemm.a).transposed


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
