"""What attention by tensor cores does with scores in registers: the program's ops, the softmax of what is
known so far, and the results. A lane has two rows of scores, and of each pairs of neighbours."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lamina.dialects.vendors import arith, ir
from lamina.dialects.vendors import math as math_
from lamina.passes.emit.loops import index, store
from lamina.passes.emit.scalars import Scalar
from lamina.passes.kernels.cpu.attention.mask import Mask, blocks_in_sight, tile_bounds
from lamina.passes.kernels.gpu.attention.score_tiles import converted
from lamina.passes.kernels.gpu.device import approximations
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.scalar_ops import element_at
from lamina.passes.kernels.gpu.device.threads import (
    WARP,
    below,
    gpu_id,
    positions,
    shuffle_xor,
    when,
    zero_of,
)
from lamina.passes.kernels.gpu.gemm.operand import modulo, over, plus, times
from lamina.passes.math.terms import Lane
from lamina.passes.math.variants import intrinsic
from lamina.passes.stablehlo.analysis.facts import splat_of
from lamina.passes.stablehlo.attention.reading import Attention
from lamina.passes.stablehlo.attention.shape import AttentionShape

At = Callable[[int, int, int], ir.Value]
"""(n, i, j) -> what a lane has in columns 8 n to 8 n + 7: of row i of two, the j-th of two."""
_CHAINS = 4
Rows = list[list[list[ir.Value]]]
"""By i, n and j."""
_KNOWN = 2.0**24  # of f32, from which on neighbours differ by one and more
Power = Callable[[ir.Value], ir.Value]
"""Score -> the exponential of how far it is from the origin."""
Exp = Callable[[ir.Value, ir.Value], tuple[ir.Value, Power]]
"""(origin, the one before) -> the exponential of how far the latter is from it, and those of scores."""


class Scores:
    """Those of a block: which queries it has, and where in the batch. `queries`: of a block; `keys`: of
    a step."""

    def __init__(
        self, job: Job, kernel: Kernel, attention: Attention, shape: AttentionShape, queries: int, keys: int,
        parts: int = 1,
    ) -> None:  # fmt: skip
        """`parts`: how many blocks share the columns of v."""
        self.job, self.kernel, self.attention, self.shape = job, kernel, attention, shape
        self.queries, self.keys = queries, keys
        element = attention.product.operands[0].type.element_type
        self.is_rounded = ir.FloatType(element).width == 16
        self.scores, self.exp = attention.scores, _exp
        if self.is_rounded:
            self.scores, scale = _without_scale(attention.scores)
            self.exp = functools.partial(_power_of_two, scale * math.log2(math.e))
        count = -(-shape.queries // queries)
        batches = math.prod(shape.extents[d] for d in shape.batch)
        number, self.part, tile = positions(gpu_id("block_id"), [batches, parts, count])
        extents = [shape.extents[d] for d in shape.batch]
        self.batch = dict(zip(shape.batch, positions(number, extents)))
        self.mask = Mask.of(attention)
        if self.mask is not None:  # the last queries see most: they begin first
            tile = arith.SubIOp(index(count - 1), tile).result
        self.first = times(tile, queries)
        thread = gpu_id("thread_id")
        self.lane, self.warp = modulo(thread, WARP), over(thread, WARP)
        self.row = plus(plus(self.first, times(self.warp, 16)), over(self.lane, 4))

    def steps(self) -> ir.Value:
        """How many steps it takes: blocks of keys at the end that no query sees are left out."""
        shape = self.shape
        steps = -(-shape.keys // self.keys)
        if self.mask is None or steps == 1:
            return index(steps)
        at = {d: (Scalar(value), Scalar(value)) for d, value in self.batch.items()}
        rows = [shape.extents[d] for d in shape.rows]
        at |= zip(shape.rows, tile_bounds(Scalar(self.first), self.queries, rows))
        return blocks_in_sight(self.mask, at, shape.keys_dim, shape.keys, self.keys).value

    def of(self, raw: At, first: ir.Value) -> Rows:
        """The scores as softmax takes them, from products with keys from `first` on."""
        column = plus(first, times(modulo(self.lane, 4), 2))
        found = []
        for i in range(2):
            query = plus(self.row, 8 * i)
            if self.shape.queries % self.queries:
                query = arith.MinUIOp(query, index(self.shape.queries - 1)).result
            at = self.rows_at(query)
            found.append([
                [self._score(raw(n, i, j), at, plus(column, 8 * n + j)) for j in range(2)]
                for n in range(self.keys // 8)
            ])  # fmt: skip
        return found

    def rows_at(self, query: ir.Value) -> dict[int, ir.Value]:
        """Where a query is in the batch and along its own dimensions."""
        shape = self.shape
        rows = positions(query, [shape.extents[d] for d in shape.rows])
        return {**self.batch, **dict(zip(shape.rows, rows))}

    def _score(self, raw: ir.Value, at: Mapping[int, ir.Value], key: ir.Value) -> ir.Value:
        """One score, in f32; the least of all beyond the last key."""
        shape = self.shape
        inside = below(key, shape.keys) if shape.keys % self.keys else None
        if inside is not None:
            key = arith.MinUIOp(key, index(shape.keys - 1)).result
        product = self.attention.product.results[0]
        raw = converted(raw, product.type.element_type)
        where = {**at, shape.keys_dim: key}
        places = [where[d] for d in range(shape.rank)]
        found = element_at(self.job, self.kernel, self.scores, places, {product: raw})
        found = converted(found, ir.F32Type.get())
        if inside is None:
            return found
        return arith.SelectOp(inside, found, _constant(-math.inf)).result

    def write(
        self, sums: Sequence[ir.Value], totals: At, columns: int, first_column: ir.Value, last: int = 0
    ) -> None:
        """Divide `columns` totals by the sums, and store them from a column on, which is `last` at
        most."""
        shape = self.shape
        result = self.job.op.results[0]
        buffer = self.job.array(self.kernel, result).buffer
        for i in range(2):
            total = sums[i]
            for offset in (1, 2):
                total = arith.AddFOp(total, shuffle_xor(total, offset)).result
            if self.is_rounded:
                by, combine = approximations.reciprocal(total), arith.MulFOp
            else:
                by, combine = total, arith.DivFOp
            row = plus(self.row, 8 * i)

            def write(
                i: int = i, by: ir.Value = by, combine: Any = combine, row: ir.Value = row
            ) -> None:
                at = self.rows_at(row)
                for n in range(columns // 8):
                    for j in range(2):
                        if 8 * n >= shape.value_width:
                            continue
                        within = plus(times(modulo(self.lane, 4), 2), 8 * n + j)
                        column = arith.AddIOp(first_column, within).result
                        value = combine(totals(n, i, j), by).result
                        value = converted(value, result.type.element_type)
                        where = {**at, shape.rank: column}
                        place = [where[d] for d in shape.result]

                        def put(value: ir.Value = value, place: list[ir.Value] = place) -> None:
                            store(value, buffer, place)

                        if last + 8 * (n + 1) > shape.value_width:
                            when(below(column, shape.value_width), put)
                        else:
                            put()

            if shape.queries % self.queries:
                when(below(row, shape.queries), write)
            else:
                write()


class Running:
    """What softmax knows of a lane's two rows so far: the highest scores, and this lane's part of the
    sums of exponentials relative to them."""

    def __init__(self, carried: Sequence[ir.Value] = ()) -> None:
        zero, least = zero_of(ir.F32Type.get()), _constant(-math.inf)
        found = list(carried) or [least, least, zero, zero]
        self.highest, self.sums = found[:2], found[2:4]

    @property
    def values(self) -> list[ir.Value]:
        """To be carried around a loop."""
        return [*self.highest, *self.sums]

    def add(
        self, scores: Rows, exp: Exp
    ) -> tuple[list[ir.Value], Rows]:
        """What totals so far are to be multiplied by, and the exponentials of further scores."""
        tops, scaled, powers = [], [], []
        for row, before in zip(scores, self.highest, strict=True):
            flat = [score for pair in row for score in pair]
            top = _combined([before, *flat], arith.MaximumFOp)
            for offset in (1, 2):
                top = arith.MaximumFOp(top, shuffle_xor(top, offset)).result
            # Where all scores are -inf so far, any finite number does.
            is_least = arith.CmpFOp(arith.CmpFPredicate.OEQ, top, _constant(-math.inf)).result
            origin = arith.SelectOp(is_least, _constant(0.0), top).result
            fade, power = exp(origin, before)
            scaled.append(fade)
            powers.append([[power(score) for score in pair] for pair in row])
            tops.append(top)
        self.highest = tops
        self.sums = [
            math_.fma(old, by, _combined([p for pair in powers[i] for p in pair], arith.AddFOp))
            for i, (old, by) in enumerate(zip(self.sums, scaled))
        ]
        return scaled, powers


def _without_scale(scores: ir.Value) -> tuple[ir.Value, float]:
    """What scores are positive multiples of in f32, and by what: the order of these is that of scores."""
    scale = 1.0
    while isinstance(ir.RankedTensorType(scores.type).element_type, ir.F32Type):
        op = scores.owner
        if isinstance(op, ir.Block) or op.name != "stablehlo.multiply":
            break
        splats = [splat_of(operand) for operand in op.operands]
        place = next((n for n, splat in enumerate(splats) if splat is not None), None)
        if place is None or not 2.0**-60 < float(splats[place]) * scale < 2.0**60:  # type: ignore[arg-type]
            break
        scale *= float(splats[place])  # type: ignore[arg-type]
        scores = op.operands[1 - place]
    return scores, scale


def _constant(value: float) -> ir.Value:
    return arith.ConstantOp(ir.F32Type.get(), value).result


def _exp(origin: ir.Value, before: ir.Value) -> tuple[ir.Value, Power]:
    def power(score: ir.Value) -> ir.Value:
        return math_.exp(arith.SubFOp(score, origin).result)

    return power(before), power


def _power_of_two(factor: float, origin: ir.Value, before: ir.Value) -> tuple[ir.Value, Power]:
    """By an instruction, for results that are rounded to 16 bits; the factor makes powers of two of scores' own.

    A score's product is exact until the origin's, which is rounded, is taken from it. That is the same for all scores
    of a row, also for those that had another origin before, and so does not show in their weights. Where it would be
    more than a power can have, scores are known to no more than some units of the exponent: the factor is then the
    power of two below, so that nothing is rounded.
    """
    exact = _constant(2.0 ** math.floor(math.log2(factor)))
    rounded = math_.absf(arith.MulFOp(origin, _constant(factor)).result)
    is_large = arith.CmpFOp(arith.CmpFPredicate.OGT, rounded, _constant(_KNOWN)).result
    by = arith.SelectOp(is_large, exact, _constant(factor)).result
    least = _rounded_product(origin, by)
    minus = arith.NegFOp(least).result
    faded = arith.SubFOp(_rounded_product(before, by), least).result
    return (
        approximations.power_of_two(faded),
        lambda score: approximations.power_of_two(math_.fma(score, by, minus)),
    )


def _rounded_product(a: ir.Value, b: ir.Value) -> ir.Value:
    """No compiler makes one operation of it and the next."""
    return intrinsic("llvm.nvvm.mul.rn.f", Lane.of(a.type), a, b).value


def _combined(values: Sequence[ir.Value], combine: Any) -> ir.Value:
    """All by one operation, in chains beside each other, which wait for fewer results than one."""
    chains = list(values[:_CHAINS])
    for n, value in enumerate(values[_CHAINS:]):
        chains[n % _CHAINS] = combine(chains[n % _CHAINS], value).result
    while len(chains) > 1:
        rest = chains[len(chains) & ~1 :]
        chains = [combine(a, b).result for a, b in zip(chains[::2], chains[1::2])] + rest
    return chains[0]
