"""Walk a large array once for what is reduced of it after a shift by what is reduced of it.

    m = max of x; s = sum of exp(x - m)      ->  m_c = max of a chunk; s_c = sum of exp(x - m_c) over it
                                                 m = max of m_c; s = sum of s_c * exp(m_c - m)

    t = sum of x / n; q = sum of (x - t)^2   ->  t_c = sum of a chunk; q_c = sum of (x - t_c / k)^2
                                                 t = sum of t_c / n; q = sum of q_c + k * (t_c / k - t)^2

The chunk is in cache when it is read again, and chunks are rows to `stablehlo-fuse`, which makes one
kernel of both reductions, and tasks. So a softmax over a whole array reads it twice, not three times
(and writes it once, not twice), logsumexp and a variance once. A chunk's shift is any number near
its elements: whatever `m` becomes on the way, as where it is infinite, is in the last formula. For
f32 and f64 of `least-elements` or more, of which all dimensions are reduced; chunks are the last dimensions, if
they are neither short nor long, or found by a reshape of what `x` is made from. Leaves alone what no length of a chunk
divides.

example: test/passes/stablehlo/algebra/reduce_in_chunks.mlir
"""

from __future__ import annotations

from math import prod

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.chunks import Chunks, whole
from lamina.passes.stablehlo.analysis.facts import defining, made_by, reducer_of, splat_of
from lamina.passes.stablehlo.canonicalize.rewriting import erase
from lamina.records import Record

_MOST_SCALARS = 16  # search: ops between the first reduction and the shift
_ADD, _MAX = "stablehlo.add", "stablehlo.maximum"


class ReduceInChunks(Pass):
    """The pass `stablehlo-reduce-in-chunks`."""

    only_with = frozenset(("stablehlo.reduce",))

    least_elements: int = 1 << 17  # rounding

    def run(self, module: ir.Module) -> None:
        known: dict[ir.Operation, tuple[Chunks, ir.Value, ir.Value]] = {}
        for op in find_ops(module, "stablehlo.reduce"):
            shifted = _Shifted.of(op)
            if shifted is None or prod(shape_of(shifted.x.type)) < self.least_elements:
                continue
            first = shifted.first
            if first not in known:
                with ir.InsertionPoint(first), first.location:
                    chunks = Chunks.of(shifted.x)
                    if chunks is None:
                        continue
                    known[first] = chunks, *_in_chunks(first, chunks)
            chunks, partial, _ = known[first]
            with ir.InsertionPoint(op), op.location:
                total = shifted.total(chunks, partial)
            op.results[0].replace_all_uses_with(total)
            erase(op)
            self.count("sums")
        for first, (_, _, result) in known.items():
            first.results[0].replace_all_uses_with(result)
            erase(first)


class _Shifted(Record):
    """A sum over all of `exp(x - shift)`, or of its square, where the shift comes from a first reduction."""

    x: ir.Value
    shift: ir.Value
    first: ir.Operation

    @classmethod
    def of(cls, op: ir.Operation) -> _Shifted | None:
        """The sum, if an op is one."""
        if not _reduces_all(op, _ADD):
            return None
        made = defining(op.operands[0])
        if made is None or made.name not in ("stablehlo.exponential", "stablehlo.multiply"):
            return None
        is_square = made.name == "stablehlo.multiply"
        difference = made_by(made.operands[0], "stablehlo.subtract")
        if difference is None or (is_square and made.operands[0] != made.operands[1]):
            return None
        x, spread = difference.operands
        broadcast = made_by(spread, "stablehlo.broadcast_in_dim")
        if broadcast is None or broadcast.operands[0].type.shape:
            return None
        shift = broadcast.operands[0]
        first = _first_reduction(shift, x, _ADD if is_square else _MAX)
        if first is None or first.block != op.block:
            return None
        return cls(x, shift, first)

    def total(self, chunks: Chunks, partial: ir.Value) -> ir.Value:
        """The sum of the chunks' sums, each of which is shifted by what is near its elements."""
        shape, dtype = shape_of(partial.type), dtype_of(partial.type)
        shift = hlo.broadcast_in_dim(self.shift, shape, ())
        if reducer_of(self.first) == _MAX:
            limits = np.finfo(dtype)
            # Of a chunk of infinities alone each is infinitely far from the largest number.
            near = hlo.maximum(partial, hlo.full(limits.min, shape, dtype))
            near = hlo.minimum(near, hlo.full(limits.max, shape, dtype))
            sums = chunks.reduced(hlo.exponential(hlo.subtract(chunks.view, chunks.spread(near))), _ADD)
            sums = hlo.multiply(sums, hlo.exponential(hlo.subtract(near, shift)))
        else:
            near = hlo.multiply(partial, hlo.full(1 / chunks.length, shape, dtype))
            away = hlo.subtract(chunks.view, chunks.spread(near))
            sums = chunks.reduced(hlo.multiply(away, away), _ADD)
            # Both are infinite where the sum is: then the squares are, too, or there is no number.
            is_shift, none = hlo.compare(near, shift, "EQ"), hlo.full(0, shape, dtype)
            off = hlo.select(is_shift, none, hlo.subtract(near, shift))
            count = hlo.full(chunks.length, shape, dtype)
            sums = hlo.add(sums, hlo.multiply(count, hlo.multiply(off, off)))
        return whole(sums, _ADD)


def _reduces_all(op: ir.Operation, reducer: str) -> bool:
    if len(op.results) != 1 or op.results[0].type.shape or reducer_of(op) != reducer:
        return False
    types = (op.operands[0].type, op.results[0].type)
    init = splat_of(op.operands[1])
    return (
        all(dtype_of(of) in (np.float32, np.float64) for of in types)
        and types[0].element_type == types[1].element_type
        and init is not None
        and init == (0 if reducer == _ADD else -np.inf)
    )


def _first_reduction(shift: ir.Value, x: ir.Value, reducer: str) -> ir.Operation | None:
    """The reduction of x that a scalar is computed from by scalar ops."""
    work, seen = [shift], 0
    while work and seen < _MOST_SCALARS:
        op, seen = defining(work.pop()), seen + 1
        if op is None:
            continue
        if op.name == "stablehlo.reduce":
            if op.operands[0] == x and _reduces_all(op, reducer):
                return op
        elif not any(result.type.shape for result in op.results):
            work += [value for value in op.operands if not value.type.shape]
    return None


def _in_chunks(first: ir.Operation, chunks: Chunks) -> tuple[ir.Value, ir.Value]:
    """What a reduction gives for each chunk, and of those for all."""
    reducer = reducer_of(first)
    assert reducer is not None
    partial = chunks.reduced(chunks.view, reducer)
    return partial, whole(partial, reducer)
