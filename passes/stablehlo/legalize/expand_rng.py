"""Write `stablehlo.rng` with `rng_bit_generator`, whose bits are Philox's.

    rng %a, %b, shape, UNIFORM   ->   bits; a float in [0, 1) of them; a + (b - a) * float
    rng %mu, %sigma, ..., NORMAL ->   two uniform numbers, by Box and Muller; mu + sigma * number

The seed of an op is its place among the module's: a program gives the same numbers each time it
runs, and its ops different ones. Integers of UNIFORM are in [a, b), by a remainder.
Source: Box and Muller, A note on the generation of random normal deviates, 1958.

example: test/passes/stablehlo/legalize/expand_rng.mlir
"""

from __future__ import annotations

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

_MANTISSA = {4: 23, 8: 52}


class ExpandRng(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for seed, op in enumerate(find_ops(module, "stablehlo.rng")):
            if not op.results[0].type.has_static_shape:
                continue  # check-supported says it
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_expanded(op, seed))
            op.erase()
            self.count("expanded")


def _expanded(op: ir.Operation, seed: int) -> ir.Value:
    a, b = op.operands[0], op.operands[1]
    result = op.results[0].type
    shape, dtype = list(result.shape), dtype_of(result)
    first, second = (hlo.broadcast_in_dim(x, shape, []) for x in (a, b))
    if "NORMAL" in str(op.attributes["rng_distribution"]):
        number = hlo.convert(_normal(shape, _wide(dtype), seed), dtype)
        return hlo.add(first, hlo.multiply(number, second))
    if dtype.kind == "b":
        drawn = hlo.compare(_bits(shape, 4, seed), hlo.full(1 << 31, shape, np.uint32), "LT")
        return hlo.or_(hlo.and_(drawn, first), hlo.and_(hlo.not_(drawn), second))
    if dtype.kind in "iu":
        return _integers(first, second, shape, dtype, seed)
    number = hlo.convert(_unit(shape, _wide(dtype), seed), dtype)
    return hlo.add(first, hlo.multiply(number, hlo.subtract(second, first)))


def _wide(dtype: np.dtype) -> np.dtype:
    """What numbers of a floating dtype are drawn in."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def _bits(shape: list[int], bytes_: int, seed: int) -> ir.Value:
    state = hlo.constant(np.array([seed, 0], np.uint64))
    dtype = np.dtype(np.uint64 if bytes_ == 8 else np.uint32)
    return hlo.rng_bit_generator(state, shape, dtype, "PHILOX")[1]


def _unit(shape: list[int], dtype: np.dtype, seed: int) -> ir.Value:
    """Uniform in [0, 1): random mantissas of numbers in [1, 2), less 1."""
    mantissa, size = _MANTISSA[dtype.itemsize], dtype.itemsize
    word = np.dtype(f"u{size}")
    bits = _bits(shape, size, seed)
    bits = hlo.shift_right_logical(bits, hlo.full(8 * size - mantissa, shape, word))
    one = hlo.full(int(np.ones((), dtype).view(word)), shape, word)
    return hlo.subtract(hlo.bitcast_convert(hlo.or_(bits, one), shape, dtype), hlo.full(1, shape, dtype))


def _normal(shape: list[int], dtype: np.dtype, seed: int) -> ir.Value:
    pair = _unit([2, *shape], dtype, seed)
    starts, strides = [0] * (len(shape) + 1), [1] * (len(shape) + 1)
    u, v = (
        hlo.reshape(hlo.slice(pair, [i, *starts[1:]], [i + 1, *shape], strides), shape)
        for i in (0, 1)
    )
    # 1 - u is in (0, 1]: its logarithm is finite
    radius = hlo.sqrt(
        hlo.multiply(
            hlo.full(-2, shape, dtype), hlo.log(hlo.subtract(hlo.full(1, shape, dtype), u))
        )
    )
    return hlo.multiply(radius, hlo.cosine(hlo.multiply(v, hlo.full(2 * np.pi, shape, dtype))))


def _integers(
    low: ir.Value, high: ir.Value, shape: list[int], dtype: np.dtype, seed: int
) -> ir.Value:
    word = np.dtype(np.uint64 if dtype.itemsize == 8 else np.uint32)
    span = hlo.subtract(_as(high, word), _as(low, word))
    least = hlo.maximum(span, hlo.full(1, shape, word))  # an empty range gives a
    offset = hlo.remainder(_bits(shape, word.itemsize, seed), least)
    return hlo.convert(hlo.add(_as(low, word), offset), dtype)


def _as(x: ir.Value, word: np.dtype) -> ir.Value:
    """Integers, wrapped to a word."""
    signed = np.dtype(f"i{word.itemsize}")
    return (
        hlo.convert(hlo.convert(x, signed), word)
        if dtype_of(x.type).kind == "i"
        else (hlo.convert(x, word))
    )
