"""Attention in one kernel, by tensor cores; of f32 by threads (`simt.py`), unless tf32 will do.
On Hopper, most by its own (`wgmma_kernel.py`); the others, and on other GPUs, as is said here.

Of a block's 64 queries (128 where there are many, of wide heads of f32 32) warps have 16 each. For as many keys
after the other they multiply q and k^T, do to the scores
what the program does (scale, mask, bias), and keep for each query the highest score so far, the sum
of exponentials relative to it, and the sum of these times v: when the highest grows, both sums are
scaled down. Keys that a mask hides from all queries of the block are left out. While scores are
computed, v's rows are copied into shared memory; while v is multiplied, the next keys. (Dao,
FlashAttention-2, 2023; Milakov and Gimelshein, Online normalizer, 2018.)

The probabilities are rounded as the program rounds them, but before they are divided by their sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.loops import index
from lamina.passes.kernels.gpu.attention.scores import Rows, Running, Scores
from lamina.passes.kernels.gpu.attention.simt import write_attention_simt
from lamina.passes.kernels.gpu.attention.tiles import Operands, Tile, Tiles, blocks_of
from lamina.passes.kernels.gpu.attention.wgmma_kernel import WgmmaAttention
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.threads import (
    barrier,
    strided,
    when,
    zero_of,
)
from lamina.passes.kernels.gpu.gemm.block import TILING
from lamina.passes.kernels.gpu.gemm.copies import AsyncCopies
from lamina.passes.kernels.gpu.gemm.fragments import (
    Groups,
    fragment,
    interleaved,
    multiply_add,
    part,
    rounded,
)
from lamina.passes.kernels.gpu.gemm.operand import plus, times
from lamina.passes.kernels.gpu.gemm.tiling import generation, multiprocessors
from lamina.passes.stablehlo.attention.reading import Attention
from lamina.passes.stablehlo.attention.shape import AttentionShape, attention_of
from lamina.passes.stablehlo.legalize.note_tf32 import asks_for_tf32


def write_attention(job: Job, arch: str) -> None:
    """The kernel of a function that `stablehlo-outline-attention` made; the job's op is its last."""
    attention, order = attention_of(job.op)
    shape = AttentionShape(attention, order)
    element = attention.product.operands[0].type.element_type
    products = (attention.product, attention.values)
    tf32 = generation(arch) >= 80 and all(map(asks_for_tf32, products))
    if isinstance(element, ir.F32Type) and not tf32:
        return write_attention_simt(job, attention, shape)
    by_warpgroups = WgmmaAttention.of(job, attention, shape, arch)
    if by_warpgroups is not None:
        return by_warpgroups.emit()
    tiles = Tiles.of(shape, element, multiprocessors(arch))
    blocks = blocks_of(shape, tiles.queries) * tiles.parts
    job.launch(
        blocks, tiles.threads, lambda kernel: _Block(job, kernel, attention, shape, tiles).emit()
    )
    kind = "tf32" if isinstance(element, ir.F32Type) else element
    job.annotate(TILING, f"mma.{kind} {tiles.queries}x{tiles.keys}")


