"""Reading a bufferised `linalg.generic` as a contraction c += a * b, and choosing its blocks.

Of the dimensions, the column is contiguous in c and absent from a (b is contiguous along it, or is
laid out so first); the row is absent from b; other parallel dimensions, batches among them, are
walked around the blocks. Factors of narrower floats are widened before.
"""

from __future__ import annotations

import math

from lamina.dialects.vendors import ir
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.structure import Generic, stride_along
from lamina.records import Record

_BITS_OF = {"f32": 32, "f64": 64}
_BODIES = (("arith.mulf", "arith.addf"), ("arith.muli", "arith.addi"))
WIDENINGS = {"arith.extsi": True, "arith.extui": False, "arith.extf": True}
"""Ops that widen a number, and whether they take it for one with a sign."""
# Fewer are left to plain loops, where there is nothing to gain, or, where a factor has to be laid out,
# more to lose than to gain, unless that is one tile in registers.
_LEAST_PRODUCTS = 256  # shape
_LEAST_TO_PACK = 32_768  # shape
_TILE = 8
_LEAST_COLUMNS = 8  # shape: a vector's
_MANY_ROWS = 8  # shape: a block's


class Contraction(Record):
    """A generic's factors and the roles of its dimensions."""

    generic: Generic
    a: Factor
    b: Factor
    c: Factor
    row: int
    column: int
    around: tuple[int, ...]
    """The other parallel dimensions, in order."""
    reduced: tuple[int, ...]
    """Those summed over, the one along which a's elements are nearest last."""
    packs: bool
    """Whether b is not contiguous along the column."""

    @property
    def products(self) -> int:
        return math.prod(self.generic.extents)

    @property
    def nanoseconds(self) -> float:
        """What all products take a core, roughly."""
        element = "f64" if self.element_bytes == 8 else "f32"
        return self.products * machine_of(self.generic.op).multiply_add_ns(element)

    @property
    def element_bytes(self) -> int:
        return _BITS_OF[str(self.element)] // 8

    @property
    def bytes_of_b(self) -> int:
        return math.prod(ir.MemRefType(self.b.buffer.type).shape) * self.element_bytes

    @property
    def element(self) -> ir.Type:
        return ir.MemRefType(self.c.buffer.type).element_type


class Tiling(Record):
    """The most rows of a block, and the widths of its vectors: of the blocks in the middle, and of
    the one at the end of the columns (empty if nothing is left)."""

    most_rows: int
    middle: tuple[int, ...]
    end: tuple[int, ...]


def read_contraction(generic: Generic) -> Contraction | None:
    """What a generic contracts; None if it does something else, or is too small to be worth it."""
    if not _multiplies_and_adds(generic) or math.prod(generic.extents) < _LEAST_PRODUCTS:
        return None
    operands = [
        Factor(value, map_)
        for value, map_ in zip(
            (*generic.inputs, *generic.outputs),
            (*generic.input_maps, *generic.output_maps),
            strict=True,
        )
    ]
    if not all(isinstance(factor.buffer.type, ir.MemRefType) for factor in operands):
        return None
    c = operands[2]
    for a, b in ((operands[0], operands[1]), (operands[1], operands[0])):
        found = with_roles(generic, a, b, c)
        if found is not None and _pays_to_lay_out(found):
            return found
    return None


def _pays_to_lay_out(contraction: Contraction) -> bool:
    if contraction.products >= _LEAST_TO_PACK:
        return True
    a, b = (ir.MemRefType(factor.buffer.type) for factor in (contraction.a, contraction.b))
    if not a.element_type == b.element_type == contraction.element:
        return False
    return not contraction.packs or all(size in (1, _TILE) for size in b.shape)


