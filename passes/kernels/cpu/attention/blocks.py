"""What kernels of attention are written with: products of blocks that stay in cache, and small
arrays beside them.

Positions hold the dimensions of scores by number, and beyond those a width, places within a block of
queries and of keys, and which of several arrays is one's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from lamina.dialects.attributes import KIND, string_of
from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import for_steps, if_else, index, load, store
from lamina.passes.kernels.cpu.gemm.register_blocks import (
    Block,
    Factor,
    emit_block,
    load_vector,
    moved,
    repeat,
    store_vector,
)
from lamina.passes.linalg.vectors.shuffles import transposed
from lamina.records import Record

Position = dict[int, ir.Value]
Range = tuple[int, int]
"""A dimension and its extent."""


class Blocks(Record):
    """Writes products around scores of so many dimensions, with vectors of so many f32."""

    rank: int
    lanes: int

    @property
    def width(self) -> int:
        return self.rank

    @property
    def query(self) -> int:
        """The place within a block of queries."""
        return self.rank + 1

    @property
    def key(self) -> int:
        """The place within a block of keys."""
        return self.rank + 2

    @property
    def slot(self) -> int:
        """Which of several arrays."""
        return self.rank + 3

    def factor(
        self, buffer: ir.Value, dims: Sequence[int], shifts: Mapping[int, int] | None = None
    ) -> Factor:
        """A buffer with these dimensions, to some of which the place within a block is added."""
        shifts = shifts or {}
        expressions = [
            ir.AffineDimExpr.get(d) + ir.AffineDimExpr.get(shifts[d])
            if d in shifts
            else ir.AffineDimExpr.get(d)
            for d in dims
        ]
        return Factor(buffer, ir.AffineMap.get(self.rank + 4, 0, expressions))

    def product(
        self, factors: tuple[Factor, Factor], target: Factor, row: Range, column: Range,
        reduced: Range, at: Position, initial: Callable[[Position, ir.VectorType], ir.Value],
        terms: ir.Value | None = None,
    ) -> None:  # fmt: skip
        """target[row, column] = initial + the sum of products, only of the first `terms` if given."""
        vectors, most = (2, 14) if self.lanes >= 16 else (2, 5)
        (row_dim, rows), (column_dim, columns) = row, column
        blocks = math.ceil(rows / most)
        size = math.ceil(rows / blocks)
        full = (rows - blocks * (size - 1)) * size
        extents = [0] * (self.rank + 4)
        extents[reduced[0]] = reduced[1]
        step = vectors * self.lanes
        whole = columns // step * step
        bounds = None if terms is None else (index(0), terms)

        def block(i: ir.Value, j: ir.Value, rows: int, widths: tuple[int, ...]) -> None:
            where = {**at, row_dim: i, column_dim: j}
            shape = Block(row_dim, column_dim, (reduced[0],), rows, widths, ir.F32Type.get())
            places = [
                (moved(moved(where, row_dim, r), column_dim, start), type_)
                for r, start, type_ in shape.places()
            ]
            before = [initial(*place) for place in places]
            found = emit_block(shape, factors, extents, where, before, bounds)
            for value, (place, _) in zip(found, places, strict=True):
                store_vector(value, target.buffer, target.at(place))

        def columns_of(j: ir.Value, widths: tuple[int, ...]) -> None:
            for low, high, count in ((0, full, size), (full, rows, size - 1)):
                if low < high:
                    for_steps(
                        index(low), index(high), count,
                        lambda i, count=count: block(i, j, count, widths),  # type: ignore[misc]
                    )  # fmt: skip

        if whole:
            for_steps(
                index(0), index(whole), step, lambda j: columns_of(j, (self.lanes,) * vectors)
            )
        if whole < columns:
            left = columns - whole
            widths = (self.lanes,) * (left // self.lanes) + (left % self.lanes,) * bool(
                left % self.lanes
            )
            columns_of(index(whole), widths)

    def turn(
        self, source: Factor, target: ir.Value, at: Position, row: Range, width: int,
        last: ir.Value | None = None,
    ) -> None:  # fmt: skip
        """Rows of a buffer with the width outermost in `target`; those beyond the row `last` are
        copies of it."""
        row_dim, rows = row
        results = source.map.results
        lanes, columns = self.lanes, ir.AffineDimExpr.get(self.width)
        together = results[len(results) - 1] == columns

        def place(r: ir.Value, c: ir.Value) -> list[ir.Value]:
            of_row = plus(at[row_dim], r)
            if last is not None:
                of_row = arith.MinUIOp(of_row, last).result
            return source.at({**at, row_dim: of_row, self.width: c})

        if not together or rows % lanes or width % lanes:
            for_both(
                index(width), rows,
                lambda c, r: store(widened(load(source.buffer, place(r, c))), target, [c, r]),
            )  # fmt: skip
            return
        type_ = ir.VectorType.get([lanes], ir.MemRefType(source.buffer.type).element_type)

        def square(r: ir.Value, c: ir.Value) -> None:
            rows = [
                widened(load_vector(source.buffer, place(plus(r, index(i)), c), type_))
                for i in range(lanes)
            ]
            for i, column in enumerate(transposed(rows)):
                store_vector(column, target, [plus(c, index(i)), r])

        for_steps(
            index(0), index(rows), lanes,
            lambda r: for_steps(index(0), index(width), lanes, lambda c: square(r, c)),
        )  # fmt: skip

    def rows(
        self, source: Factor, target: ir.Value, at: Position, row: Range, width: int,
        last: ir.Value | None = None,
    ) -> None:  # fmt: skip
        """Rows of a buffer side by side in `target`, of f32 or as they are; those beyond the row `last`
        are copies of it."""
        fitted = widened if is_f32(target) else _same

        def one(r: ir.Value) -> None:
            of_row = plus(at[row[0]], r)
            if last is not None:
                of_row = arith.MinUIOp(of_row, last).result
            where = {**at, row[0]: of_row}
            for_steps(
                index(0), index(width), 1,
                lambda c: store(
                    fitted(load(source.buffer, source.at({**where, self.width: c}))),
                    target, [r, c],
                ),
            )  # fmt: skip

        for_steps(index(0), index(row[1]), 1, one)


def is_f32(buffer: ir.Value) -> bool:
    """Whether a buffer holds f32."""
    return isinstance(ir.MemRefType(buffer.type).element_type, ir.F32Type)


def widened(value: ir.Value) -> ir.Value:
    """A number of f32, or a vector of them, from one of 16 bits."""
    type_ = f32 = ir.F32Type.get()
    element = value.type
    if isinstance(value.type, ir.VectorType):
        element, type_ = value.type.element_type, ir.VectorType.get(value.type.shape, f32)
    return value if element == f32 else arith.ExtFOp(type_, value).result


def narrowed(value: ir.Value, buffer: ir.Value) -> ir.Value:
    """A number of f32 as a buffer holds it."""
    return value if is_f32(buffer) else arith.TruncFOp(
        ir.MemRefType(buffer.type).element_type, value
    ).result


def _same(value: ir.Value) -> ir.Value:
    return value


def array(*shape: int, element: ir.Type | None = None) -> ir.Value:
    """A temporary, of f32 unless said otherwise."""
    type_ = ir.MemRefType.get(list(shape), element or ir.F32Type.get())
    return memref.AllocOp(type_, [], []).result


def constant(value: float) -> ir.Value:
    """A number of f32."""
    return arith.ConstantOp(ir.F32Type.get(), value).result


def zeros(_: Position, type_: ir.VectorType) -> ir.Value:
    """Nothing to add products to."""
    return repeat(constant(0.0), type_)


def block_of(extent: int, most: int) -> int:
    """The size, at most roughly `most`, of equal blocks of an extent; the last may be smaller."""
    return math.ceil(extent / math.ceil(extent / most))


def each(
    extent: int, size: int, body: Callable[[ir.Value, int], None], end: ir.Value | None = None
) -> None:
    """Blocks of so many, and one of what is left: their first and their size. None from `end` on,
    which is at a block's end."""
    rest = extent % size
    whole = high = index(extent - rest)
    if end is not None:
        high = arith.MinUIOp(whole, end).result
    for_steps(index(0), high, size, lambda first: body(first, size))
    if rest and end is None:
        body(whole, rest)
    elif rest:
        is_seen = arith.CmpIOp(arith.CmpIPredicate.ugt, end, whole).result

        def last() -> list[ir.Value]:
            body(whole, rest)
            return []

        if_else(is_seen, last, lambda: [], [])


