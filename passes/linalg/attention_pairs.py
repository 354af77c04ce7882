"""The two products of attention in pairs of bf16, which tile registers (AMX) multiply and add up in f32.

Rows of k are read where they lie. Queries are turned to pairs of neighbours along their width, for 16
queries at a time, and so are probabilities along keys, which is how scores lie. A block of v is turned,
so that its pairs are along keys, too; so are the sums of values then, until the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.linalg.attention_blocks import (
    Position,
    Range,
    array,
    constant,
    plus,
)
from lamina.passes.linalg.attention_products import BlockRows, Work
from lamina.passes.linalg.group_factors import offset
from lamina.passes.linalg.group_packing import interleaved, part_of, turned
from lamina.passes.linalg.group_units import (
    TILE_ROWS,
    Tiles,
    intrinsic,
    kinds_of_blocks,
    pointer,
    release_tiles,
    splat,
    tile_instruction,
    with_elements,
)
from lamina.passes.linalg.register_blocks import (
    Factor,
    load_vector,
    moved,
    repeat,
    store_vector,
)
from lamina.passes.linalg.structure import stride_along
from lamina.passes.loops import for_steps, index

_LANES = 16  # of what is turned: words of pairs, and f32
_KEYS = 16  # keys are multiplied by multiples of these


class _Tiles:
    """Products in tiles of 16 rows and columns (`tdpbf16ps`)."""

    def __init__(self) -> None:
        self._shapes = array(64, element=ir.IntegerType.get_signless(8))

    def product(
        self, a: Factor, b: Factor, target: Factor, row: Range, column: Range, reduced: Range,
        at: Position, factor: ir.Value | None,
    ) -> None:  # fmt: skip
        """target[row, column] = target * factor[column] (0 without a factor) + the sum of products of a,
        rows of bf16, and b, which holds words of two. The sum is of so many pairs: a multiple of 8."""
        (row_dim, rows), (column_dim, columns), (reduced_dim, pairs) = row, column, reduced
        if factor is not None:
            _scale(target, row, column, at, factor)
        steps = _steps(pairs)
        groups = pairs // steps
        strides = [_bytes_along(f, d) for f, d in ((a, row_dim), (b, reduced_dim), (target, row_dim))]

        def block(tiles: Tiles, i: ir.Value, j: ir.Value) -> None:
            where = {**at, row_dim: i, column_dim: j}
            left = [moved(where, row_dim, r * TILE_ROWS) for r in range(len(tiles.rows))]
            top = [moved(where, column_dim, c * TILE_ROWS) for c in range(len(tiles.columns))]
            places = [
                _address(target, {**r, column_dim: c[column_dim]}) for r in left for c in top
            ]
            if factor is None:
                tiles.clear()
            else:
                tiles.load_sums(places, strides[2])

            def step(i: ir.Value) -> None:
                pair = arith.MulIOp(i, index(groups)).result
                first = {reduced_dim: arith.MulIOp(pair, index(2)).result}
                tiles.multiply(
                    [_address(a, r | first) for r in left], strides[0],
                    [_address(b, c | {reduced_dim: pair}) for c in top], strides[1],
                )  # fmt: skip

            for_steps(index(0), index(steps), 1, step)
            tiles.store_sums(places, strides[2])

        for low, high, size, row_parts in kinds_of_blocks(rows, TILE_ROWS):
            for start, end, width, column_parts in kinds_of_blocks(columns, TILE_ROWS):
                tiles = Tiles(row_parts, column_parts, tile_instruction("bf16", (True, True)), groups)
                tiles.configure(self._shapes)
                for_steps(
                    index(start), index(end), width,
                    lambda j, tiles=tiles, low=low, high=high, size=size: for_steps(  # type: ignore[misc]
                        index(low), index(high), size, lambda i: block(tiles, i, j)
                    ),
                )  # fmt: skip


class PairProducts:
    """Products of bf16: of queries and keys, and of probabilities, rounded to that, and values."""

    together = 2

    def __init__(self, work: Work, *, rounds: bool) -> None:
        """`rounds`: whether an instruction rounds to bf16."""
        shape, n = work.shape, work.queries
        self._work, self._tiles, self._rounds = work, _Tiles(), rounds
        word, keys = ir.IntegerType.get_signless(32), _covered(work.keys)
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
        work, shape = self._work, self._work.shape
        self._turn_queries(self._q_rows.take(at, work.queries), at)
        zero = repeat(constant(0.0), _floats())
        for_steps(
            index(0), index(shape.value_width), 1,
            lambda c: for_steps(
                index(0), index(work.queries), _LANES,
                lambda r: store_vector(zero, self._totals, [at[work.blocks.slot], c, r]),
            ),
        )  # fmt: skip

    def take_keys(self, at: Position, keys: int) -> None:
        self._k = self._k_rows.take(at, keys)
        v, width = self._v_rows.take(at, keys), self._work.shape.value_width
        for_steps(index(0), index(width), _LANES, lambda c: self._turn_values(v, at, c, keys))

    def score(self, at: Position, keys: int) -> int:
        work, shape, blocks = self._work, self._work.shape, self._work.blocks
        self._tiles.product(
            self._k,
            blocks.factor(self._q, (blocks.slot, blocks.width, blocks.query)),
            blocks.factor(self.scores, (blocks.key, blocks.query)),
            (blocks.key, keys), (blocks.query, work.queries), (blocks.width, shape.width // 2),
            at, None,
        )  # fmt: skip
        least = repeat(constant(-math.inf), _floats())
        for key in range(keys, _covered(keys)):
            for_steps(
                index(0), index(work.queries), _LANES,
                lambda r, key=key: store_vector(least, self.scores, [index(key), r]),  # type: ignore[misc]
            )  # fmt: skip
        return _covered(keys)

    def put(self, probabilities: Sequence[ir.Value], at: ir.Value, query: ir.Value) -> None:
        first, second = probabilities
        lanes = ir.VectorType(first.type).shape[0]
        narrow = ir.BF16Type.get()
        if self._rounds:
            name = f"avx512bf16.cvtne2ps2bf16.{lanes * 32}"
            both = _halves(intrinsic(name, [second, first], _vector(2 * lanes, narrow)))
            pairs = interleaved(part_of(both, 0, lanes), part_of(both, lanes, lanes))
        else:
            rounded = [arith.TruncFOp(_vector(lanes, narrow), x).result for x in (first, second)]
            pairs = interleaved(*map(_halves, rounded))
        store_vector(with_elements(pairs, _words(lanes)), self._probabilities, [at, query])

    def add_values(self, at: Position, keys: int, factor: ir.Value) -> None:
        work, shape, blocks = self._work, self._work.shape, self._work.blocks
        self._tiles.product(
            blocks.factor(self._v, (blocks.width, blocks.key)),
            blocks.factor(self._probabilities, (blocks.key, blocks.query)),
            blocks.factor(self._totals, (blocks.slot, blocks.width, blocks.query)),
            (blocks.width, shape.value_width), (blocks.query, work.queries),
            (blocks.key, _covered(keys) // 2), at, factor,
        )  # fmt: skip

    def end(self) -> None:
        release_tiles()

    def sums(self, at: Position) -> Factor:
        work, blocks, width = self._work, self._work.blocks, self._work.shape.value_width

        def square(c: ir.Value, r: ir.Value) -> None:
            columns = [
                load_vector(self._totals, [at[blocks.slot], plus(c, index(i)), r], _floats())
                for i in range(_LANES)
            ]
            for i, row in enumerate(turned(columns)):
                store_vector(row, self._rows_of_sums, [plus(r, index(i)), c])

        for_steps(
            index(0), index(width), _LANES,
            lambda c: for_steps(index(0), index(work.queries), _LANES, lambda r: square(c, r)),
        )  # fmt: skip
        return blocks.factor(self._rows_of_sums, (blocks.query, blocks.width))

    def _rows(self, of: dict[int, int], buffer: ir.Value, dim: int, width: int) -> BlockRows:
        """Rows of an operand whose width lies together: copied where it does not."""
        factor = self._work.operand(of, buffer)
        is_together = stride_along(buffer, factor.map, self._work.blocks.width) == 1
        element = None if is_together else ir.BF16Type.get()
        return BlockRows(self._work, of, buffer, dim, width, element)

    def _turn_queries(self, q: Factor, at: Position) -> None:
        blocks, pairs = self._work.blocks, self._work.shape.width // 2

        def square(r: ir.Value, pair: ir.Value, count: int) -> None:
            rows = []
            for i in range(_LANES):
                first = arith.MulIOp(pair, index(2)).result
                place = {**at, blocks.query: plus(r, index(i)), blocks.width: first}
                type_ = _vector(2 * count, ir.BF16Type.get())
                row = with_elements(load_vector(q.buffer, q.at(place), type_), _words(count))
                rows.append(row if count == _LANES else interleaved(row, row))
            columns = turned(rows)[:: _LANES // count]
            for i, column in enumerate(columns):
                store_vector(column, self._q, [at[blocks.slot], plus(pair, index(i)), r])

        def some(r: ir.Value) -> None:
            whole = pairs // _LANES * _LANES
            for_steps(index(0), index(whole), _LANES, lambda pair: square(r, pair, _LANES))
            if whole < pairs:
                square(r, index(whole), pairs - whole)

        for_steps(index(0), index(self._work.queries), _LANES, some)

    def _turn_values(self, v: Factor, at: Position, column: ir.Value, keys: int) -> None:
        """16 columns of values, of which those of keys that are missing are zero."""
        blocks, narrow = self._work.blocks, ir.BF16Type.get()
        type_ = _vector(_LANES, narrow)
        none = splat(_vector(_LANES, ir.IntegerType.get_signless(16)), 0)
        for start in range(0, _covered(keys), 2 * _LANES):
            count = min(2 * _LANES, _covered(keys) - start)
            rows = []
            for key in range(start, start + 2 * _LANES):
                place = {**at, blocks.key: index(key), blocks.width: column}
                is_there = key < keys
                rows.append(
                    _halves(load_vector(v.buffer, v.at(place), type_)) if is_there else none
                )
            words = [
                with_elements(interleaved(*rows[i : i + 2]), _words(_LANES))
                for i in range(0, 2 * _LANES, 2)
            ]
            for i, row in enumerate(turned(words)):
                row = row if count == 2 * _LANES else part_of(row, 0, count // 2)
                pairs = with_elements(row, _vector(count, narrow))
                store_vector(pairs, self._v, [plus(column, index(i)), index(start)])


def _covered(keys: int) -> int:
    return math.ceil(keys / _KEYS) * _KEYS


def _steps(pairs: int) -> int:
    """The least number of equal parts of at most 16 pairs."""
    return next(n for n in range(math.ceil(pairs / TILE_ROWS), pairs + 1) if pairs % n == 0)


def _scale(target: Factor, row: Range, column: Range, at: Position, factor: ir.Value) -> None:
    """Multiply what `target` holds by each column's factor."""
    (row_dim, rows), (column_dim, columns) = row, column

    def one(j: ir.Value) -> None:
        by = load_vector(factor, [j], _floats())

        def scaled(i: ir.Value) -> None:
            place = target.at({**at, row_dim: i, column_dim: j})
            before = load_vector(target.buffer, place, _floats())
            store_vector(arith.MulFOp(before, by).result, target.buffer, place)

        for_steps(index(0), index(rows), 1, scaled)

    for_steps(index(0), index(columns), _LANES, one)


