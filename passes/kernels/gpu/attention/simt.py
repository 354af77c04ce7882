"""Attention by threads, for f32: as exact as products and softmax, without scores in memory.

A block has 64 queries (of wider heads 32 or 16) and takes 32 (16) keys at a time. Sixteen neighbouring
threads share four queries: each computes the scores of every sixteenth key, shuffles give the highest
and the sum of exponentials, and by way of shared memory each adds up its part of the width of v. Where k
and v do not fit into shared memory together, v takes k's place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.dialects.vendors import math as math_
from lamina.passes.emit.scalars import (
    Array,
    Scalar,
    choose,
    constant,
    fold,
    index,
    loop,
    select,
    smaller,
    split,
    when,
)
from lamina.passes.kernels.cpu.attention.mask import Mask, blocks_in_sight, tile_bounds
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.scalar_ops import element_at
from lamina.passes.kernels.gpu.device.thread_numbers import block, of_lane, synchronize, thread
from lamina.passes.stablehlo.attention.reading import Attention
from lamina.passes.stablehlo.attention.shape import AttentionShape
from lamina.records import Record

_LANES, _ROWS = 16, 4  # threads that share queries, and how many of those
_PADDING = 4  # elements between rows, so that those of 16 keys lie in different banks


class _Tile(Record):
    queries: int
    keys: int
    width: int
    """Of q and k, and of v: the greater one, as a power of two."""

    @classmethod
    def of(cls, width: int) -> _Tile:
        padded = max(_LANES, 1 << (width - 1).bit_length())
        queries, keys = (64, 32) if padded <= 64 else (32, 32) if padded <= 128 else (16, 16)
        return cls(queries, keys, padded)

    @property
    def threads(self) -> int:
        return self.queries // _ROWS * _LANES

    @property
    def holds_both(self) -> bool:
        """Whether k and v are in shared memory together."""
        return self.width <= 64


def write_attention_simt(job: Job, attention: Attention, shape: AttentionShape) -> None:
    """The kernel of an attention on f32, of widths up to 256."""
    tile = _Tile.of(max(shape.width, shape.value_width))
    blocks = math.prod(shape.extents[d] for d in shape.batch) * -(-shape.queries // tile.queries)
    job.launch(blocks, tile.threads, lambda kernel: _Block(job, kernel, attention, shape, tile).emit())


class _Block:
    """Emits one block's work."""

    def __init__(
        self, job: Job, kernel: Kernel, attention: Attention, shape: AttentionShape, tile: _Tile
    ) -> None:
        self.job, self.kernel, self.attention, self.shape, self.tile = job, kernel, attention, shape, tile
        self.type = ir.F32Type.get()
        batches = [shape.extents[d] for d in shape.batch]
        tiles = -(-shape.queries // tile.queries)
        number, part = split(block(), [math.prod(batches), tiles])
        self.batch = dict(zip(shape.batch, split(number, batches)))
        self.mask = Mask.of(attention)
        if self.mask is not None:  # the last queries see most: they begin first
            part = tiles - 1 - part
        self.first = part * tile.queries
        self.lane, self.row = thread() % _LANES, thread() // _LANES * _ROWS
        self.columns = tile.width // _LANES
        self.together = min(4, self.columns)  # columns of v side by side
        rows = tile.width + _PADDING
        self.q = job.shared(kernel, [tile.queries, rows], self.type)
        self.k = job.shared(kernel, [tile.keys, rows], self.type)
        self.v = job.shared(kernel, [tile.keys, rows], self.type) if tile.holds_both else self.k
        self.p = job.shared(kernel, [tile.queries, tile.keys + _PADDING], self.type)

    def emit(self) -> None:
        shape, tile = self.shape, self.tile
        q_at = self.attention.queries_operand
        q, k = self.attention.product.operands[q_at], self.attention.product.operands[1 - q_at]
        v = self.attention.values.operands[1 - self.attention.probabilities_operand]
        self._copy(self.q, q, shape.of_q, shape.rows, self.first, tile.queries, shape.width)
        zero, least = constant(0.0, self.type), constant(-math.inf, self.type)
        keys = (shape.keys_dim,)

        def step(number: Scalar, *carried: Scalar) -> Sequence[Scalar]:
            highest, sums = list(carried[:_ROWS]), list(carried[_ROWS : 2 * _ROWS])
            totals = list(carried[2 * _ROWS :])
            first = number * tile.keys
            self._copy(self.k, k, shape.of_k, keys, first, tile.keys, shape.width)
            if tile.holds_both:
                self._copy(self.v, v, shape.of_v, keys, first, tile.keys, shape.value_width)
            synchronize()
            scores = self._scores(first)
            highest, scaled, powers = self._powers(scores, highest)
            sums = [
                sum_ * by + self._over_lanes(_sum(row), lambda a, b: a + b)
                for sum_, by, row in zip(sums, scaled, powers, strict=True)
            ]
            for i, row in enumerate(powers):
                for j, power in enumerate(row):
                    self.p[self.row + i, self.lane + j * _LANES] = power
            synchronize()
            if not tile.holds_both:
                self._copy(self.v, v, shape.of_v, keys, first, tile.keys, shape.value_width)
                synchronize()
            scaled = [by for by in scaled for _ in range(self.columns)]
            totals = [total * by for total, by in zip(totals, scaled, strict=True)]
            totals = self._with_values(totals)
            synchronize()
            return [*highest, *sums, *totals]

        start = [*[least] * _ROWS, *[zero] * _ROWS, *[zero] * (_ROWS * self.columns)]
        carried = fold(0, self._steps(), start, step)
        self._finish(carried[_ROWS : 2 * _ROWS], carried[2 * _ROWS :])

    def _steps(self) -> Scalar:
        """How many steps it takes: keys at the end that no query sees are left out."""
        shape, tile = self.shape, self.tile
        if self.mask is None:
            return index(-(-shape.keys // tile.keys))
        at = {d: (value, value) for d, value in self.batch.items()}
        extents = [shape.extents[d] for d in shape.rows]
        at |= zip(shape.rows, tile_bounds(self.first, tile.queries, extents))
        return blocks_in_sight(self.mask, at, shape.keys_dim, shape.keys, tile.keys)

    # ---- reading ---------------------------------------------------------------------------------
    def _copy(
        self, target: Array, value: ir.Value, dims: Mapping[int, int], rows: Sequence[int],
        first: Scalar, count: int, width: int,
    ) -> None:  # fmt: skip
        """Rows of an operand, from one on, into shared memory; zeros around it."""
        shape = self.shape
        source = self.job.array(self.kernel, value)
        extents = [shape.extents[d] for d in rows]
        dense = dims[len(dims) - 1] == shape.rank and width % 4 == 0
        each = 4 if dense else 1
        a_row = self.tile.width // each
        with loop(thread(), count * a_row, self.tile.threads) as item:
            row, column = split(item, [count, a_row])
            column = column * each
            place = first + row
            known = {**self.batch, **dict(zip(rows, split(place, extents))), shape.rank: column}
            where = [known[dims[d]] for d in range(len(dims))]
            inside = (place < math.prod(extents)) & (column < width)
            values = select(
                inside,
                lambda: source.several(where, each) if dense else [source[where]],
                lambda: [constant(0.0, self.type)] * each,
                [self.type] * each,
            )
            target.set_several([row, column], values)

    # ---- computing -------------------------------------------------------------------------------
    def _scores(self, first: Scalar) -> list[list[Scalar]]:
        """This thread's scores, by row and key."""
        keys = self.tile.keys // _LANES

        def deeper(depth: Scalar, *sums: Scalar) -> Sequence[Scalar]:
            left = [self.q.several([self.row + i, depth], 4) for i in range(_ROWS)]
            right = [self.k.several([self.lane + j * _LANES, depth], 4) for j in range(keys)]
            found = []
            for number, sum_ in enumerate(sums):
                i, j = divmod(number, keys)
                for a, b in zip(left[i], right[j], strict=True):
                    sum_ = sum_ + a * b
                found.append(sum_)
            return found

        depth = -(-self.shape.width // 4) * 4
        sums = fold(0, depth, [constant(0.0, self.type)] * (_ROWS * keys), deeper, 4)
        return [
            [self._score(sums[i * keys + j], i, first + self.lane + j * _LANES) for j in range(keys)]
            for i in range(_ROWS)
        ]

    def _at(self, row: int) -> tuple[Scalar, dict[int, Scalar]]:
        """One of this thread's queries, and where it is; the last one beyond that."""
        shape = self.shape
        query = self.first + self.row + row
        within = smaller(query, shape.queries - 1)
        rows = split(within, [shape.extents[d] for d in shape.rows])
        return query, {**self.batch, **dict(zip(shape.rows, rows))}

    def _score(self, raw: Scalar, row: int, key: Scalar) -> Scalar:
        """One score as softmax takes it; the least of all beyond the last key."""
        shape = self.shape
        inside = key < shape.keys
        where = {**self._at(row)[1], shape.keys_dim: smaller(key, shape.keys - 1)}
        places = [where[d].value for d in range(shape.rank)]
        known = {self.attention.product.results[0]: raw.value}
        found = element_at(self.job, self.kernel, self.attention.scores, places, known)
        return choose(inside, Scalar(found), constant(-math.inf, self.type))

    def _powers(
        self, scores: list[list[Scalar]], highest: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar], list[list[Scalar]]]:
        """The highest scores so far, what sums so far are to be multiplied by, and exponentials."""
        tops, scaled, powers = [], [], []
        for row, before in zip(scores, highest, strict=True):
            top = before
            for score in row:
                top = _greatest(top, score)
            top = self._over_lanes(top, _greatest)
            # Where all scores are -inf so far, any finite number does.
            origin = choose(top.equals(-math.inf), constant(0.0, self.type), top)
            scaled.append(_exp(before - origin))
            powers.append([_exp(score - origin) for score in row])
            tops.append(top)
        return tops, scaled, powers

    def _over_lanes(self, value: Scalar, combine: Callable[[Scalar, Scalar], Scalar]) -> Scalar:
        """Combined over the threads that share queries."""
        offset = 1
        while offset < _LANES:
            value = combine(value, of_lane(value, offset))
            offset *= 2
        return value

    def _column(self, number: int) -> tuple[Scalar, int]:
        """The first of the columns side by side that hold this one, and its place there."""
        group, place = divmod(number, self.together)
        return self.lane * self.together + group * self.together * _LANES, place

    def _with_values(self, totals: Sequence[Scalar]) -> list[Scalar]:
        def further(key: Scalar, *sums: Scalar) -> Sequence[Scalar]:
            left = [self.p.several([self.row + i, key], 4) for i in range(_ROWS)]
            found = list(sums)
            for n in range(4):
                for group in range(0, self.columns, self.together):
                    values = self.v.several([key + n, self._column(group)[0]], self.together)
                    for i in range(_ROWS):
                        for place, value in enumerate(values):
                            at = i * self.columns + group + place
                            found[at] = found[at] + left[i][n] * value
            return found

        return fold(0, self.tile.keys, totals, further, 4)

    # ---- writing ---------------------------------------------------------------------------------
    def _finish(self, sums: Sequence[Scalar], totals: Sequence[Scalar]) -> None:
        shape = self.shape
        result = self.job.array(self.kernel, self.job.op.results[0])
        dense = shape.result[-1] == shape.rank and shape.value_width % self.together == 0
        for i in range(_ROWS):
            query, at = self._at(i)
            mine = [total / sums[i] for total in totals[i * self.columns : (i + 1) * self.columns]]
            with when(query < shape.queries):
                for number in range(0, self.columns, self.together if dense else 1):
                    first, place = self._column(number)
                    column = first + place
                    where = {**at, shape.rank: column}
                    places = [where[d] for d in shape.result]
                    with when(column < shape.value_width):
                        if dense:
                            result.set_several(places, mine[number : number + self.together])
                        else:
                            result[places] = mine[number]


def _greatest(a: Scalar, b: Scalar) -> Scalar:
    return Scalar(arith.MaximumFOp(a.value, b.value).result)


def _exp(value: Scalar) -> Scalar:
    return Scalar(math_.exp(value.value))


def _sum(values: Sequence[Scalar]) -> Scalar:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
