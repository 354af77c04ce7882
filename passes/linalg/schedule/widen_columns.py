"""Reduce a few columns as many: some rows that lie behind each other in memory are one wide row.

    s[c] += x[i, c]   for i < 30000, c < 3
becomes, in 4 chunks of 78 rows of 96 of the old ones,
    p[chunk, j] += x[chunk, i, j]   for i < 78, j < 288;  s[c] += sum over chunks and k of p[chunk, 3 k + c]
    s[c] += x[i, c]   for i >= 29952

in full vectors, where three of the elements in one would be used. For bufferised `linalg.generic`s with one
output, of which each column is reduced by a combiner that is associative, whose inputs are rows of all columns
one behind the other, perhaps in several arrays of them, one row for all, or one number. Chunks, of which the
shape decides how many there are, can run as tasks. Leaves alone columns that fill cache lines, or are many.

example: test/passes/linalg/schedule/widen_columns.mlir
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lamina.dialects.builders.buffers import reshaped
from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.copies import copied
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.linalg.analysis.reducing import reducing_on_buffers
from lamina.passes.linalg.analysis.structure import (
    Generic,
    is_buffer,
    make_copy,
    make_generic,
    places_of,
    read_generic,
    subview,
)
from lamina.passes.linalg.schedule.split_reductions import (
    add_up,
    combiner_of,
    move_to_reader,
    neutral_of,
)

_VECTOR_BYTES = 64  # rounding: on all machines
_LEAST_WIDE = 256  # rounding: elements of a wide row: sums of one are not waited for in the next
_MOST_COLUMNS = 64  # rounding
_LEAST_WIDE_ROWS = 8  # rounding
_MOST_PARTIAL = 1 << 17  # rounding: elements of what chunks leave


class WidenColumns(Pass):
    """See the module's docstring."""

    chunks: int = 64
    chunk_elements: int = 16384

    def run(self, module: ir.Module) -> None:
        last_steps = []
        for op in reducing_on_buffers(module):
            if op.parent.name != "func.func":
                continue
            columns = _Columns.of(read_generic(op), self)
            if columns is not None:
                with ir.InsertionPoint(op), op.location:
                    last_steps.append(_rewrite(columns))
                op.erase()
                self.count("widened")
        for last in last_steps:
            move_to_reader(last)