def with_roles(generic: Generic, a: Factor, b: Factor, c: Factor) -> Contraction | None:
    parallel = [d for d in range(generic.rank) if not generic.reductions[d]]
    columns = [
        d
        for d in parallel
        if _stride(c, d) == 1
        and _stride(a, d) == 0
        and _stride(b, d) != 0
        and generic.extents[d] >= _LEAST_COLUMNS
    ]
    rows = [
        d
        for d in parallel
        if _stride(b, d) == 0 and _stride(a, d) != 0 and generic.extents[d] >= 2
    ]
    if len(columns) != 1 or not rows:
        return None
    row = max(rows, key=lambda d: (_row_score(generic.extents[d]), d))
    around = tuple(d for d in parallel if d not in (row, columns[0]))
    reduced = sorted(
        (d for d in range(generic.rank) if generic.reductions[d]), key=lambda d: -_stride(a, d)
    )
    return Contraction(
        generic, a, b, c, row, columns[0], around, tuple(reduced), _stride(b, columns[0]) != 1
    )


def _row_score(extent: int) -> float:
    """The part of a row dimension that whole blocks cover, less for blocks of few rows."""
    rows = rows_of_block(extent, 7)
    return min(rows, 4) * (extent // rows * rows) / extent


def rows_of_block(extent: int, most: int) -> int:
    """Rows of a block: a divisor of the extent that is not much smaller than what fits."""
    divisors = [n for n in range(most, max(1, (most + 1) // 2) - 1, -1) if extent % n == 0]
    return min(extent, divisors[0] if divisors else most)


def choose_tiling(
    contraction: Contraction, vector_bits: int, rows: int | None = None, columns: int | None = None
) -> Tiling:
    """Blocks whose accumulators fill the vector registers, but for those that hold b; of so many rows and
    columns, if it is a part of them."""
    lanes = vector_bits // _BITS_OF[str(contraction.element)]
    accumulators, most = (28, 4) if vector_bits >= 512 else (12, 2)
    extents = contraction.generic.extents
    columns = extents[contraction.column] if columns is None else columns
    if (extents[contraction.row] if rows is None else rows) >= _MANY_ROWS:
        most = 2  # each vector of b is worth more the more rows it is multiplied with
    vectors = max(1, min(most, columns // lanes))
    if most == 2 and accumulators > 12 and vectors == 2 and columns // lanes % 6 == 3:
        vectors = 3  # leaves nothing at the end
    if vectors == most > 2 and (columns // lanes) % most and (columns // lanes) % (most - 1) == 0:
        vectors = most - 1  # leaves nothing at the end
    middle = (lanes,) * vectors if columns >= lanes else ()
    rest = columns % (lanes * vectors) if middle else columns
    end = [lanes] * (rest // lanes)
    for width in (8, 4, 2, 1):
        if width < lanes and rest % (2 * width) // width:
            end.append(width)
    widest = max(len(middle), len(end))
    return Tiling(accumulators // widest, middle, tuple(end))


def is_narrow(factor: Factor, contraction: Contraction) -> bool:
    """Whether a factor is of another type than the sums."""
    return ir.MemRefType(factor.buffer.type).element_type != contraction.element


def _stride(factor: Factor, dimension: int) -> int:
    return stride_along(factor.buffer, factor.map, dimension)


def widenings_in(generic: Generic) -> list[str | None] | None:
    """The op that widens each input in a body that is c + a * b; None for another body."""
    body = [op.operation for op in generic.body.operations]
    if tuple(op.name for op in body[-3:-1]) not in _BODIES:
        return None
    if len(generic.inputs) != 2 or len(generic.outputs) != 1:
        return None
    *widened, multiply, add, end = body
    left, right, total = generic.body.arguments
    values: dict[ir.Value, tuple[ir.Value, str | None]]
    values = {left: (left, None), right: (right, None)}
    for op in widened:
        if op.name not in WIDENINGS or op.operands[0] not in (left, right):
            return None
        values[op.results[0]] = (op.operands[0], op.name)
    used = dict(values[operand] for operand in multiply.operands if operand in values)
    if set(used) != {left, right}:
        return None
    if set(add.operands) != {total, multiply.results[0]} or end.operands[0] != add.results[0]:
        return None
    return [used[left], used[right]]


def _multiplies_and_adds(generic: Generic) -> bool:
    """Whether the body is c + a * b, on f32 or f64, whose factors may be narrower floats."""
    if len(generic.outputs) != 1 or not any(generic.reductions):
        return False
    if str(ir.ShapedType(generic.outputs[0].type).element_type) not in _BITS_OF:
        return False
    return widenings_in(generic) is not None
