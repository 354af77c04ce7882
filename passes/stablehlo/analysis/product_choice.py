"""Who does a matrix product: code for its shape, the packed product that all of a type share, or a BLAS.

Each is given the time that it takes on the module's machine (`passes/framework/machine.py`), by the rates of square
products; the least decides. Element-wise ops around a product count: code for the shape has them in its loops, the
packed one around its tiles (kernels/cpu/gemm/multiply_tiles.py), the library reads and writes memory for them.
"""

from __future__ import annotations

import math
from math import prod
from typing import Literal, TypeAlias, cast, get_args

from lamina.dialects.attributes import MATRIX_PRODUCTS, string_of
from lamina.dialects.types import element_name
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.machine import REFERENCE, Machine
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.stablehlo.analysis.facts import computes_elements, defining, has_one_use
from lamina.passes.stablehlo.analysis.gemm import Gemm
from lamina.records import Record

BLAS = "openblas.gemm"
SHARED_PRODUCT = "lamina.product"
"""The library whose one function does all products of a type: `backends/cpu/products.py`."""

Implementation: TypeAlias = Literal["auto", "kernel", "shared", "library"]
"""Who does matrix products: the fastest, code generated for the shape, the packed product that all products of a
type share wherever it can, or a library wherever it can."""

_LEAST_PRODUCTS = 4096  # shape: fewer are over before a call has begun
_SKINNY = 15  # rows or columns: then memory limits, and BLAS reads with one core
_LEAST_COMPILED = 1 << 20  # code: with fewer in all of a batch, it takes longer to compile than it saves
_LEAST_TERMS = 16  # shape: rows, columns or terms: with fewer, blocks of code for a shape are not full
_LEAST_PACKED = 32  # shape: rows, columns or terms: with fewer, packing both factors takes longest
_WORTH_LIBRARY = 0.95  # shape: of ours: its threads wait by spinning, which costs where others run, too
_WORTH_CODE = 0.87  # code: of the packed product's time: that takes 1 ms to compile, code for a shape some 50
_WORTH_TILES = 0.03  # code: of the product's time: what less than that is gained takes some 7 ms more to compile
_KEPT = 1 / 2  # memory: of a second cache, beside what else is in it
_LIBRARY_PACKS = 1 << 18  # shape: products beyond which OpenBLAS packs factors and shares the work
_LAID_OUT = 2  # times, that a transposed right factor goes through memory where code for the shape copies it


class Products(Record):
    """What decides who does the matrix products of a module."""

    by: Implementation = "auto"
    machine: Machine = REFERENCE

    @classmethod
    def of(cls, op: ir.Module | ir.Operation) -> Products:
        """As a module, or a control kernel, and its machine say."""
        return cls(implementation_of(op.operation), machine_of(op))

    def library_of(self, dot: ir.Operation) -> str | None:
        """What does a `dot_general` as a whole: BLAS, SHARED_PRODUCT, or None for code of its own."""
        gemm = None if self.by == "kernel" else Gemm.of(dot)
        if gemm is None or not gemm.is_counted_by_blas:
            return None
        element, by = element_name(dot.operands[0].type), self.by
        outside, makes_right = elements_outside(dot)
        is_alone = not outside  # else its tiles are in a kernel with what is around it
        if by == "auto":
            by = choose_implementation(gemm, element, self.machine, outside, makes_right)
            is_alone = not _gains_by_tiles(gemm, element, self.machine, outside)
        if by == "library":
            return BLAS
        return SHARED_PRODUCT if by == "shared" and is_alone and can_be_shared(gemm, element) else None


def choose_implementation(
    gemm: Gemm, element: str, machine: Machine, outside: int = 0, makes_right: bool = False
) -> Literal["kernel", "shared", "library"]:
    """Which of the three is fastest for a product in whose place code for its shape keeps `outside` elements, of all
    its batch, out of memory, and may make the right factor as it goes."""
    if not _is_worth_a_call(gemm, element):
        return "kernel"
    if element not in ("f32", "f64") or min(gemm.m, gemm.n, gemm.k) < _LEAST_TERMS:
        return "library"
    kernel, shared, library = (
        _time(gemm, element, machine, by, outside, makes_right) for by in ("kernel", "shared", "library")
    )
    if library < _WORTH_LIBRARY * min(shared, kernel):
        return "library"
    return "kernel" if kernel < _WORTH_CODE * shared else "shared"


def is_done_in_tiles(gemm: Gemm, element: str, machine: Machine, by: Implementation) -> bool:
    """Whether a product that no library does, with what follows it, is done by the packed product, tile by tile,
    rather than by code for its shape."""
    if by != "auto":
        return by == "shared" and can_be_shared(gemm, element)
    if not _is_worth_a_call(gemm, element):
        return False
    kernel, shared = (_time(gemm, element, machine, by) for by in ("kernel", "shared"))
    return kernel >= _WORTH_CODE * shared