class _Columns(NamedTuple):
    """A reduction of few columns, and how it is cut."""

    generic: Generic
    outer: list[int]
    """The extents of dimensions around the rows."""
    rows: int
    columns: int
    inputs: list[str]
    """What each of the inputs has: "rows" of all, one "row", or a "number"."""
    folded: int
    """How many rows are one wide row."""
    chunks: int
    wide_rows: int
    """Of each chunk."""

    @property
    def done(self) -> int:
        """The rows that wide rows are of."""
        return self.chunks * self.wide_rows * self.folded

    @property
    def width(self) -> int:
        """Elements of a wide row."""
        return self.folded * self.columns

    @classmethod
    def of(cls, generic: Generic, options: WidenColumns) -> _Columns | None:
        found = _dimensions(generic)
        if found is None:
            return None
        outer, row, inner = found
        columns = math.prod(generic.extents[d] for d in inner)
        if not 1 < columns < _MOST_COLUMNS:
            return None
        kinds = [
            _kind(value, places_of(map_), outer, row, inner)
            for value, map_ in zip(generic.inputs, generic.input_maps, strict=True)
        ]
        if "" in kinds or "rows" not in kinds or (outer and "row" in kinds):
            return None
        items = [_bytes(v) for v, kind in zip(generic.inputs, kinds, strict=True) if kind == "rows"]
        if all(columns * item % _VECTOR_BYTES == 0 for item in items):
            return None
        rows, around = generic.extents[row], math.prod(generic.extents[d] for d in outer)
        lanes = _VECTOR_BYTES // _bytes(generic.outputs[0])
        folded = lanes // math.gcd(columns, lanes)
        if rows < _LEAST_WIDE_ROWS * folded or combiner_of(generic) is None or _looks_around(generic):
            return None
        folded *= min(rows // (_LEAST_WIDE_ROWS * folded), -(-_LEAST_WIDE // (folded * columns)))
        chunks = _chunks(rows // folded, max(1, rows * columns // options.chunk_elements), options.chunks)
        if outer:
            chunks = 1
        if around * chunks * folded * columns > _MOST_PARTIAL:
            return None
        extents = [generic.extents[d] for d in outer]
        return cls(generic, extents, rows, columns, kinds, folded, chunks, rows // folded // chunks)


def _dimensions(generic: Generic) -> tuple[list[int], int, list[int]] | None:
    """Which dimensions are around the one that is reduced, that one, and those of a row, all in the order of
    memory; None for what is not rows of columns."""
    if len(generic.outputs) != 1 or sum(generic.reductions) != 1 or not _is_dense(generic.outputs[0]):
        return None
    every = set(range(generic.rank))
    order = next((at for at in map(places_of, generic.input_maps) if set(at) == every), None)
    if order is None or len(order) != generic.rank:
        return None
    row = generic.reductions.index(True)
    place = order.index(row)
    outer, inner = order[:place], order[place + 1 :]
    return (outer, row, inner) if places_of(generic.output_maps[0]) == [*outer, *inner] else None


def _kind(value: ir.Value, places: list[int], outer: list[int], row: int, inner: list[int]) -> str:
    if not is_buffer(value):
        return "number"
    if not _is_dense(value):
        return ""
    if not places:
        return "number"
    return "row" if places == inner else "rows" if places == [*outer, row, *inner] else ""


def _is_dense(buffer: ir.Value) -> bool:
    return bool(buffer.type.affine_map == ir.AffineMap.get_identity(buffer.type.rank))


def _bytes(buffer: ir.Value) -> int:
    element = buffer.type.element_type
    return -(-getattr(element, "width", 64) // 8)


def _looks_around(generic: Generic) -> bool:
    """Whether the body asks where it is, or reads elsewhere."""
    return bool(find_ops(generic.op, "linalg.index", "memref.load"))


def _chunks(wide_rows: int, wanted: int, most: int) -> int:
    """About as many chunks as are wanted, such that few rows are left."""
    wanted = max(1, min(wanted, most, wide_rows // _LEAST_WIDE_ROWS))
    return min(range(wanted, wanted // 2, -1), key=lambda n: wide_rows % n)


def _rewrite(columns: _Columns) -> ir.Operation:
    """Writes all of it, and returns what completes the result."""
    generic = columns.generic
    combiner = combiner_of(generic)
    assert combiner is not None
    output = generic.outputs[0]
    element = output.type.element_type
    neutral = arith.ConstantOp(element, neutral_of(combiner, element)).result

    def parts(*shape: int) -> ir.Value:
        buffer = memref.AllocOp(ir.MemRefType.get(shape, element), [], []).result
        make_copy(neutral, buffer)
        return buffer

    partial = parts(*columns.outer, columns.chunks, columns.width)
    _reduce_wide(columns, partial)
    if columns.done < columns.rows:
        _reduce_rest(columns)
    one = partial
    if columns.chunks > 1:
        one = parts(columns.width)
        add_up(partial, one, combiner)
    shape = [*columns.outer, columns.folded, *output.type.shape[len(columns.outer) :]]
    return add_up(reshaped(one, ir.MemRefType.get(shape, element)), output, combiner, len(columns.outer))


def _reduce_wide(columns: _Columns, partial: ir.Value) -> None:
    generic, around = columns.generic, len(columns.outer)
    rank = around + 3  # a chunk, a row of it, an element of that
    shape = [*columns.outer, columns.chunks, columns.wide_rows, columns.width]
    inputs, maps = [], []
    for value, kind in zip(generic.inputs, columns.inputs, strict=True):
        places: Sequence[int] = ()
        if kind == "rows":
            value, places = _wide(value, shape, columns.rows * columns.columns), range(rank)
        elif kind == "row":
            value, places = _repeated(value, columns), [rank - 1]
        elif is_buffer(value):
            value = memref.LoadOp(value, []).result
        inputs.append(value)
        maps.append(_map(rank, places))
    maps.append(_map(rank, [*range(around + 1), rank - 1]))
    reductions = [d == rank - 2 for d in range(rank)]
    _with_body(generic, make_generic(inputs, [partial], maps, reductions))


def _wide(value: ir.Value, shape: list[int], around: int) -> ir.Value:
    """The first rows of an input as wide ones, where it is `around` elements to the next array of rows."""
    dense = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
    outer = len(shape) - 3
    strides = [around * math.prod(shape[at + 1 : outer]) for at in range(outer)] + dense[outer:]
    element = value.type.element_type
    plain = ir.MemRefType.get(shape, element)
    layout = ir.StridedLayoutAttr.get(0, strides)
    return memref.ReinterpretCastOp(
        plain if strides == dense else ir.MemRefType.get(shape, element, layout),
        value, [], [], [], [0], shape, strides,
    ).result  # fmt: skip


def _repeated(row: ir.Value, columns: _Columns) -> ir.Value:
    """A row as often as a wide one has rows."""
    shape, element = list(row.type.shape), row.type.element_type
    buffer = memref.AllocOp(ir.MemRefType.get([columns.folded, *shape], element), [], []).result
    rank = 1 + len(shape)
    op = make_generic([row], [buffer], [_map(rank, range(1, rank)), _map(rank, range(rank))], [False] * rank)
    block = op.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[block.arguments[0]])
    return reshaped(buffer, ir.MemRefType.get([columns.width], element))


def _reduce_rest(columns: _Columns) -> None:
    """The rows behind the last wide one."""
    generic, around = columns.generic, len(columns.outer)
    inputs = []
    for value, kind in zip(generic.inputs, columns.inputs, strict=True):
        if kind == "rows":
            sizes = list(value.type.shape)
            offsets = [columns.done if at == around else 0 for at in range(len(sizes))]
            sizes[around] -= columns.done
            value = subview(value, offsets, sizes)
        inputs.append(value)
    maps = (*generic.input_maps, *generic.output_maps)
    _with_body(generic, make_generic(inputs, generic.outputs, maps, generic.reductions))


def _with_body(generic: Generic, op: ir.Operation) -> None:
    body = op.regions[0].blocks.append(*(argument.type for argument in generic.body.arguments))
    known = dict(zip(generic.body.arguments, body.arguments, strict=True))
    with ir.InsertionPoint(body):
        for step in generic.body.operations:
            copied(step.operation, known)


def _map(rank: int, places: Sequence[int]) -> ir.AffineMap:
    return ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(d) for d in places])
