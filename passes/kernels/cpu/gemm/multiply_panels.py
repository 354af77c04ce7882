"""Multiply matrices of which an element-wise op makes one on the way, a panel at a time.

    %e = exp(%w)                            for each task of some columns n, and a part of the terms k:
    c[m, n] += a[m, k] * e[k, n]      ->      panel[k, n] = exp(w[k, n])
                                              c[m, n] += a[m, k] * panel[k, n], block by block

So is a large second factor for some rows: its panels are copied, as its rows lie far from each other.
What a task makes it reads again from its own cache, and the matrix has no place in memory: a weight of
bf16 or bytes is read as such, once. Tasks are columns where the second factor is made so, rows where
the first is. Where both are, the one that costs more; both, if batches make tasks enough. A second factor
that is not contiguous along its columns is made turned: a panel's rows are. An
element-wise op that follows, and alone reads c, is done as in `cpu-block-contractions`, whose
blocks these are.

Leaves alone sums over several dimensions, what is made in no time beside the products, and products that
would make too few tasks, or tasks of few columns.

example: test/passes/kernels/cpu/gemm/multiply_panels.mlir
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import add, for_each, for_steps, for_tasks, index, regions
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.contraction import (
    Contraction,
    choose_tiling,
    is_narrow,
    read_contraction,
)
from lamina.passes.kernels.cpu.gemm.contraction_blocks import (
    Part,
    Sums,
    blocks_of_rows,
    follow,
    for_column_blocks,
    steps_ahead,
)
from lamina.passes.kernels.cpu.gemm.epilogue import Epilogue, can_be_done_together, find_epilogue
from lamina.passes.kernels.cpu.gemm.panels import Panels, choose_panels
from lamina.passes.kernels.cpu.gemm.prologue import Copied, Prologue, find_prologue
from lamina.passes.kernels.cpu.gemm.register_blocks import Block, Factor
from lamina.passes.linalg.analysis.parallel import split
from lamina.passes.linalg.analysis.reducing import reducing_on_buffers
from lamina.passes.linalg.analysis.structure import (
    places_of,
    read_generic,
    sole_fill,
    stride_along,
    subview,
)
from lamina.records import Record

_COPIED, _COPIED_ROWS = 2.5, (32, 192)
_TRANSPOSED, _TRANSPOSED_ROWS = 1 / 8, (16, 192)
_WIDE = 1  # of f64, of which panels are copied for any rows but so few
_LEAST_SHARE = 0.03  # shape
"""Of the time of the products: what a factor is made in, if the rest is to be worth smaller blocks."""


class MultiplyPanels(Pass):
    """See the module's docstring."""

    vector_bits: int = 512

    def run(self, module: ir.Module) -> None:
        for op in reducing_on_buffers(module):
            if op.parent.name != "func.func":
                continue
            contraction = read_contraction(read_generic(op))
            product = None if contraction is None else _read(contraction, self)
            if product is not None:
                _Emitter(product, self).replace()
                self.count("products")


class _Product(Record):
    """A contraction whose factors are made in panels, and all that is done with it."""

    contraction: Contraction
    prologues: Mapping[Factor, Prologue | Copied]
    panels: Panels
    cost: float
    fill: ir.Operation
    epilogue: Epilogue | None

    @property
    def last(self) -> ir.Operation:
        """The op in front of which all can be done."""
        return self.contraction.generic.op if self.epilogue is None else self.epilogue.generic.op


def _read(contraction: Contraction, options: MultiplyPanels) -> _Product | None:
    generic, factors = contraction.generic, (contraction.a, contraction.b)
    if len(contraction.reduced) != 1 or any(is_narrow(factor, contraction) for factor in factors):
        return None
    prologues: dict[Factor, Prologue | Copied]
    found = {factor: find_prologue(generic.op, factor) for factor in factors}
    prologues = {factor: made for factor, made in found.items() if made is not None}
    multiplied = contraction.nanoseconds
    if prologues and max(made.cost for made in prologues.values()) < _LEAST_SHARE * multiplied:
        return None
    if not prologues and _is_worth_copying(contraction):
        prologues[contraction.b] = Copied(contraction.b, machine_of(generic.op))
    turns = contraction.packs
    if turns:
        if contraction.b not in prologues:
            return None
        turned = prologues.pop(contraction.b).turned(contraction.column)
        contraction = replace(contraction, b=turned.factor, packs=False)
        prologues[turned.factor] = turned
    fill = sole_fill(generic, contraction.c.buffer)
    if not prologues or fill is None:
        return None
    cost = multiplied + sum(made.cost for made in prologues.values())
    epilogue = find_epilogue(generic, fill)
    panels = choose_panels(
        contraction, prologues, cost >= machine_of(generic.op).parallel_ns, options.vector_bits, epilogue is not None
    )
    if panels is None or (turns and contraction.b not in panels.made):
        return None
    own = [op for made in prologues.values() for op in made.ops] + [fill, generic.op]
    prologues = {factor: prologues[factor] for factor in panels.made}
    product = _Product(contraction, prologues, panels, cost, fill, epilogue)
    return product if can_be_done_together([*own, product.last], product.last) else None


