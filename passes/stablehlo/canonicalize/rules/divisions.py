"""The rule of `stablehlo-simplify` on divisions of bytes by a constant, as images are scaled: x / 255.

A division takes as long as twenty products. With 1 / c as a sum of two numbers, of which the first has so few
bits that its product with a byte is exact, `x * high + x * low` is rounded once, from almost x / c. That this is x / c
for each of 256 bytes is tried, with the sum rounded once or twice, before anything is replaced.
"""

from __future__ import annotations

import functools

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import made_by, splat_of
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of

_BITS_OF_HIGH = 16  # of 24: a byte has the others


@needs_operand_of("convert")
def _of_bytes(op: ir.Operation) -> ir.Value | None:
    """Of a byte by a constant -> the sum of its products with two."""
    of = op.results[0].type
    converted = made_by(op.operands[0], "stablehlo.convert")
    by = splat_of(op.operands[1])
    if converted is None or by is None or dtype_of(of) != np.float32:
        return None
    dtype = dtype_of(converted.operands[0].type)
    reciprocal = _reciprocal(dtype, float(by)) if dtype in (np.uint8, np.int8) else None
    if reciprocal is None:
        return None
    high, low = (
        hlo.multiply(op.operands[0], hlo.full(part, shape_of(of), np.dtype(np.float32))) for part in reciprocal
    )
    return hlo.add(high, low)


@functools.lru_cache(256)
def _reciprocal(dtype: np.dtype, by: float) -> tuple[np.float32, np.float32] | None:
    """Two numbers whose products with each byte add up to the quotient; None if there are none."""
    if not 1e-20 < abs(by) < 1e20:
        return None
    fraction, exponent = np.frexp(1 / by)
    whole = np.round(np.ldexp(fraction, _BITS_OF_HIGH))
    high = np.float32(np.ldexp(whole, exponent - _BITS_OF_HIGH))
    low = np.float32(1 / by - float(high))
    info = np.iinfo(dtype)
    x = np.arange(info.min, info.max + 1).astype(np.float32)
    want = (x / np.float32(by)).view(np.int32)
    products = x.astype(np.float64) * float(low)
    twice = x * high + products.astype(np.float32)
    once = (x.astype(np.float64) * float(high) + products).astype(np.float32)
    is_exact = all(np.array_equal(found.view(np.int32), want) for found in (twice, once))
    return (high, low) if is_exact else None


RULES: dict[str, tuple[Rule, ...]] = {"stablehlo.divide": (_of_bytes,)}
