"""Multiply matrices of narrow numbers by instructions that add up groups of products.

    c[m, n] += widened(a[m, k]) * widened(b[k, n])

of bytes in i32, or of bf16 in f32: b is packed so that groups of neighbours along k, 32 bits each, lie
next to each other (see `group_packing`), and blocks of c are computed in registers. Which
instruction does it says `features`: `amx-int8` and `amx-bf16` multiply tiles of 16 rows and columns,
`avx512vnni` vectors of bytes; without them bytes are widened to 16 bits and `pmaddwd` multiplies
them, while products of bf16 are left to be done in f32. The numbers are taken from where they were
before they were widened. An element-wise op that follows, and alone reads c, is done block by block.

Leaves alone what is small, has few rows, columns or terms, or is no product of two matrices.

example: test/passes/linalg/group_products.mlir
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.base import Pass
from lamina.passes.linalg.epilogue import Epilogue, find_epilogue
from lamina.passes.linalg.group_factors import Rows, first_factor, offset, second_factor
from lamina.passes.linalg.group_packing import Packer
from lamina.passes.linalg.group_units import (
    TILE_BYTES,
    TILE_ROWS,
    Kind,
    Tiles,
    Vectors,
    byte_vectors,
    kinds_of_blocks,
    load_at,
    load_some,
    pointer,
    release_tiles,
    repeat_group,
    splat,
    store_some,
    tile_instruction,
    word_vectors,
)
from lamina.passes.linalg.narrow_products import (
    NarrowProduct,
    erase_unread,
    read_narrow_product,
)
from lamina.passes.linalg.parallel import split
from lamina.passes.linalg.reducing import reducing_on_buffers
from lamina.passes.linalg.structure import (
    read_generic,
    sole_fill,
    stride_along,
)
from lamina.passes.loops import for_range, for_steps, for_tasks, index

_TILE_NANOSECONDS, _VECTOR_NANOSECONDS = 0.0008, 0.004  # of a multiplication and addition
_PACKED_BYTE_NANOSECONDS = 0.08
_ROW_TASKS, _COLUMN_TASKS, _OWN_TASKS = 8, 4, 8
_CACHED_BYTES = 1 << 19  # of the first factor's rows, walked again for each block of columns
_OWN_BYTES = 1 << 15  # of panels that a task packs for itself

Position = dict[int, ir.Value]


@dataclass(frozen=True)
class GroupProducts(Pass):
    """See the module's docstring."""

    features: str = ""
    """Of `amx-int8`, `amx-bf16`, `avx512vnni`, with `+` between them."""
    vector_bits: int = 512
    parallel_cost: float = 30_000.0
    task_cost: float = 10_000.0

    def run(self, module: ir.Module) -> None:
        found = [
            read_narrow_product(read_generic(op))
            for op in reducing_on_buffers(module)
            if op.parent.name == "func.func"
        ]
        widenings: set[ir.Operation] = set()
        for product in found:
            unit = self._unit(product) if product is not None else None
            if product is None or unit is None:
                continue
            op, temporary = product.roles.generic.op, product.roles.c.buffer
            emitter = _Emitter(product, unit, self)
            with ir.InsertionPoint(emitter.last), op.location:
                emitter.emit()
            op.erase()
            widenings |= {f.widening for f in (product.a, product.b) if f.widening is not None}
            if not isinstance(temporary.owner, ir.Block) and not list(temporary.uses):
                temporary.owner.erase()
            self.count("grouped")
        erase_unread(widenings)

    def _unit(self, product: NarrowProduct) -> str | Vectors | None:
        """The tile instruction, or the vectors, that multiply; None if nothing here does."""
        features = self.features.split("+")
        signs = (product.a.signed, product.b.signed)
        if product.element == "bf16":
            return tile_instruction("bf16", signs) if "amx-bf16" in features else None
        if "amx-int8" in features:
            return tile_instruction("i8", signs)
        if "avx512vnni" in features and self.vector_bits == 512:
            return byte_vectors(signs)
        return word_vectors(self.vector_bits, "avx512vnni" in features)


