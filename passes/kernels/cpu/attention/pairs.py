"""The two products of attention in pairs of bf16, which tile registers (AMX) multiply and add up in f32.

Rows of k are read where they lie. Queries are turned to pairs of neighbours along their width, for 16
queries at a time, and so are probabilities along keys, which is how scores lie. A block of v is turned,
so that its pairs are along keys, too; so are the sums of values then, until the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import for_steps, index
from lamina.passes.kernels.cpu.attention.blocks import Position, array, constant
from lamina.passes.kernels.cpu.attention.products import BlockRows, Work
from lamina.passes.kernels.cpu.attention.tiles import (
    LANES,
    TileProducts,
    covered,
    floats,
    halves,
    turn_pairs,
    turn_rows,
    turn_sums,
    vector,
    words,
)
from lamina.passes.kernels.cpu.gemm.dot_instructions import intrinsic, release_tiles, with_elements
from lamina.passes.kernels.cpu.gemm.dot_packing import interleaved, part_of
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor, load_vector, repeat, store_vector
from lamina.passes.linalg.analysis.structure import stride_along


class PairProducts:
    """Products of bf16: of queries and keys, and of probabilities, rounded to that, and values."""

    together = 2

    def __init__(self, work: Work, *, rounds: bool) -> None:
        """`rounds`: whether an instruction rounds to bf16."""
        shape, n = work.shape, work.queries
        self._work, self._tiles, self._rounds = work, TileProducts(), rounds
        word, keys = ir.IntegerType.get_signless(32), covered(work.keys)
        self._q = array(work.parts, shape.width // 2, n, element=word)
        self.scores = array(keys, n)
        self._probabilities = array(keys // 2, n, element=word)
        self._v = array(shape.value_width, keys, element=ir.BF16Type.get())
        self._totals = array(work.parts, shape.value_width, n)
        self._rows_of_sums = array(n, shape.value_width)
        self._q_rows = self._rows(shape.of_q, work.q, work.query, shape.width)
        self._k_rows = self._rows(shape.of_k, work.k, shape.keys_dim, shape.width)
        self._v_rows = self._rows(shape.of_v, work.v, shape.keys_dim, shape.value_width)

    def begin(self, at: Position) -> None:
        work, shape, blocks = self._work, self._work.shape, self._work.blocks
        turn_pairs(
            self._q_rows.take(at, work.queries), lambda r: {**at, blocks.query: r}, blocks.width,
            self._turned_queries(), lambda pair, r: {**at, blocks.width: pair, blocks.query: r},
            work.queries, shape.width,
        )  # fmt: skip
        zero = repeat(constant(0.0), floats())
        for_steps(
            index(0), index(shape.value_width), 1,
            lambda c: for_steps(
                index(0), index(work.queries), LANES,
                lambda r: store_vector(zero, self._totals, [at[work.blocks.slot], c, r]),
            ),
        )  # fmt: skip

    def take_keys(self, at: Position, keys: int) -> None:
        self._k = self._k_rows.take(at, keys)
        blocks = self._work.blocks
        turn_rows(
            self._v_rows.take(at, keys), lambda k: {**at, blocks.key: k}, blocks.width,
            self._turned_values(), lambda c, k: {blocks.width: c, blocks.key: k},
            keys, self._work.shape.value_width,
        )  # fmt: skip

    def score(self, at: Position, keys: int) -> int:
        work, shape, blocks = self._work, self._work.shape, self._work.blocks
        self._tiles.product(
            self._k, self._turned_queries(), blocks.factor(self.scores, (blocks.key, blocks.query)),
            (blocks.key, keys), (blocks.query, work.queries), (blocks.width, shape.width // 2),
            at, adds=False,
        )  # fmt: skip
        least = repeat(constant(-math.inf), floats())
        for key in range(keys, covered(keys)):
            for_steps(
                index(0), index(work.queries), LANES,
                lambda r, key=key: store_vector(least, self.scores, [index(key), r]),  # type: ignore[misc]
            )  # fmt: skip
        return covered(keys)

    def put(self, probabilities: Sequence[ir.Value], at: ir.Value, query: ir.Value) -> None:
        first, second = probabilities
        lanes = ir.VectorType(first.type).shape[0]
        narrow = ir.BF16Type.get()
        if self._rounds:
            name = f"avx512bf16.cvtne2ps2bf16.{lanes * 32}"
            both = halves(intrinsic(name, [second, first], vector(2 * lanes, narrow)))
            pairs = interleaved(part_of(both, 0, lanes), part_of(both, lanes, lanes))
        else:
            rounded = [arith.TruncFOp(vector(lanes, narrow), x).result for x in (first, second)]
            pairs = interleaved(*map(halves, rounded))
        store_vector(with_elements(pairs, words(lanes)), self._probabilities, [at, query])

    def add_values(self, at: Position, keys: int, factor: ir.Value) -> None:
        work, shape, blocks = self._work, self._work.shape, self._work.blocks
        self._scale(at[blocks.slot], factor)
        self._tiles.product(
            self._turned_values(),
            blocks.factor(self._probabilities, (blocks.key, blocks.query)),
            blocks.factor(self._totals, (blocks.slot, blocks.width, blocks.query)),
            (blocks.width, shape.value_width), (blocks.query, work.queries),
            (blocks.key, covered(keys) // 2), at, adds=True,
        )  # fmt: skip

    def end(self) -> None:
        release_tiles()

    def sums(self, at: Position) -> Factor:
        work, blocks = self._work, self._work.blocks
        turn_sums(
            lambda c, r: [at[blocks.slot], c, r], self._totals, self._rows_of_sums,
            work.queries, work.shape.value_width,
        )  # fmt: skip
        return blocks.factor(self._rows_of_sums, (blocks.query, blocks.width))

    def _turned_queries(self) -> Factor:
        blocks = self._work.blocks
        return blocks.factor(self._q, (blocks.slot, blocks.width, blocks.query))

    def _turned_values(self) -> Factor:
        return self._work.blocks.factor(self._v, (self._work.blocks.width, self._work.blocks.key))

    def _rows(self, of: dict[int, int], buffer: ir.Value, dim: int, width: int) -> BlockRows:
        """Rows of an operand whose width lies together: copied where it does not."""
        factor = self._work.operand(of, buffer)
        is_together = stride_along(buffer, factor.map, self._work.blocks.width) == 1
        element = None if is_together else ir.BF16Type.get()
        return BlockRows(self._work, of, buffer, dim, width, element)

    def _scale(self, part: ir.Value, factor: ir.Value) -> None:
        """Multiply a part's sums by each query's factor."""

        def one(r: ir.Value) -> None:
            by = load_vector(factor, [r], floats())

            def scaled(c: ir.Value) -> None:
                before = load_vector(self._totals, [part, c, r], floats())
                store_vector(arith.MulFOp(before, by).result, self._totals, [part, c, r])

            for_steps(index(0), index(self._work.shape.value_width), 1, scaled)

        for_steps(index(0), index(self._work.queries), LANES, one)
