"""Multiply matrices by the packed product that all share, tile by tile, between what makes factors and what follows.

    e[k, n] = exp(w[k, n])                             for each task of some rows m and columns n:
    c[m, n] = sum over k of a[m, k] * e[k, n]            for each part of the terms k:
    d[m, n] = f(c[m, n], ...)                   ->         panel[k, n] = exp(w[k, n])
                                                           call @lamina_product_f32_nn(c, a, panel)
                                                         d[m, n] = f(c[m, n], ...) on the tile

The function is that of `product_code.py`, of which this module gets a declaration: it is compiled once for all
kernels, while code for the shape (`cpu-block-contractions`) has the element-wise op in each kind of its blocks. A
tile stays in the second cache until the op reads it. Sums are stored where the op overwrites them, if it has such
a place, else in a tile of the task's own.

A factor that an element-wise op makes for the product alone has no place in memory, unless that takes no time beside
the products: a weight of bf16 or bytes is read as such, once. Tasks are columns where the second factor is made so,
rows where the first is. Where both are, the one that costs more; both, if batches make tasks enough. The other is
made before.

Leaves alone contractions that are no products of two matrices whose rows or columns are contiguous, and those without
such a factor for which code for the shape is faster by `analysis/product_choice.py`.

example: test/passes/kernels/cpu/gemm/multiply_tiles.mlir
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, prod

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import add, for_each, for_steps, for_tasks, index, regions
from lamina.passes.framework.base import Pass
from lamina.passes.kernels.cpu.gemm.contraction import Contraction, is_narrow, read_contraction
from lamina.passes.kernels.cpu.gemm.epilogue import Epilogue, can_be_done_together, find_epilogue
from lamina.passes.kernels.cpu.gemm.panels import Panels, choose_panels, choose_tiles
from lamina.passes.kernels.cpu.gemm.product_call import (
    ProductCall,
    declare_called,
    starts_from_zero,
)
from lamina.passes.kernels.cpu.gemm.prologue import Prologue, find_prologue
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.parallel import split
from lamina.passes.linalg.analysis.reducing import reducing_on_buffers
from lamina.passes.linalg.analysis.structure import (
    part_of,
    places_of,
    read_generic,
    sole_fill,
)
from lamina.passes.stablehlo.analysis.gemm import Gemm, Matrix
from lamina.passes.stablehlo.analysis.product_choice import implementation_of, is_done_in_tiles
from lamina.records import Record

_LEAST_SHARE = 0.03  # shape: of the time of the products: what a factor is made in, if it is to be made in panels


class MultiplyTiles(Pass):
    """See the module's docstring."""

    vector_bits: int = 512

    def run(self, module: ir.Module) -> None:
        called = []
        for op in reducing_on_buffers(module):
            if op.parent.name != "func.func":
                continue
            contraction = read_contraction(read_generic(op))
            product = None if contraction is None else _read(contraction, self.vector_bits)
            if product is not None:
                called.append(product.call.symbol)
                _Emitter(product).replace()
                self.count("products")
        declare_called(module, called)


class _Product(Record):
    """A contraction that is a product of matrices, and all that is done with it."""

    contraction: Contraction
    call: ProductCall
    panels: Panels
    prologues: Mapping[Factor, Prologue]
    """What makes the factors that panels are of."""
    fill: ir.Operation
    epilogue: Epilogue | None
    sums: Factor | None
    """Where sums are before what follows; None for a tile of each task."""

    @property
    def last(self) -> ir.Operation:
        """The op in front of which all can be done."""
        return self.contraction.generic.op if self.epilogue is None else self.epilogue.generic.op

    @property
    def nanoseconds(self) -> float:
        """What all of it takes a core, roughly, but for what follows."""
        return self.contraction.nanoseconds + sum(made.cost for made in self.prologues.values())


def _read(contraction: Contraction, vector_bits: int) -> _Product | None:
    generic, factors = contraction.generic, (contraction.a, contraction.b)
    by = implementation_of(generic.op.parent)
    call = ProductCall.of(contraction, vector_bits)
    fill = sole_fill(generic, contraction.c.buffer)
    if call is None or fill is None or not starts_from_zero(fill) or by == "kernel":
        return None
    if any(is_narrow(factor, contraction) for factor in factors):
        return None
    found = {factor: find_prologue(generic.op, factor) for factor in factors}
    prologues = {factor: made for factor, made in found.items() if made is not None}
    epilogue = find_epilogue(generic, fill)
    sums = contraction.c if epilogue is None else _overwritten(contraction, epilogue)
    panels = None
    costs = [made.cost for made in prologues.values()]
    if len(contraction.reduced) == 1 and max(costs, default=0) > _LEAST_SHARE * contraction.nanoseconds:
        panels = choose_panels(contraction, prologues, vector_bits, sums is None)
    if panels is not None:
        prologues = {factor: prologues[factor] for factor in panels.made}
        product = _Product(contraction, call, panels, prologues, fill, epilogue, sums)
        own = [*(made.generic.op for made in prologues.values()), fill, generic.op]
        if can_be_done_together([*own, product.last], product.last):
            return product
    gemm = _gemm(contraction, call)
    if not is_done_in_tiles(gemm, call.element, call.machine, by):
        return None
    panels = choose_tiles(contraction, gemm, call, sums is None)
    return _Product(contraction, call, panels, {}, fill, epilogue, sums)


