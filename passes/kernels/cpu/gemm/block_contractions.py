"""Compute contractions and convolutions in blocks that stay in vector registers.

    c[h, w, f] += x[h + i, w + j, k] * k[i, j, k, f]
runs over blocks of some w (rows) by up to four vectors of f (columns), for each of which the sum
over i, j, k is kept in registers; see `register_blocks`. Nothing is rearranged, but for a factor
that is not contiguous along the columns: that is laid out first. If the summed part of that factor
is larger than the second-level cache, the outer summed dimensions go around the blocks, which then
add to what c holds; so do parts of the sums of a matrix product. Rows of that factor that are far
from each other are fetched ahead, which processors only do within a page. An element-wise op that
follows, and alone reads c, is done block by block, or, after parts of sums, on all rows of a task.

Blocks are tasks when there is work for several cores and no task around. For f32 and f64; others stay `linalg.generic`
and so does what is too small, see `contraction`.

example: test/passes/kernels/cpu/gemm/block_contractions.mlir
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import add, for_steps, for_tasks, index
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.contraction import (
    Contraction,
    choose_tiling,
    read_contraction,
    rows_of_block,
)
from lamina.passes.kernels.cpu.gemm.contraction_blocks import (
    DEPTH,
    Part,
    Sums,
    blocks_of_rows,
    follow,
    for_column_blocks,
    steps_ahead,
)
from lamina.passes.kernels.cpu.gemm.epilogue import Epilogue, find_epilogue
from lamina.passes.kernels.cpu.gemm.factor_copies import laid_out
from lamina.passes.kernels.cpu.gemm.register_blocks import Block
from lamina.passes.linalg.analysis.parallel import split
from lamina.passes.linalg.analysis.reducing import reducing_on_buffers
from lamina.passes.linalg.analysis.structure import (
    PART,
    part_of,
    read_generic,
    sole_fill,
)

# Of the last cache: the laid-out factor, walked again for each block of rows, and a chunk of one that is larger.
_WHOLE, _CHUNK = 1 / 32, 1 / 256
_FEW_TASKS, _ENOUGH_TASKS = 4, 16  # shape
_FEW_REPEATED = 32  # shape: rows of which one may be done twice

Position = dict[int, ir.Value]


class BlockContractions(Pass):
    """See the module's docstring."""

    vector_bits: int = 512

    def run(self, module: ir.Module) -> None:
        found = [
            read_contraction(read_generic(op))
            for op in reducing_on_buffers(module)
            if op.parent.name == "func.func" or PART in op.attributes
        ]
        for contraction in found:
            if contraction is None:
                continue
            op = contraction.generic.op
            contraction = laid_out(contraction)
            emitter = _Emitter(contraction, self)
            with ir.InsertionPoint(emitter.last), op.location:
                emitter.emit()
            temporary = contraction.c.buffer
            op.erase()
            if not isinstance(temporary.owner, ir.Block) and not list(temporary.uses):
                temporary.owner.erase()
            self.count("blocked")