def _is_worth_a_call(gemm: Gemm, element: str) -> bool:
    return gemm.m * gemm.n * gemm.k > _LEAST_PRODUCTS and not _is_skinny(gemm, element)


def _time(
    gemm: Gemm, element: str, machine: Machine, by: Literal["kernel", "shared", "library"], outside: int = 0,
    makes_right: bool = False,
) -> float:  # fmt: skip
    """Nanoseconds of one product of the batch on a core, by rates of square products; infinite where it can't be
    done so, or is too small to be."""
    products, bytes_each = gemm.m * gemm.n * gemm.k, _bytes(element)
    size = products ** (1 / 3)
    if by == "kernel":
        if products * prod(gemm.batch) < _LEAST_COMPILED:
            return math.inf
        # By the right factor, which it reads again and again.
        time = 2 * products / machine.rate(element, "code", math.sqrt(gemm.n * gemm.k))
        if gemm.a.transposed:
            time *= machine.transposed_percent / 100
        if gemm.b.transposed and not makes_right:
            time += _LAID_OUT * gemm.n * gemm.k * bytes_each / machine.pack_bytes_per_us * 1000
        return time
    # What products that are no cubes read and write more than cubes, whose rates are known: the library packs it, if
    # they are not few, the packed product reads most of it where it lies.
    more = (gemm.n * gemm.k + gemm.m * gemm.k + gemm.m * gemm.n - 3 * size**2) * bytes_each * 1000
    if by == "library":
        packing = more / machine.pack_bytes_per_us if products > _LIBRARY_PACKS else 0
        return 2 * products / machine.rate(element, by, size) + packing + _storing(gemm, element, machine, outside)
    if not can_be_shared(gemm, element) or min(gemm.m, gemm.n, gemm.k) < _LEAST_PACKED:
        return math.inf
    return 2 * products / machine.rate(element, by, size) + more / machine.stream_bytes_per_us


def _gains_by_tiles(gemm: Gemm, element: str, machine: Machine, outside: int) -> bool:
    """Whether it pays to do what is around a packed product tile by tile."""
    return _storing(gemm, element, machine, outside) > _WORTH_TILES * _time(gemm, element, machine, "shared")


def _bytes(element: str) -> int:
    return 4 if element == "f32" else 8


def _storing(gemm: Gemm, element: str, machine: Machine, outside: int) -> float:
    """Nanoseconds, for each product of the batch, of storing so many elements and reading them again: none where all
    stay in a second cache, as tiles do."""
    if outside * _bytes(element) <= _KEPT * machine.l2_bytes:
        return 0
    stored = outside * _bytes(element) / prod(gemm.batch)
    bytes_per_us = machine.cached_bytes_per_us if stored < machine.l2_bytes else machine.stream_bytes_per_us
    return 2 * stored / bytes_per_us * 1000


def elements_outside(dot: ir.Operation) -> tuple[int, bool]:
    """(how many elements code for a product's shape keeps out of memory, whether the right factor is among them):
    factors that an element-wise op makes for it alone, and sums that one alone reads."""
    makers = [defining(operand) for operand in dot.operands]
    made = [maker is not None and computes_elements(maker) and has_one_use(maker.results[0]) for maker in makers]
    count = sum(prod(operand.type.shape) for operand, is_made in zip(dot.operands, made) if is_made)
    sums = dot.results[0]
    if has_one_use(sums) and computes_elements(next(iter(sums.uses)).owner.operation):
        count += prod(sums.type.shape)
    return count, made[1]


def can_be_shared(gemm: Gemm, element: str) -> bool:
    """Whether the packed product that all of a type share can do it."""
    return element in ("f32", "f64") and None not in (gemm.batch_stride(gemm.a), gemm.batch_stride(gemm.b))


def implementation_of(op: ir.Operation) -> Implementation:
    """Who does the matrix products of a module or a control kernel, by its attribute."""
    found = string_of(op, MATRIX_PRODUCTS)
    if found in ("", *get_args(Implementation)):
        return cast(Implementation, found or "auto")
    raise CompileError.at(
        op, f"{MATRIX_PRODUCTS} is {found!r}; expected one of {', '.join(get_args(Implementation))}"
    )


def _is_skinny(gemm: Gemm, element: str) -> bool:
    least, most = sorted((gemm.m, gemm.n))
    if element not in ("f32", "f64") or least > _SKINNY:
        return False
    if most == 1:
        return True  # a sum
    if gemm.n == 1 and gemm.a.transposed and gemm.m <= _SKINNY:
        return False  # a few sums side by side
    return least == 1 or not (gemm.b if gemm.m < gemm.n else gemm.a).transposed