def _is_worth_copying(contraction: Contraction) -> bool:
    """Whether the second factor is so large that each block of rows would fetch it again, or has to be laid
    out, and those are enough to make up for a copy, but few enough for all to be in each task."""
    rows = contraction.generic.extents[contraction.row]
    least, most = _TRANSPOSED_ROWS if contraction.packs else _COPIED_ROWS
    copied = _COPIED
    if contraction.element_bytes == 8 and _reads_rows(contraction):
        most, copied = rows, _WIDE
    caches = contraction.bytes_of_b / machine_of(contraction.generic.op).l2_bytes
    large = caches >= (_TRANSPOSED if contraction.packs else copied)
    return large and least <= rows <= most and not contraction.around


def _reads_rows(contraction: Contraction) -> bool:
    """Whether the terms of a sum lie side by side in the first factor."""
    factor, (reduced,) = contraction.a, contraction.reduced
    return stride_along(factor.buffer, factor.map, reduced) == 1


class _Emitter:
    """Emits one product in front of the last of its ops."""

    def __init__(self, product: _Product, options: MultiplyPanels) -> None:
        self._product, self._options = product, options
        self._contraction = contraction = product.contraction
        self._panels = panels = product.panels
        self._initial = product.fill.operands[0]
        self._extents = list(contraction.generic.extents)
        (self._depth_dim,) = contraction.reduced
        self._parts = math.ceil(self._extents[self._depth_dim] / panels.depth)
        self._sizes = {d: 1 for d in panels.outer}

    def replace(self) -> None:
        """Do the product in panels, and erase what it was."""
        product, op = self._product, self._contraction.generic.op
        with ir.InsertionPoint(product.last), op.location:
            row, column = self._contraction.row, self._contraction.column
            rows, columns = self._extents[row], self._extents[column]
            for first_row, last_row, some_rows in regions(rows, self._panels.rows):
                for first_column, last_column, some in regions(columns, self._panels.columns):
                    lows = [0] * len(self._panels.outer) + [first_row, first_column]
                    highs = [*(self._extents[d] for d in self._panels.outer), last_row, last_column]
                    self._region(lows, highs, some_rows, some)
        temporaries = [*(f.buffer for f in product.prologues), self._contraction.c.buffer]
        if product.epilogue is not None:
            product.epilogue.generic.op.erase()
        makers = [maker for made in product.prologues.values() for maker in made.ops]
        for erased in (op, product.fill, *makers):
            erased.erase()
        for buffer in temporaries:
            if not isinstance(buffer.owner, ir.Block) and not list(buffer.uses):
                buffer.owner.erase()

    def _region(self, lows: list[int], highs: list[int], rows: int, columns: int) -> None:
        """Rows and columns of which all tasks have the same number."""
        outer, contraction = self._panels.outer, self._contraction
        steps = [1] * len(outer) + [rows, columns]
        counts = [(high - low) // step for low, high, step in zip(lows, highs, steps, strict=True)]
        share = math.prod(counts[-2:]) * rows * columns / (
            self._extents[contraction.row] * self._extents[contraction.column]
        )
        tasks, grain = split(
            [count for count in counts if count > 1],
            self._product.cost * share,
            machine_of(self._product.contraction.generic.op),
        )
        self._sizes |= {contraction.row: rows, contraction.column: columns}
        dimensions = (*outer, contraction.row, contraction.column)
        space = list(zip(dimensions, lows, highs, steps, counts, strict=True))
        several = [row for row in space if row[-1] > 1]

        def task(values: list[ir.Value]) -> None:
            single = {d: index(low) for d, low, _, _, count in space if count == 1}
            self._task(single | dict(zip((row[0] for row in several), values, strict=True)))

        for_tasks(
            [row[2] for row in several], tasks, grain, task,
            lows=[row[1] for row in several], steps=[row[3] for row in several],
        )  # fmt: skip

    def _task(self, at: dict[int, ir.Value]) -> None:
        """All sums of some rows and columns."""
        contraction, epilogue = self._contraction, self._product.epilogue
        buffers = {
            factor: self._panel_of(factor) for factor in self._product.prologues
        }
        rows, columns = self._sizes[contraction.row], self._sizes[contraction.column]
        inner = [self._extents[d] for d in self._panels.inner]
        tile = None
        if epilogue is not None and self._parts > 1:
            shape = [math.prod(inner) * rows, columns]
            tile = memref.AllocOp(ir.MemRefType.get(shape, contraction.element), [], []).result
        depth, terms = self._panels.depth, self._extents[self._depth_dim]

        def part(number: ir.Value) -> None:
            first = index(0)
            begin = first
            if self._parts > 1:
                wanted = arith.MulIOp(number, index(depth)).result
                # The last part may begin earlier, and leave out the terms that were added before.
                begin = wanted
                if terms % depth:
                    begin = arith.MinSIOp(wanted, index(terms - depth)).result
                    first = arith.SubIOp(wanted, begin).result
            place = {**at, self._depth_dim: begin}
            sizes = {**self._sizes, self._depth_dim: depth}
            for factor, made in self._product.prologues.items():
                made.emit(buffers[factor].buffer, place, sizes)
            a, b = (
                buffers.get(factor) or factor.part(place, sizes)
                for factor in (contraction.a, contraction.b)
            )
            state = None
            if self._parts > 1:
                is_first = arith.CmpIOp(arith.CmpIPredicate.eq, number, index(0)).result
                state = Part((first, index(depth)), is_first)
            self._blocks(at, (a, b), tile, state)

        for_steps(index(0), index(self._parts), 1, part)
        if epilogue is None or tile is None:
            return

        def done(inside: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
            sums = subview(tile, [self._row_of_tile(inside), 0], [rows, columns])
            position = {**at, **dict(zip(self._panels.inner, inside, strict=True))}
            epilogue.emit(sums, (contraction.row, contraction.column), position, self._sizes)
            return []

        for_each(inner, [], done)

    def _panel_of(self, factor: Factor) -> Factor:
        """Where a task makes its part of a factor."""
        sizes = {**self._sizes, self._depth_dim: self._panels.depth}
        shape = [sizes.get(d, self._extents[d]) for d in places_of(factor.map)]
        type_ = ir.MemRefType.get(shape, self._contraction.element)
        return Factor(memref.AllocOp(type_, [], []).result, factor.map).in_a_row()

    def _row_of_tile(self, inside: list[ir.Value]) -> ir.Value:
        """Where the rows begin in the tile that belong to a position along the dimensions inside."""
        place = index(0)
        for d, at in zip(self._panels.inner, inside, strict=True):
            place = add(arith.MulIOp(place, index(self._extents[d])).result, at)
        return arith.MulIOp(place, index(self._sizes[self._contraction.row])).result

    def _blocks(
        self, at: dict[int, ir.Value], factors: tuple[Factor, Factor], tile: ir.Value | None,
        part: Part | None,
    ) -> None:  # fmt: skip
        """Add a part of the terms to all sums of a task, in whose own places the factors are indexed."""
        contraction, panels = self._contraction, self._panels
        row, column = contraction.row, contraction.column
        rows, columns = self._sizes[row], self._sizes[column]
        tiling = choose_tiling(contraction, self._options.vector_bits, rows, columns)
        target = contraction.c
        if tile is not None:
            target = Factor(tile, _rows_and_columns(contraction)).in_a_row()
        elif self._product.epilogue is None:
            target = target.part(at, self._sizes)
        local = {d: index(0) for d in panels.outer}
        extents = [*self._extents]
        extents[self._depth_dim] = panels.depth
        ahead = steps_ahead(contraction, factors[1], self._depth_dim)

        def on_block(
            inside: list[ir.Value], j: ir.Value, count: int, widths: tuple[int, ...], i: ir.Value
        ) -> None:
            block = Block(row, column, contraction.reduced, count, widths, contraction.element, ahead)
            own = dict(zip(panels.inner, inside, strict=True))
            position = {**local, **own, row: i, column: j}
            place = position
            if tile is not None:
                place = {**position, row: add(self._row_of_tile(inside), i)}
            sums = Sums(target, self._initial, part)
            values = sums.of(block, factors, extents, position, place)
            epilogue = self._product.epilogue
            if epilogue is None or tile is not None:
                sums.store(block, place, values)
                return
            absolute = {**at, **own, row: add(at[row], i), column: add(at[column], j)}
            follow(epilogue, block, absolute, values)

        def on_columns(inside: list[ir.Value], j: ir.Value, widths: tuple[int, ...]) -> None:
            for low, high, step in blocks_of_rows(rows, tiling.most_rows):
                body = partial(on_block, inside, j, step, widths)
                for_steps(index(low), index(high), step, body)

        def on_inner(inside: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
            for_column_blocks(tiling, columns, lambda j, widths: on_columns(inside, j, widths))
            return []

        for_each([self._extents[d] for d in panels.inner], [], on_inner)


def _rows_and_columns(contraction: Contraction) -> ir.AffineMap:
    places = [ir.AffineDimExpr.get(d) for d in (contraction.row, contraction.column)]
    return ir.AffineMap.get(contraction.generic.rank, 0, places)