class _Emitter:
    """Emits one product in front of it."""

    def __init__(self, product: NarrowProduct, unit: str | Vectors, options: GroupProducts) -> None:
        self._roles = product.roles
        self._unit, self._options = unit, options
        self._extents = product.roles.generic.extents
        self._depth = product.depth
        self._product = product
        is_tile = isinstance(unit, str)
        self._cost = (_TILE_NANOSECONDS if is_tile else _VECTOR_NANOSECONDS) * math.prod(
            self._extents
        )
        roles = product.roles
        fill = sole_fill(roles.generic, roles.c.buffer)
        self._starts_at_zero = fill is not None and _is_zero(fill.operands[0])
        self._epilogue: Epilogue | None = None
        if self._starts_at_zero:
            assert fill is not None
            self._epilogue = find_epilogue(roles.generic, fill)
            fill.erase()

    @property
    def last(self) -> ir.Operation:
        """The op in front of which to emit all: what follows the product, or itself."""
        return self._roles.generic.op if self._epilogue is None else self._epilogue.generic.op

    def emit(self) -> None:
        roles, columns = self._roles, self._extents[self._roles.column]
        unit = self._unit
        lanes = TILE_ROWS if isinstance(unit, str) else unit.lanes
        self._a = first_factor(self._product, unit)
        b = second_factor(self._product, unit)
        mended = unit if isinstance(unit, Vectors) and unit.flip else None
        around = dict(enumerate(self._extents))
        panels = math.ceil(columns / lanes)
        row_kinds, column_kinds = self._kinds()
        own = self._own_columns(b, column_kinds[0][2])
        if own:
            rows, width = self._extents[roles.row], own
        else:
            packer = Packer(b, around, columns, self._depth, lanes, mended)
            self._pack(packer, list(b.around), panels)
            self._b = packer.panels
            rows, width = self._chunks(row_kinds, column_kinds)
        bounds = [self._extents[d] for d in roles.around]
        counts = [math.ceil(self._extents[roles.row] / rows), math.ceil(columns / width)]
        tasks, grain = split(
            [*bounds, *counts], self._cost, self._options.parallel_cost, self._options.task_cost
        )

        def task(values: list[ir.Value]) -> None:
            position = dict(zip(roles.around, values, strict=False))
            first, left = values[-2:]
            starts = [arith.MulIOp(v, index(n)).result for v, n in ((first, rows), (left, width))]
            if own:
                own_packer = Packer(b, around, columns, self._depth, lanes, mended, (starts[1], own))
                own_panels = math.ceil(own / lanes)  # where it is all columns, the last may be part of one
                panel = arith.MulIOp(left, index(own_panels)).result
                end = _moved(panel, own_panels)
                end = arith.MinSIOp(end, index(panels)).result
                for_steps(panel, end, 1, lambda number: own_packer.pack(position, number))
                self._b = own_packer.panels
            self._task(position, starts, (rows, width), row_kinds, column_kinds)

        for_tasks([*bounds, *counts], tasks, grain, task)
        if self._epilogue is not None:
            self._epilogue.generic.op.erase()

    def _pack(self, packer: Packer, around: list[int], panels: int) -> None:
        counts = [*(self._extents[d] for d in around), panels]
        size = math.prod(counts) * packer.panels.panel_bytes
        cost = size * _PACKED_BYTE_NANOSECONDS
        tasks, grain = split(counts, cost, self._options.parallel_cost, self._options.task_cost)

        def panel(values: list[ir.Value]) -> None:
            packer.pack(dict(zip(around, values, strict=False)), values[-1])

        for_tasks(counts, tasks, grain, panel)

    def _own_columns(self, b: Rows, step: int) -> int:
        """How many columns a task packs for itself, on its stack; 0 where panels are packed before.

        Such a task does all rows of its columns: they have to stay in cache, and be no more than the
        columns, since results are written in stripes."""
        roles, extents = self._roles, self._extents
        rows, columns = extents[roles.row], extents[roles.column]
        repeated = any(extents[d] > 1 and d not in b.around for d in roles.around)
        if repeated or rows > columns or rows * (self._a.free or 1) > _CACHED_BYTES:
            return 0
        steps = math.ceil(columns / step)
        step_bytes = step * math.ceil(self._depth * b.element_bytes / TILE_BYTES) * TILE_BYTES
        tasks = steps * math.prod(extents[d] for d in roles.around)
        return min(_OWN_BYTES // step_bytes, tasks // _OWN_TASKS, steps) * step

    def _kinds(self) -> tuple[list[Kind], list[Kind]]:
        """The blocks of rows and of columns: whole ones, and what is left."""
        rows, columns = (self._extents[d] for d in (self._roles.row, self._roles.column))
        unit = self._unit
        if isinstance(unit, str):
            return (kinds_of_blocks(rows, TILE_ROWS), kinds_of_blocks(columns, TILE_ROWS))
        most = 12 if self._options.vector_bits >= 512 else 5
        whole = rows // most * most
        kinds: list[Kind] = [(0, whole, most, (most,))] if whole else []
        if whole < rows:
            kinds.append((whole, rows, rows - whole, (rows - whole,)))
        return kinds, kinds_of_blocks(columns, unit.lanes)

    def _chunks(self, row_kinds: list[Kind], column_kinds: list[Kind]) -> tuple[int, int]:
        """Rows and columns of a task: multiples of the steps."""
        roles = self._roles
        row_step, column_step = row_kinds[0][2], column_kinds[0][2]
        rows = math.ceil(self._extents[roles.row] / row_step)
        columns = math.ceil(self._extents[roles.column] / column_step)
        around = math.prod(self._extents[d] for d in roles.around)
        row_bytes = self._a.free or self._a.element_bytes
        most = max(1, _CACHED_BYTES // (row_bytes * row_step))
        row_tasks = 1 if around >= _ROW_TASKS else min(rows, _ROW_TASKS)
        row_chunk = min(math.ceil(rows / row_tasks), most)
        row_tasks = math.ceil(rows / row_chunk)
        column_tasks = 1 if row_tasks * around >= _COLUMN_TASKS else min(columns, _COLUMN_TASKS)
        return row_chunk * row_step, math.ceil(columns / column_tasks) * column_step

    def _task(
        self, position: Position, starts: list[ir.Value], sizes: tuple[int, int],
        row_kinds: list[Kind], column_kinds: list[Kind],
    ) -> None:  # fmt: skip
        is_tile = isinstance(self._unit, str)
        byte = ir.IntegerType.get_signless(8)
        shapes = memref.AllocOp(ir.MemRefType.get([64], byte), [], []).result if is_tile else None

        def columns_of(kind: Kind) -> Callable[[ir.Value], None]:
            def at_column(j: ir.Value) -> None:
                for row_kind in row_kinds:
                    tiles = None
                    if isinstance(self._unit, str):
                        tiles = Tiles(row_kind[3], kind[3], self._unit)
                        assert shapes is not None
                        tiles.configure(shapes)

                    def at_row(i: ir.Value, tiles: Tiles | None = tiles, k: Kind = row_kind) -> None:
                        at = {**position, self._roles.row: i, self._roles.column: j}
                        if tiles is not None:
                            self._tile_block(at, tiles)
                        else:
                            self._vector_block(at, k[3][0], kind[3])

                    _part_of(row_kind, starts[0], sizes[0], self._extents[self._roles.row], at_row)

            return at_column

        for kind in column_kinds:
            _part_of(kind, starts[1], sizes[1], self._extents[self._roles.column], columns_of(kind))
        if is_tile:
            release_tiles()

    def _tile_block(self, at: Position, tiles: Tiles) -> None:
        roles = self._roles
        row, column = at[roles.row], at[roles.column]
        rows, columns = sum(tiles.rows), sum(tiles.columns)
        target, row_stride, start = self._target(at, rows, columns)

        def places() -> list[ir.Value]:
            return [
                pointer(target, _moved(start, r * TILE_ROWS * row_stride + n * TILE_BYTES))
                for r in range(len(tiles.rows))
                for n in range(len(tiles.columns))
            ]

        if self._starts_at_zero:
            tiles.clear()
        else:
            tiles.load_sums(places(), row_stride)
        per_step = TILE_BYTES // self._a.element_bytes

        def step(i: ir.Value) -> None:
            term = arith.MulIOp(i, index(per_step)).result
            group = arith.MulIOp(i, index(TILE_BYTES // 4)).result
            a = [
                self._a.address(at, _moved(row, r * TILE_ROWS), term)
                for r in range(len(tiles.rows))
            ]
            b = [
                self._b.address(at, _moved(column, n * TILE_ROWS), group)
                for n in range(len(tiles.columns))
            ]
            tiles.multiply(a, self._a.free, b)

        for_steps(index(0), index(math.ceil(self._depth / per_step)), 1, step)
        tiles.store_sums(places(), row_stride)
        self._finish(target, at, rows, columns)

    def _target(self, at: Position, rows: int, columns: int) -> tuple[ir.Value, int, ir.Value]:
        """Where sums of a block are stored: the buffer, bytes from row to row, the first's place."""
        c, roles = self._roles.c, self._roles
        if self._epilogue is not None:
            element = ir.MemRefType(c.buffer.type).element_type
            type_ = ir.MemRefType.get([rows, columns], element)
            tile = memref.AllocOp(type_, [], []).result
            return tile, columns * 4, index(0)
        strides = {d: stride_along(c.buffer, c.map, d) * 4 for d in at}
        return c.buffer, strides[roles.row], offset([(at[d], strides[d]) for d in at])

    def _finish(self, tile: ir.Value, at: Position, rows: int, columns: int) -> None:
        if self._epilogue is not None:
            roles = self._roles
            sizes = {roles.row: rows, roles.column: columns}
            self._epilogue.emit(tile, (roles.row, roles.column), at, sizes)

    def _vector_block(self, at: Position, rows: int, widths: tuple[int, ...]) -> None:
        unit, roles = self._unit, self._roles
        assert isinstance(unit, Vectors)
        row, column = at[roles.row], at[roles.column]
        word = ir.IntegerType.get_signless(32)
        vector = ir.VectorType.get([unit.lanes], word)
        target, row_stride, start = self._target(at, rows, sum(widths))

        def place(r: int, n: int) -> ir.Value:
            return pointer(target, _moved(start, r * row_stride + n * unit.lanes * 4))

        def initial(r: int, n: int, width: int) -> ir.Value:
            left = _moved(column, n * unit.lanes)
            if not self._starts_at_zero:
                sums = load_some(place(r, n), vector, width)
            else:
                sums = splat(vector, 0)
            if self._b.mending is None:
                return sums
            return arith.AddIOp(sums, load_at(self._b.mending_address(at, left), vector)).result

        def step(i: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            term = arith.MulIOp(i, index(unit.group)).result
            b = [
                load_at(self._b.address(at, _moved(column, n * unit.lanes), i), vector)
                for n in range(len(widths))
            ]
            found: list[ir.Value] = []
            for r in range(rows):
                group = load_at(self._a.address(at, _moved(row, r), term), word)
                repeated = repeat_group(group, unit.lanes)
                for factor in b:
                    found.append(unit.multiply(sums[len(found)], repeated, factor))
            return found

        begin = [initial(r, n, width) for r in range(rows) for n, width in enumerate(widths)]
        groups = math.ceil(self._depth / unit.group)
        sums = iter(for_range(index(0), index(groups), begin, step))
        for r in range(rows):
            for n, width in enumerate(widths):
                store_some(next(sums), place(r, n), width)
        self._finish(target, at, rows, sum(widths))


def _part_of(
    kind: Kind, start: ir.Value, size: int, extent: int, body: Callable[[ir.Value], None]
) -> None:
    """The blocks of a kind between a task's start and its end."""
    low, high, step, _ = kind
    if size >= extent:
        for_steps(index(low), index(high), step, body)
        return
    end = arith.AddIOp(start, index(size)).result
    first = arith.MaxSIOp(start, index(low)).result if low else start
    for_steps(first, arith.MinSIOp(end, index(high)).result, step, body)


def _moved(value: ir.Value, by: int) -> ir.Value:
    return arith.AddIOp(value, index(by)).result if by else value


def _is_zero(value: ir.Value) -> bool:
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return False
    constant = value.owner.operation.attributes["value"]
    if isinstance(constant, ir.IntegerAttr):
        return constant.value == 0
    return isinstance(constant, ir.FloatAttr) and constant.value == 0.0