def _address(factor: Factor, place: Position) -> ir.Value:
    strides, _ = ir.MemRefType(factor.buffer.type).get_strides_and_offset()
    size = _element_bytes(factor)
    terms = [(i, stride * size) for i, stride in zip(factor.at(place), strides, strict=True)]
    return pointer(factor.buffer, offset(terms))


def _bytes_along(factor: Factor, dimension: int) -> int:
    return stride_along(factor.buffer, factor.map, dimension) * _element_bytes(factor)


def _element_bytes(factor: Factor) -> int:
    return 2 if isinstance(ir.MemRefType(factor.buffer.type).element_type, ir.BF16Type) else 4


def _vector(lanes: int, element: ir.Type) -> ir.VectorType:
    return ir.VectorType.get([lanes], element)


def _words(lanes: int) -> ir.VectorType:
    return _vector(lanes, ir.IntegerType.get_signless(32))


def _halves(vector: ir.Value) -> ir.Value:
    """Numbers of bf16 as integers: where processors lack bf16, moving those would round them."""
    lanes = ir.VectorType(vector.type).shape[0]
    return with_elements(vector, _vector(lanes, ir.IntegerType.get_signless(16)))


def _floats() -> ir.VectorType:
    return _vector(_LANES, ir.F32Type.get())