class _Block:
    """Emits one block's work."""

    def __init__(
        self, job: Job, kernel: Kernel, attention: Attention, shape: AttentionShape, tiles: Tiles
    ) -> None:
        self.tiles = tiles
        q_at = attention.queries_operand
        q, k = attention.product.operands[q_at], attention.product.operands[1 - q_at]
        v = attention.values.operands[1 - attention.probabilities_operand]
        self.element = job.array(kernel, q).element
        self.is_tf32 = isinstance(self.element, ir.F32Type)
        self.scores = Scores(job, kernel, attention, shape, tiles.queries, tiles.keys, tiles.parts)
        self.lane = self.scores.lane

        operands = Operands(job, kernel, shape.extents, self.scores.batch, tiles.threads)
        arena, places = tiles.arena(kernel), tiles.offsets
        keys, width = tiles.keys, tiles.width
        self.q = operands.tile(
            q, shape.of_q, shape.rows, shape.width, (tiles.queries, width), arena, places[0]
        )
        self.k = operands.tile(
            k, shape.of_k, (shape.keys_dim,), shape.width, (keys, width), arena, places[1]
        )
        self.v = operands.turned(
            v, shape.of_v, shape.keys_dim, shape.value_width, (tiles.value_width, keys), arena, places[2]
        )
        # Beyond these are zeros.
        self.width, self.value_width = -(-shape.width // 16) * 16, tiles.columns(shape)
        self.first_column = times(self.scores.part, self.value_width)
        self.v.operand.begin = self.first_column

    # ---- the loop over keys ----------------------------------------------------------------------
    def emit(self) -> None:
        f32 = ir.F32Type.get()
        groups = Groups()
        self.q.operand.begin = self.scores.first
        self.q.fill(index(0), index(0))
        self.k.fill(index(0), index(0))
        for tile in (self.q, self.k, self.v):
            if isinstance(tile, AsyncCopies):
                groups.token = groups.token or tile.token
        groups.commit()
        zero = zero_of(f32)
        none = vector.FromElementsOp(ir.VectorType.get([2, 2], f32), [zero] * 4).result
        columns = self.value_width // 8
        steps = self.scores.steps()

        def step(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            running, totals = Running(carried[:4]), carried[4:]
            first = times(number, self.tiles.keys)
            groups.wait(0)
            barrier()
            self.v.fill(index(0), first)
            if isinstance(self.v, AsyncCopies):
                groups.token = groups.token or self.v.token
            groups.commit()
            scaled, powers = running.add(self._scores(first), self.scores.exp)
            totals = [_scaled(total, scaled) for total in totals]
            groups.wait(0)
            barrier()
            following = plus(number, 1)
            self.k.operand.begin = times(following, self.tiles.keys)
            when(_is_below(following, steps), lambda: self.k.fill(index(0), index(0)))
            groups.commit()
            return [*running.values, *self._add_values(powers, totals)]

        carried = strided(index(0), steps, 1, [*Running().values, *([none] * columns)], step)
        totals = carried[4:]
        last = (self.tiles.parts - 1) * self.value_width
        self.scores.write(
            Running(carried[:4]).sums, lambda n, i, j: _at(totals[n], i, j), self.value_width,
            self.first_column, last,
        )  # fmt: skip

    def _scores(self, first: ir.Value) -> Rows:
        zero = zero_of(ir.F32Type.get())
        none = vector.FromElementsOp(ir.VectorType.get([2, 2], zero.type), [zero] * 4).result
        sums = [none] * (self.tiles.keys // 8)
        mine = times(self.scores.warp, 16)
        for k in range(0, self.width, 32 // self.tiles.bytes):
            left = self._fragment(self.q, mine, 0, k, True)
            for key in range(0, self.tiles.keys, 16):
                both = self._fragment(self.k, index(0), key, k, False)
                for half in range(2):
                    place = key // 8 + half
                    sums[place] = multiply_add(left, part(both, 2 * half), sums[place], self.is_tf32)
        return self.scores.of(lambda n, i, j: _at(sums[n], i, j), first)

    def _fragment(
        self, tile: Tile, row: ir.Value, further: int, k: int, rows_first: bool
    ) -> ir.Value:
        found = fragment(tile.buffer, tile.shape, self.lane, index(0), row, further, k, rows_first)
        return rounded(found) if self.is_tf32 else found

    def _add_values(
        self, powers: Rows, totals: list[ir.Value]
    ) -> list[ir.Value]:
        totals = list(totals)
        if self.is_tf32:
            return self._add_values_tf32(powers, totals)
        type_ = ir.VectorType.get([4, 2], self.element)
        for key in range(0, self.tiles.keys, 16):
            # Sums' registers are a left factor's: rows, then the halves of 16 keys.
            n = key // 8
            parts = [
                arith.TruncFOp(self.element, powers[i][n + half][j]).result
                for half in range(2) for i in range(2) for j in range(2)
            ]  # fmt: skip
            left = vector.FromElementsOp(type_, parts).result
            for column in range(0, self.value_width, 16):
                both = self._fragment(self.v, index(0), column, key, False)
                for half in range(2):
                    place = column // 8 + half
                    totals[place] = multiply_add(left, part(both, 2 * half), totals[place])
        return totals

    def _add_values_tf32(
        self, powers: Rows, totals: list[ir.Value]
    ) -> list[ir.Value]:
        type_ = ir.VectorType.get([4, 1], self.element)
        for n in range(self.tiles.keys // 8):
            # Of eight keys the even ones first: so they lie in the sums' registers.
            parts = [powers[i][n][j] for j in range(2) for i in range(2)]
            left = rounded(vector.FromElementsOp(type_, parts).result)
            for column in range(0, self.value_width, 8):
                right = interleaved(
                    self.v.buffer, self.v.shape, self.lane, index(0), column, 8 * n
                )
                totals[column // 8] = multiply_add(left, rounded(right), totals[column // 8], True)
        return totals


def _is_below(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.ult, a, b).result


def _at(fragment: ir.Value, i: int, j: int) -> ir.Value:
    return vector.ExtractOp(fragment, [], [i, j]).result


def _scaled(fragment: ir.Value, by: Sequence[ir.Value]) -> ir.Value:
    values = [
        arith.MulFOp(_at(fragment, i, j), by[i]).result
        for i in range(2)
        for j in range(2)
    ]
    return vector.FromElementsOp(fragment.type, values).result

