"""The two products of attention, of a block of queries by one block of keys after the other.

`Products` is what a kernel wants of them; `LaneProducts` does them in f32, whatever the operands are
(`pairs.py` in pairs of bf16). Scores are transposed: a vector holds one key's for some queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import index, load, store
from lamina.passes.kernels.cpu.attention.blocks import (
    Blocks,
    Position,
    array,
    constant,
    for_both,
    is_f32,
    zeros,
)
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor, load_vector, repeat, store_vector
from lamina.passes.stablehlo.attention.shape import AttentionShape
from lamina.records import Record


class Work(Record):
    """What is multiplied: q, k and v as they lie in memory, so many queries by at most so many keys at
    a time. Several parts of so many queries each meet the same keys one after the other."""

    shape: AttentionShape
    blocks: Blocks
    q: ir.Value
    k: ir.Value
    v: ir.Value
    queries: int
    parts: int
    keys: int

    @property
    def query(self) -> int:
        """The dimension of scores along which a block of queries lies."""
        return self.shape.rows[-1]

    def operand(
        self, of: dict[int, int], buffer: ir.Value, shifts: dict[int, int] | None = None
    ) -> Factor:
        """An operand by dimensions of scores, places within a block added to some of these."""
        return self.blocks.factor(buffer, [of[d] for d in range(len(of))], shifts)


class BlockRows:
    """Rows of an operand along a dimension of scores, as they lie or copied, so many at a time."""

    def __init__(
        self, work: Work, of: dict[int, int], buffer: ir.Value, dim: int, width: int,
        element: ir.Type | None,
    ) -> None:  # fmt: skip
        """`element`: what copies hold; None where there are none."""
        self._work, self._of, self._buffer, self._dim, self._width = work, of, buffer, dim, width
        is_query = dim == work.query
        self._place = work.blocks.query if is_query else work.blocks.key
        most = work.queries if is_query else work.keys
        self._copy = None if element is None else array(most, width, element=element)

    def take(self, at: Position, rows: int) -> Factor:
        """So many rows from a position on, by the place within a block."""
        work, of, dim = self._work, self._of, self._dim
        if self._copy is None:
            return work.operand(of, self._buffer, {dim: self._place})
        source = work.operand(of, self._buffer)
        work.blocks.rows(source, self._copy, at, (dim, rows), self._width)
        return work.blocks.factor(self._copy, (self._place, work.blocks.width))


class Products(Protocol):
    """What a kernel wants of the products of a block of queries, in parts: a position has the part's
    number as `slot`, and its first query."""

    together: int
    """Probabilities that are put at a time, of keys that follow each other."""
    scores: ir.Value
    """Of a block of keys: [key, query], f32."""

    def begin(self, at: Position) -> None:
        """Take a part's queries, with nothing in sums."""

    def take_keys(self, at: Position, keys: int) -> None:
        """Take so many keys and their values, for all parts."""

    def score(self, at: Position, keys: int) -> int:
        """Write the products of a part by the keys as scores, and say how many of these have
        probabilities: what is added to them is -inf."""

    def put(self, probabilities: Sequence[ir.Value], at: ir.Value, query: ir.Value) -> None:
        """Keep vectors of probabilities; `at` counts these by `together`."""

    def add_values(self, at: Position, keys: int, factor: ir.Value) -> None:
        """Multiply a part's sums by each query's factor, and add the probabilities' products with
        values."""

    def sums(self, at: Position) -> Factor:
        """A part's sums by query and width."""

    def end(self) -> None:
        """After the last product."""


class LaneProducts:
    """Products of f32, to which a block of what is narrower is widened first."""

    together = 1

    def __init__(self, work: Work) -> None:
        shape, n = work.shape, work.queries
        self._work = work
        assert work.parts == 1, "keys' rows are read where they lie"
        self._q, self.scores = array(shape.width, n), array(work.keys, n)
        self._totals = array(n, shape.value_width)
        element = None if is_f32(work.k) else ir.F32Type.get()
        dim = shape.keys_dim
        self._k = BlockRows(work, shape.of_k, work.k, dim, shape.width, element)
        self._v = BlockRows(work, shape.of_v, work.v, dim, shape.value_width, element)

    def begin(self, at: Position) -> None:
        work, shape = self._work, self._work.shape
        q = work.operand(shape.of_q, work.q)
        work.blocks.turn(q, self._q, at, (work.query, work.queries), shape.width)
        zero = constant(0.0)
        for_both(
            index(work.queries), shape.value_width, lambda r, c: store(zero, self._totals, [r, c])
        )

    def take_keys(self, at: Position, keys: int) -> None:
        """Nothing is done ahead: there is one part."""

    def score(self, at: Position, keys: int) -> int:
        work, shape, blocks = self._work, self._work.shape, self._work.blocks
        k = self._k.take(at, keys)
        q = blocks.factor(self._q, (blocks.width, blocks.query))
        scores = blocks.factor(self.scores, (blocks.key, blocks.query))
        blocks.product(
            (k, q), scores, (blocks.key, keys), (blocks.query, work.queries),
            (blocks.width, shape.width), at, zeros,
        )  # fmt: skip
        return keys

    def put(self, probabilities: Sequence[ir.Value], at: ir.Value, query: ir.Value) -> None:
        (value,) = probabilities
        store_vector(value, self.scores, [at, query])

    def add_values(self, at: Position, keys: int, factor: ir.Value) -> None:
        work, shape, blocks = self._work, self._work.shape, self._work.blocks
        v = self._v.take(at, keys)
        scores = blocks.factor(self.scores, (blocks.key, blocks.query))
        totals = blocks.factor(self._totals, (blocks.query, blocks.width))

        def scaled(place: Position, type_: ir.VectorType) -> ir.Value:
            before = load_vector(self._totals, totals.at(place), type_)
            by = load(factor, [place[blocks.query]])
            return arith.MulFOp(before, repeat(by, type_)).result

        blocks.product(
            (scores, v), totals, (blocks.query, work.queries), (blocks.width, shape.value_width),
            (blocks.key, keys), at, scaled,
        )  # fmt: skip

    def sums(self, at: Position) -> Factor:
        return self._work.blocks.factor(self._totals, (self._work.blocks.query, self._work.blocks.width))

    def end(self) -> None:
        """Nothing is left to do."""