def for_both(
    rows: ir.Value, columns: int, body: Callable[[ir.Value, ir.Value], None]
) -> None:
    """A loop over rows, and within it one over columns."""
    for_steps(
        index(0), rows, 1,
        lambda r: for_steps(index(0), index(columns), 1, lambda c: body(r, c)),
    )  # fmt: skip


@contextmanager
def on_buffers(
    function: ir.Operation, results: Sequence[ir.Value]
) -> Iterator[dict[ir.Value, ir.Value]]:
    """Inside, ops go into a function that takes the place of one, with arguments for its results, too.
    Gives the buffers of these and of its arguments."""
    values = [*function.regions[0].blocks[0].arguments, *results]
    types = [_buffer_type(value.type) for value in values]
    dropped = ("arg_attrs", "res_attrs")
    attributes = {n: function.attributes[n] for n in function.attributes if n not in dropped}
    attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    with ir.InsertionPoint(function):
        new = ir.Operation.create("func.func", regions=1, attributes=attributes)
    block = ir.Block.create_at_start(new.regions[0], types)
    with ir.InsertionPoint(block):
        yield dict(zip(values, block.arguments, strict=True))
        ir.Operation.create("func.return")


def replace_kernels(module: ir.Module, kind: str, write: Callable[[ir.Operation], None]) -> int:
    """Each kernel of a kind gives way to what `write` makes of it; how many there were."""
    kernels = [
        op
        for op in (inner.operation for inner in module.body.operations)
        if op.name == "func.func" and string_of(op, KIND) == kind
    ]
    for kernel in kernels:
        with kernel.location:
            write(kernel)
        kernel.erase()
    return len(kernels)


def _buffer_type(type_: ir.Type) -> ir.MemRefType:
    """How a tensor lies in memory."""
    element = type_.element_type
    if isinstance(element, ir.IntegerType):
        element = ir.IntegerType.get_signless(element.width)
    return ir.MemRefType.get(list(type_.shape), element)


def plus(a: ir.Value, b: ir.Value) -> ir.Value:
    """The sum of two indices."""
    return arith.AddIOp(a, b).result