class _Emitter:
    """Emits one contraction in front of it."""

    def __init__(self, contraction: Contraction, options: BlockContractions) -> None:
        self._contraction = contraction
        self._is_in_task = PART in contraction.generic.op.attributes
        self._options = options
        machine = machine_of(contraction.generic.op)
        self._machine = machine.alone if self._is_in_task else machine
        self._extents = contraction.generic.extents
        self._tiling = choose_tiling(contraction, options.vector_bits)
        self._outer, self._inner = self._split_reduced()
        self._depth = self._choose_depth()
        self._part: Part | None = None
        generic = contraction.generic
        fill = sole_fill(generic, contraction.c.buffer)
        self._initial = None
        self._epilogue: Epilogue | None = None
        if not self._outer and fill is not None:
            self._initial = fill.operands[0]
            self._epilogue = find_epilogue(generic, fill)
            fill.erase()
        if self._depth and self._epilogue is not None:
            self._sum_in_place(self._epilogue)

    @property
    def last(self) -> ir.Operation:
        """The op in front of which to emit all: what follows the contraction, or itself."""
        if self._epilogue is None:
            return self._contraction.generic.op
        return self._epilogue.generic.op

    def _choose_depth(self) -> int:
        """How many terms of the sums to add at a time; 0 for all."""
        contraction = self._contraction
        if contraction.bytes_of_b <= _WHOLE * self._machine.l3_bytes or len(contraction.reduced) != 1:
            return 0
        terms = self._extents[contraction.reduced[0]]
        if terms <= DEPTH or contraction.around:
            return 0
        return math.ceil(terms / math.ceil(terms / DEPTH))

    def _sum_in_place(self, epilogue: Epilogue) -> None:
        """Let the sums grow where the op that follows will overwrite them, if it has such a place."""
        contraction, (output, *others) = self._contraction, epilogue.generic.outputs
        map_of_output = epilogue.generic.output_maps[0]
        if others or output.type != contraction.c.buffer.type:
            return
        if map_of_output != epilogue.generic.input_maps[epilogue.operand]:
            return
        if output in epilogue.generic.inputs or output in contraction.generic.inputs:
            return
        self._contraction = replace(contraction, c=replace(contraction.c, buffer=output))

    def _split_reduced(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The summed dimensions around the blocks, and those within."""
        reduced = self._contraction.reduced
        if self._contraction.bytes_of_b <= _WHOLE * self._machine.l3_bytes:
            return (), reduced
        columns = min(sum(self._tiling.middle or self._tiling.end), 64)
        count = 0
        while count < len(reduced) - 1:
            inner = math.prod(self._extents[d] for d in reduced[count:])
            if inner * columns * 4 <= _CHUNK * self._machine.l3_bytes:
                break
            count += 1
        return reduced[:count], reduced[count:]

    def emit(self) -> None:
        extent = self._extents[self._contraction.row]
        chunk = self._chunk()
        if chunk:
            self._chunks(chunk)
        else:
            rows = rows_of_block(extent, self._tiling.most_rows)
            whole = extent // rows * rows
            self._rows(0, whole, rows)
            if whole < extent:
                self._rows(whole, extent, extent - whole)
        if self._epilogue is not None:
            self._epilogue.generic.op.erase()

    def _nest(
        self,
        dimensions: Sequence[int],
        lows: Sequence[int],
        highs: Sequence[int],
        steps: Sequence[int],
        tasks: int,
        grain: int,
        inside: Callable[[Position], None],
    ) -> None:
        """Loops over dimensions, the leading ones as tasks, around `inside`."""

        def body(values: list[ir.Value]) -> None:
            self._see_in_rows()
            inside(dict(zip(dimensions, values, strict=True)))

        for_tasks(highs, tasks, grain, body, lows=lows, steps=steps)

    def _see_in_rows(self) -> None:
        """Find what is read and written by one index each, where that can be; in the task, which then takes
        little else from outside."""
        contraction = self._contraction
        a, b, c = contraction.a.in_a_row(), contraction.b.in_a_row(), contraction.c
        if self._depth or self._epilogue is None:  # otherwise c is in registers alone
            c = c.in_a_row()
        self._contraction = replace(contraction, a=a, b=b, c=c)

    def _chunk(self) -> int:
        """Rows of a task, so many for each; 0 if blocks of equal size make better ones."""
        extent, most = self._extents[self._contraction.row], self._tiling.most_rows
        if self._outer or extent <= most:
            return 0
        tasks = math.prod(self._extents[d] for d in self._contraction.around)
        if tasks >= _ENOUGH_TASKS or self._is_in_task:
            return extent
        counts = (n for n in range(_FEW_TASKS, _ENOUGH_TASKS + 1, 2) if extent % n == 0)
        chunks = [extent // n for n in counts if extent // n >= most // 2]
        return max(chunks, key=lambda chunk: (chunk / math.ceil(chunk / most), -chunk), default=0)

    def _chunks(self, chunk: int) -> None:
        """Tasks of several blocks, whose numbers of rows differ by no more than one. Where that would be a
        few rows of the last block, it begins earlier: one kind of block is half as much to compile."""
        contraction = self._contraction
        row, around = contraction.row, contraction.around
        kinds = blocks_of_rows(chunk, self._tiling.most_rows)
        rows = kinds[0][2]
        blocks = math.ceil(chunk / rows)
        repeats = 0 < blocks * rows - chunk <= chunk // _FEW_REPEATED and self._may_repeat()
        sizes = [self._extents[d] for d in (*around, row)]
        counts = [*sizes[:-1], sizes[-1] // chunk]
        cost = contraction.nanoseconds
        tasks, grain = split(counts, cost, self._machine)

        def blocks_of(position: Position) -> None:
            first = position[row]
            if repeats:
                columns, last = self._columns_at(position, rows), add(first, index(chunk - rows))
                for_steps(
                    first, add(first, index(chunk)), rows,
                    lambda i: columns(arith.MinSIOp(i, last).result),
                )  # fmt: skip
                return
            for low, high, step in kinds:
                start, body = add(first, index(low)), self._columns_at(position, step)
                if low + step < high:
                    for_steps(start, add(first, index(high)), step, body)
                else:
                    body(start)

        def inside(position: Position) -> None:
            self._sums(position, chunk, blocks_of)

        steps = [1] * len(around) + [chunk]
        self._nest((*around, row), [0] * len(sizes), sizes, steps, tasks, grain, inside)

    def _may_repeat(self) -> bool:
        """Whether rows may be done twice, and that pays: sums over several dimensions carry all registers
        through each of their loops, which is much to compile; plain products would run 2 % longer."""
        starts = self._initial is not None and not self._depth  # nothing is added to
        reads = self._epilogue is not None and self._epilogue.overwrites_inputs()
        return len(self._inner) > 1 and starts and not reads

    def _columns_at(self, position: Position, rows: int) -> Callable[[ir.Value], None]:
        row = self._contraction.row
        return lambda i: self._columns({**position, row: i}, rows)

    def _rows(self, low: int, high: int, rows: int) -> None:
        """All blocks of so many rows between two row numbers."""
        around = self._contraction.around
        blocks = (high - low) // rows
        cost = self._contraction.nanoseconds * (high - low)
        cost /= self._extents[self._contraction.row]
        if self._outer:
            self._few_tasks(low, high, rows, cost)
            return
        counts = [*(self._extents[d] for d in around), blocks]
        tasks, grain = split(counts, cost, self._machine)
        steps = [1] * len(around) + [rows]
        lows, highs = [0] * len(around) + [low], [*(self._extents[d] for d in around), high]

        def inside(position: Position) -> None:
            self._sums(position, rows, lambda at: self._columns(at, rows))

        dimensions = (*around, self._contraction.row)
        self._nest(dimensions, lows, highs, steps, tasks, grain, inside)

    def _few_tasks(self, low: int, high: int, rows: int, cost: float) -> None:
        """Blocks inside the outer sums, in as few tasks as keep all cores busy: each walks the
        second factor once."""
        contraction = self._contraction
        around, row = contraction.around, contraction.row
        tasks, count = 0, 1
        if cost >= self._machine.parallel_ns:
            while tasks < len(around) and count < _FEW_TASKS:
                count *= self._extents[around[tasks]]
                tasks += 1
        blocks = (high - low) // rows
        chunk = blocks
        if cost >= self._machine.parallel_ns and count < _FEW_TASKS:
            chunk = math.ceil(blocks / math.ceil(_FEW_TASKS / count))
        inner_around = around[tasks:]
        step = chunk * rows

        def in_task(position: Position) -> None:
            first = position[row]
            last = first
            if step < high - low:
                last = arith.MinSIOp(
                    add(first, index(step)), index(high)
                ).result
            else:
                last = index(high)
            self._column_blocks(
                position, lambda at, widths: in_columns(at, widths, first, last)
            )

        def in_columns(
            position: Position, widths: tuple[int, ...], first: ir.Value, last: ir.Value
        ) -> None:
            def in_sums(at: Position) -> None:
                def rows_of(inner: Position) -> None:
                    for_steps(first, last, rows, lambda i: self._block({**inner, row: i}, rows, widths))

                self._serial(inner_around, at, rows_of)

            self._serial(self._outer, position, in_sums)

        dimensions = (*around[:tasks], row)
        sizes = [self._extents[d] for d in around[:tasks]]
        parallel = len(dimensions) if cost >= self._machine.parallel_ns else 0
        self._nest(
            dimensions,
            [0] * tasks + [low],
            [*sizes, high],
            [1] * tasks + [step],
            parallel,
            1,
            in_task,
        )

    def _sums(self, position: Position, rows: int, blocks: Callable[[Position], None]) -> None:
        """So many rows, with all of their sums or a part of them after the other."""
        if not self._depth:
            blocks(position)
            return
        terms = self._extents[self._inner[0]]

        def part(low: ir.Value) -> None:
            high = add(low, index(self._depth))
            if terms % self._depth:
                high = arith.MinSIOp(high, index(terms)).result
            is_first = arith.CmpIOp(arith.CmpIPredicate.eq, low, index(0)).result
            self._part = Part((low, high), is_first)
            blocks(position)
            self._part = None

        for_steps(index(0), index(terms), self._depth, part)
        if self._epilogue is not None:
            contraction = self._contraction
            row, column = contraction.row, contraction.column
            at, sizes = {**position, column: index(0)}, {row: rows, column: self._extents[column]}
            sums = part_of(contraction.c.buffer, contraction.c.map, at, sizes)
            self._epilogue.emit(sums, (row, column), at, sizes)

    def _serial(
        self, dimensions: Sequence[int], position: Position, body: Callable[[Position], None]
    ) -> None:
        if not dimensions:
            body(position)
            return
        first, *rest = dimensions
        for_steps(
            index(0),
            index(self._extents[first]),
            1,
            lambda i: self._serial(rest, {**position, first: i}, body),
        )

    def _columns(self, position: Position, rows: int) -> None:
        self._column_blocks(position, lambda at, widths: self._block(at, rows, widths))

    def _column_blocks(
        self, position: Position, body: Callable[[Position, tuple[int, ...]], None]
    ) -> None:
        column = self._contraction.column
        for_column_blocks(
            self._tiling,
            self._extents[column],
            lambda j, widths: body({**position, column: j}, widths),
        )

    def _block(self, position: Position, rows: int, widths: tuple[int, ...]) -> None:
        contraction, c = self._contraction, self._contraction.c
        ahead = steps_ahead(contraction, contraction.b, self._inner[-1])
        block = Block(
            contraction.row, contraction.column, self._inner, rows, widths, contraction.element, ahead
        )
        sums = Sums(c, self._initial, self._part)
        values = sums.of(block, (contraction.a, contraction.b), self._extents, position)
        if self._part or self._epilogue is None:
            sums.store(block, position, values)
        else:
            follow(self._epilogue, block, position, values)
