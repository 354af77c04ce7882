"""Matrix products of narrow numbers by dot-product instructions (VNNI, AMX).

    c[m, n] += widened(a[m, k]) * widened(b[k, n])

of bytes in i32, or of bf16 in f32: b is packed so that groups of neighbours along k, 32 bits each, lie
next to each other (see `dot_packing`), and blocks of c are computed in registers. Which
instruction does it says `features`: `amx-int8` and `amx-bf16` multiply tiles of 16 rows and columns,
`avx512vnni` vectors of bytes; without them bytes are widened to 16 bits and `pmaddwd` multiplies
them, while products of bf16 are left to be done in f32. The numbers are taken from where they were
before they were widened. An element-wise op that follows, and alone reads c, is done block by block. Where
rows are few, a task packs its columns itself, and only some terms of the sums at a time (`dot_partition`); an
element-wise op that makes the second factor makes just these. Rows that are few become columns where tiles can
multiply the second factor, whose terms lie next to each other, as it is (`dot_transposed`); what makes it makes the
part of each task then.

Leaves alone what is small, has few rows, columns or terms, or is no product of two matrices.

example: test/passes/kernels/cpu/gemm/dot_product_gemm.mlir
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import for_steps, for_tasks, index
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.dot_blocks import (
    Blocks,
    Part,
    Target,
    moved_by,
    tile_block,
    vector_block,
)
from lamina.passes.kernels.cpu.gemm.dot_factors import (
    Position,
    fill_with_zero,
    first_factor,
    offset,
    second_factor,
)
from lamina.passes.kernels.cpu.gemm.dot_instructions import (
    TILE_ROWS,
    Kind,
    Tiles,
    Vectors,
    byte_vectors,
    kinds_of_blocks,
    release_tiles,
    tile_instruction,
    word_vectors,
)
from lamina.passes.kernels.cpu.gemm.dot_packing import Packer, strip_columns
from lamina.passes.kernels.cpu.gemm.dot_partition import FIRST_ROWS, choose_own
from lamina.passes.kernels.cpu.gemm.dot_producer import Making
from lamina.passes.kernels.cpu.gemm.dot_transposed import store_turned, sums_of_block, turn
from lamina.passes.kernels.cpu.gemm.epilogue import Epilogue, find_epilogue
from lamina.passes.kernels.cpu.gemm.narrow_products import (
    NarrowProduct,
    erase_unread,
    narrow_what_is_made,
    read_narrow_product,
)
from lamina.passes.linalg.analysis.parallel import split
from lamina.passes.linalg.analysis.reducing import reducing_on_buffers
from lamina.passes.linalg.analysis.structure import (
    part_of,
    read_generic,
    sole_fill,
    stride_along,
    subview,
)

_ROW_TASKS, _COLUMN_TASKS = 8, 4


class DotProductGemm(Pass):
    """See the module's docstring."""

    features: str = ""
    """Of `amx-int8`, `amx-bf16`, `avx512vnni`, with `+` between them."""
    vector_bits: int = 512

    def run(self, module: ir.Module) -> None:
        reducing = [op for op in reducing_on_buffers(module) if op.parent.name == "func.func"]
        if "amx-bf16" in self.features.split("+"):
            for op in reducing:
                narrow_what_is_made(read_generic(op))
        found = [read_narrow_product(read_generic(op)) for op in reducing]
        widenings: set[ir.Operation] = set()
        makers: set[ir.Operation] = set()
        for product in found:
            unit = self._unit(product) if product is not None else None
            if product is None or unit is None:
                continue
            op, temporary = product.roles.generic.op, product.roles.c.buffer
            turned = turn(product) if isinstance(unit, str) and _starts_at_zero(product) else None
            if turned is not None:
                product, unit = turned, tile_instruction(product.element, (turned.a.signed, turned.b.signed))
            emitter = _Emitter(product, unit, self)
            with ir.InsertionPoint(emitter.last), op.location:
                emitter.emit()
            op.erase()
            widenings |= {f.widening for f in (product.a, product.b) if f.widening is not None}
            if emitter.made is not None:
                makers.add(emitter.made.prologue.generic.op)
            if not isinstance(temporary.owner, ir.Block) and not list(temporary.uses):
                temporary.owner.erase()
            self.count("grouped")
        erase_unread(widenings)
        erase_unread(makers)

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

    def __init__(self, product: NarrowProduct, unit: str | Vectors, options: DotProductGemm) -> None:
        self._roles = product.roles
        self._unit, self._options = unit, options
        self._machine = machine_of(product.roles.generic.op)
        self._extents = product.roles.generic.extents
        self._depth = product.depth
        self._product = product
        is_tile = isinstance(unit, str)
        rate = self._machine.tile_dots if is_tile else self._machine.vector_dots
        self._cost = 2 * math.prod(self._extents) / rate
        roles = product.roles
        fill = sole_fill(roles.generic, roles.c.buffer)
        self._starts_at_zero = _starts_at_zero(product)
        self._epilogue: Epilogue | None = None
        if self._starts_at_zero:
            assert fill is not None
            self._epilogue = find_epilogue(roles.generic, fill)
            fill.erase()
        self.made = Making.of(product, self.last)
        """What makes a factor, if tasks may do it."""
        self._made_rows = None if self.made is None else self.made.rows
        self._adds = not self._starts_at_zero
        """Whether blocks add to what their places hold."""
        self._sums: tuple[ir.Value, Blocks] | None = None
        """Where the sums of a task grow, if not in their places, and of which blocks."""

    @property
    def last(self) -> ir.Operation:
        """The op in front of which to emit all: what follows the product, or itself."""
        return self._roles.generic.op if self._epilogue is None else self._epilogue.generic.op

    def emit(self) -> None:
        roles, columns = self._roles, self._extents[self._roles.column]
        unit = self._unit
        lanes = TILE_ROWS if isinstance(unit, str) else unit.lanes
        if self._made_rows is None:
            self._a = first_factor(self._product, unit)
        b = second_factor(self._product, unit)
        mended = unit if isinstance(unit, Vectors) and unit.flip else None
        around = dict(enumerate(self._extents))
        row_kinds, column_kinds = self._kinds()
        own = None
        if not self._product.is_turned:
            own = choose_own(self._product, self._a, b, column_kinds[0][2], strip_columns(b, lanes))
        if own is not None:
            rows, width = self._extents[roles.row], own.columns
        else:
            packer = Packer(self._machine, b, around, columns, self._depth, lanes, mended)
            self._pack(packer, list(b.around))
            self._part = Part(packer.panels, self._depth)
            if self._made_rows is None:
                rows, width = self._chunks(row_kinds, column_kinds)
            else:
                rows, width = self._made_rows, columns
        extents = (self._extents[roles.row], columns)
        bounds = [self._extents[d] for d in roles.around]
        counts = [math.ceil(self._extents[roles.row] / rows), math.ceil(columns / width)]
        tasks, grain = split(
            [*bounds, *counts], self._cost, self._machine
        )

        def task(values: list[ir.Value]) -> None:
            position = dict(zip(roles.around, values, strict=False))
            first, left = values[-2:]
            starts = [arith.MulIOp(v, index(n)).result for v, n in ((first, rows), (left, width))]
            blocks = Blocks(starts, (rows, width), extents, (row_kinds, column_kinds))
            if own is None:
                if self.made is not None and self._made_rows is not None:
                    self._a = self.made.make(position, (roles.row, starts[0], rows), None, self._depth)
                self._multiply(position, blocks)
                return

            def part(begin: ir.Value | None, terms: int) -> None:
                rows_of_b = b
                if self.made is not None and columns % width == 0:
                    rows_of_b = self.made.make(position, (roles.column, starts[1], width), begin, terms)
                packer = Packer(self._machine, rows_of_b, around, columns, terms, lanes, mended, (starts[1], width))
                strips = math.ceil(width / packer.strip)  # where it is all columns, the last may be part of one
                strip = arith.MulIOp(left, index(strips)).result
                end = arith.MinSIOp(moved_by(strip, strips), index(packer.strips)).result
                for_steps(strip, end, 1, lambda number: packer.pack(position, number, begin))
                self._part = Part(packer.panels, terms, begin)
                self._multiply(position, blocks)

            if own.terms >= self._depth:
                part(None, self._depth)
            else:
                self._in_parts(position, blocks, own.terms, part)

        for_tasks([*bounds, *counts], tasks, grain, task)
        if self._epilogue is not None:
            self._epilogue.generic.op.erase()

    def _pack(self, packer: Packer, around: list[int]) -> None:
        counts = [*(self._extents[d] for d in around), packer.strips]
        size = math.prod(counts) * packer.strip * packer.panels.column_bytes
        cost = size * 1000 / self._machine.pack_bytes_per_us
        tasks, grain = split(counts, cost, self._machine)

        def strip(values: list[ir.Value]) -> None:
            packer.pack(dict(zip(around, values, strict=False)), values[-1])

        for_tasks(counts, tasks, grain, strip)

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
        most = max(1, int(FIRST_ROWS * self._machine.l2_bytes) // (row_bytes * row_step))
        row_tasks = 1 if around >= _ROW_TASKS else min(rows, _ROW_TASKS)
        row_chunk = min(math.ceil(rows / row_tasks), most)
        row_tasks = math.ceil(rows / row_chunk)
        column_tasks = 1 if row_tasks * around >= _COLUMN_TASKS else min(columns, _COLUMN_TASKS)
        return row_chunk * row_step, math.ceil(columns / column_tasks) * column_step

    def _in_parts(
        self, position: Position, blocks: Blocks, terms: int, part: Callable[[ir.Value | None, int], None]
    ) -> None:
        """All sums of a task, so many terms at a time, which `part` adds."""
        roles = self._roles
        row, column = roles.row, roles.column

        def each_block(body: Callable[[Position, Mapping[int, int]], None]) -> None:
            def block(
                i: ir.Value, j: ir.Value, rows: tuple[int, ...], columns: tuple[int, ...], _: None
            ) -> None:
                sizes = {row: sum(rows), column: sum(columns)}
                body({**position, row: i, column: j}, sizes)

            blocks.each(lambda rows, columns: None, block)

        if self._epilogue is not None:
            element = ir.MemRefType(roles.c.buffer.type).element_type
            sums = memref.AllocOp(ir.MemRefType.get(list(blocks.sizes), element), [], []).result
            fill_with_zero(sums)
            self._sums = (sums, blocks)
        elif self._starts_at_zero:
            single = dict.fromkeys(roles.around, 1)
            each_block(
                lambda at, sizes: fill_with_zero(
                    part_of(roles.c.buffer, roles.c.map, at, {**single, **sizes})
                )
            )
        self._adds = True
        whole = self._depth // terms * terms
        for_steps(index(0), index(whole), terms, lambda begin: part(begin, terms))
        if whole < self._depth:
            part(index(whole), self._depth - whole)
        self._adds = not self._starts_at_zero
        if self._epilogue is not None:
            epilogue, self._sums = self._epilogue, None

            def follow(at: Position, sizes: Mapping[int, int]) -> None:
                tile = subview(sums, blocks.within(at[row], at[column]), [sizes[row], sizes[column]])
                epilogue.emit(tile, (row, column), at, sizes)

            each_block(follow)

    def _multiply(self, position: Position, blocks: Blocks) -> None:
        """Add a part of the terms to all sums of a task."""
        roles = self._roles
        is_tile = isinstance(self._unit, str)
        byte = ir.IntegerType.get_signless(8)
        shapes = memref.AllocOp(ir.MemRefType.get([64], byte), [], []).result if is_tile else None

        def configured(rows: tuple[int, ...], columns: tuple[int, ...]) -> Tiles | None:
            if not isinstance(self._unit, str):
                return None
            tiles = Tiles(rows, columns, self._unit)
            assert shapes is not None
            tiles.configure(shapes)
            return tiles

        def block(
            i: ir.Value, j: ir.Value, rows: tuple[int, ...], columns: tuple[int, ...], tiles: Tiles | None
        ) -> None:
            self._block({**position, roles.row: i, roles.column: j}, rows, columns, tiles)

        blocks.each(configured, block)
        if is_tile:
            release_tiles()

    def _block(
        self, at: dict[int, ir.Value], rows: tuple[int, ...], columns: tuple[int, ...], tiles: Tiles | None
    ) -> None:
        roles, extents = self._roles, (sum(rows), sum(columns))
        place = (at, roles.row, roles.column)
        if self._product.is_turned:
            assert tiles is not None
            sums = sums_of_block(*extents)
            tile_block(self._a, self._part, tiles, place, sums, False)
            store_turned(self._product, sums, at, extents, self._epilogue)
            return
        target = self._target(at, *extents)
        if tiles is not None:
            tile_block(self._a, self._part, tiles, place, target, self._adds)
        else:
            assert isinstance(self._unit, Vectors)
            sizes = (rows[0], columns)
            vector_block(self._a, self._part, self._unit, sizes, place, target, self._adds)
        if self._epilogue is not None and self._sums is None:
            whole = {roles.row: extents[0], roles.column: extents[1]}
            self._epilogue.emit(target.buffer, (roles.row, roles.column), at, whole)

    def _target(self, at: Position, rows: int, columns: int) -> Target:
        """Where sums of a block are stored."""
        c, roles = self._roles.c, self._roles
        if self._sums is not None:
            buffer, blocks = self._sums
            row, column = blocks.within(at[roles.row], at[roles.column])
            stride = blocks.sizes[1] * 4
            return Target(buffer, stride, offset([(row, stride), (column, 4)]))
        if self._epilogue is not None:
            element = ir.MemRefType(c.buffer.type).element_type
            type_ = ir.MemRefType.get([rows, columns], element)
            return Target(memref.AllocOp(type_, [], []).result, columns * 4, index(0))
        strides = {d: stride_along(c.buffer, c.map, d) * 4 for d in at}
        return Target(c.buffer, strides[roles.row], offset([(at[d], strides[d]) for d in at]))


def _starts_at_zero(product: NarrowProduct) -> bool:
    fill = sole_fill(product.roles.generic, product.roles.c.buffer)
    return fill is not None and _is_zero(fill.operands[0])


def _is_zero(value: ir.Value) -> bool:
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return False
    constant = value.owner.operation.attributes["value"]
    if isinstance(constant, ir.IntegerAttr):
        return constant.value == 0
    return isinstance(constant, ir.FloatAttr) and constant.value == 0.0