def _gemm(contraction: Contraction, call: ProductCall) -> Gemm:
    extents = contraction.generic.extents
    batch = tuple(extents[d] for d in contraction.around)
    matrices = (
        Matrix(turned, bytes_ // call.shape.bytes, (0,) * len(batch))  # wherever they lie
        for turned, bytes_ in zip(
            (call.shape.a_turned, call.shape.b_turned), call.leading(contraction.a, contraction.b), strict=True
        )
    )
    return Gemm(batch, extents[call.row], extents[call.column], call.terms, *matrices)


def _overwritten(contraction: Contraction, epilogue: Epilogue) -> Factor | None:
    """Where the sums may be before the op that follows overwrites them: what it writes, if that is alike."""
    generic = epilogue.generic
    output, *others = generic.outputs
    if others or contraction.around or output.type != contraction.c.buffer.type:
        return None
    if generic.output_maps[0] != generic.input_maps[epilogue.operand] or epilogue.overwrites_inputs():
        return None
    if output in contraction.generic.inputs:
        return None
    return replace(contraction.c, buffer=output)


class _Emitter:
    """Emits one product in front of the last of its ops."""

    def __init__(self, product: _Product) -> None:
        self._product, self._call, self._panels = product, product.call, product.panels
        self._contraction = product.contraction
        self._extents = product.contraction.generic.extents
        self._rows, self._columns = (self._extents[d] for d in (self._call.row, self._call.column))
        self._terms = self._call.terms
        self._parts = ceil(self._terms / self._panels.depth)

    def replace(self) -> None:
        """Do the product in tiles, and erase what it was."""
        product, op = self._product, self._contraction.generic.op
        makes_rows = self._contraction.a in product.prologues  # in panels of one size
        with ir.InsertionPoint(product.last), op.location:
            for rows in regions(self._rows, self._panels.rows) if makes_rows else [(0, self._rows, self._panels.rows)]:
                for columns in regions(self._columns, self._panels.columns):
                    self._region(rows, columns)
        makers = [made.generic.op for made in product.prologues.values()]
        follows = [] if product.epilogue is None else [product.epilogue.generic.op]
        buffers = [*(factor.buffer for factor in product.prologues), self._contraction.c.buffer]
        for erased in (*follows, op, product.fill, *makers):
            erased.erase()
        for buffer in buffers:
            if not isinstance(buffer.owner, ir.Block) and not list(buffer.uses):
                buffer.owner.erase()

    def _region(self, rows: tuple[int, int, int], columns: tuple[int, int, int]) -> None:
        """All tiles of so many columns, between two places; the last of some rows may have fewer."""
        outer = self._panels.outer
        dims = (*outer, self._call.row, self._call.column)
        lows = [0] * len(outer) + [rows[0], columns[0]]
        highs = [*(self._extents[d] for d in outer), rows[1], columns[1]]
        steps = [1] * len(outer) + [rows[2], columns[2]]
        counts = [ceil((high - low) / step) for low, high, step in zip(lows, highs, steps, strict=True)]
        several = [d for d, count in enumerate(counts) if count > 1]
        share = (rows[1] - rows[0]) * (columns[1] - columns[0]) / (self._rows * self._columns)
        tasks, grain = split(
            [counts[d] for d in several], self._product.nanoseconds * share, self._call.machine
        )

        def task(values: list[ir.Value]) -> None:
            at = {dims[d]: index(lows[d]) for d in range(len(dims)) if d not in several}
            at |= {dims[d]: value for d, value in zip(several, values, strict=True)}
            height: ir.Value | int = rows[2]
            if (rows[1] - rows[0]) % rows[2]:
                left = arith.SubIOp(index(rows[1]), at[self._call.row]).result
                height = arith.MinSIOp(index(rows[2]), left).result
            self._tile(at, height, rows[2], columns[2])

        for_tasks(
            [highs[d] for d in several], tasks, grain, task,
            lows=[lows[d] for d in several], steps=[steps[d] for d in several],
        )  # fmt: skip

    def _tile(self, at: dict[int, ir.Value], height: ir.Value | int, rows: int, columns: int) -> None:
        """All sums of `height` rows, of which there are at most `rows`, and so many columns, and what follows."""
        call, inner = self._call, self._panels.inner
        sizes = dict.fromkeys(self._panels.outer, 1) | {call.row: rows, call.column: columns}
        sums = self._product.sums or self._own_tile(rows, columns)
        made = {factor: self._panel_of(factor, sizes) for factor in self._product.prologues}

        def part(number: ir.Value) -> None:
            begin = first = index(0)
            depth, terms = self._panels.depth, self._terms
            if self._parts > 1:
                begin = wanted = arith.MulIOp(number, index(depth)).result
                if terms % depth:  # panels are of one size: the last begins earlier, and what was added is left out
                    begin = arith.MinSIOp(wanted, index(terms - depth)).result
                    first = arith.SubIOp(wanted, begin).result
            begins = {**at, call.depth: begin}
            for factor, prologue in self._product.prologues.items():
                prologue.emit(made[factor].buffer, begins, {**sizes, call.depth: depth})
            count = arith.SubIOp(index(depth), first).result if self._parts > 1 and terms % depth else depth
            adds = None
            if self._parts > 1:
                adds = arith.MinSIOp(number, index(1)).result

            def multiply(positions: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
                inside = dict(zip(inner, positions, strict=True))
                absolute = {**at, **inside, call.depth: add(begin, first)}
                factors = [
                    (made[factor], {**inside, call.depth: first}) if factor in made else (factor, absolute)
                    for factor in (self._contraction.a, self._contraction.b)
                ]
                where = sums, self._place_of_sums(at, inside, rows)
                call.emit((factors[0], factors[1]), where, (height, columns, count), rows, adds)
                return []

            for_each([self._extents[d] for d in inner], [], multiply)

        for_steps(index(0), index(self._parts), 1, part)
        if self._product.epilogue is not None:
            self._follow(self._product.epilogue, at, height, sizes, sums)

    def _follow(
        self, epilogue: Epilogue, at: dict[int, ir.Value], height: ir.Value | int, sizes: dict[int, int],
        sums: Factor,
    ) -> None:  # fmt: skip
        """What follows on a tile, row by row: how many there are is known when it runs."""
        call, inner = self._call, self._panels.inner
        of_row = dict.fromkeys(self._contraction.around, 1) | {**sizes, call.row: 1}

        def row(inside: dict[int, ir.Value], i: ir.Value) -> None:
            here = {**at, **inside, call.row: add(at[call.row], i)}
            place = self._place_of_sums(at, inside, sizes[call.row])
            values = part_of(sums.buffer, sums.map, {**place, call.row: add(place[call.row], i)}, of_row)
            epilogue.emit(values, (call.row, call.column), here, of_row)

        def rows(positions: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
            inside = dict(zip(inner, positions, strict=True))
            high = index(height) if isinstance(height, int) else height
            for_steps(index(0), high, 1, lambda i: row(inside, i))
            return []

        for_each([self._extents[d] for d in inner], [], rows)

    def _panel_of(self, factor: Factor, sizes: dict[int, int]) -> Factor:
        """Where a task makes its part of a factor."""
        own = {**sizes, self._call.depth: self._panels.depth}
        shape = [own.get(d, self._extents[d]) for d in places_of(factor.map)]
        type_ = ir.MemRefType.get(shape, self._contraction.element)
        return replace(factor, buffer=memref.AllocOp(type_, [], []).result)

    def _own_tile(self, rows: int, columns: int) -> Factor:
        """Where a task keeps its sums for itself: its rows for one position inside after the other."""
        shape = [prod(self._extents[d] for d in self._panels.inner) * rows, columns]
        tile = memref.AllocOp(ir.MemRefType.get(shape, self._contraction.element), [], []).result
        places = [ir.AffineDimExpr.get(d) for d in (self._call.row, self._call.column)]
        return Factor(tile, ir.AffineMap.get(len(self._extents), 0, places))

    def _place_of_sums(
        self, at: dict[int, ir.Value], inside: dict[int, ir.Value], rows: int
    ) -> dict[int, ir.Value]:
        """Where the sums of a task begin for a position along the dimensions inside."""
        if self._product.sums is not None:
            return {**at, **inside}
        place = index(0)
        for d, position in inside.items():
            place = add(arith.MulIOp(place, index(self._extents[d])).result, position)
        return {self._call.row: arith.MulIOp(place, index(rows)).result}
