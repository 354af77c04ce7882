"""Write `batch_norm_training`, `batch_norm_inference` and `batch_norm_grad` in elementary ops.

Mean and variance are reductions over all dimensions but the feature dimension; the rest is element-
wise and fuses with them. Follows the StableHLO specification's formulas, in f32 where elements are narrower.

example: test/passes/stablehlo/legalize/rules/normalization.mlir
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.legalize.rules.rule import Rule

Expansion = Callable[["_Features", list[ir.Value]], list[ir.Value]]


def _expanded(op: ir.Operation) -> list[ir.Value]:
    """The expansion of an op, on operands and to results that are as wide as f32 in between."""
    expand = _EXPANSIONS[op.name]
    operands, dtype = list(op.operands), dtype_of(op.operands[0].type)
    narrow = dtype not in (np.float32, np.float64)
    if narrow:
        operands = [hlo.convert(operand, np.float32) for operand in operands]
    results = expand(_Features(op, operands[0]), operands)
    return [hlo.convert(result, dtype) for result in results] if narrow else results


class _Features:
    """An operand whose feature dimension is kept by reductions and broadcast back along."""

    def __init__(self, op: ir.Operation, x: ir.Value) -> None:
        self.shape = list(x.type.shape)
        self.dtype = dtype_of(x.type)
        self.dimension = ir.IntegerAttr(op.attributes["feature_index"]).value
        self.others = [d for d in range(len(self.shape)) if d != self.dimension]
        self.count = prod(self.shape[d] for d in self.others)
        self.epsilon = ir.FloatAttr(op.attributes["epsilon"]).value

    def spread(self, feature: ir.Value) -> ir.Value:
        return hlo.broadcast_in_dim(feature, self.shape, [self.dimension])

    def sum(self, x: ir.Value) -> ir.Value:
        zero = hlo.full(self.dtype.type(0), [], self.dtype)
        return hlo.reduce([x], [zero], self.others, lambda a, b: [hlo.add(a, b)])[0]

    def mean(self, x: ir.Value) -> ir.Value:
        return hlo.divide(self.sum(x), self.number(self.count))

    def number(self, value: float) -> ir.Value:
        return hlo.full(self.dtype.type(value), [self.shape[self.dimension]], self.dtype)

    def deviation(self, variance: ir.Value) -> ir.Value:
        return hlo.sqrt(hlo.add(variance, self.number(self.epsilon)))

    def normalise(
        self, x: ir.Value, scale: ir.Value, offset: ir.Value, mean: ir.Value, variance: ir.Value
    ) -> ir.Value:
        centred = hlo.subtract(x, self.spread(mean))
        normalised = hlo.divide(centred, self.spread(self.deviation(variance)))
        return hlo.add(hlo.multiply(self.spread(scale), normalised), self.spread(offset))


def _training(features: _Features, operands: list[ir.Value]) -> list[ir.Value]:
    x, scale, offset = operands
    mean = features.mean(x)
    centred = hlo.subtract(x, features.spread(mean))
    variance = features.mean(hlo.multiply(centred, centred))
    return [features.normalise(x, scale, offset, mean, variance), mean, variance]


def _inference(features: _Features, operands: list[ir.Value]) -> list[ir.Value]:
    x, scale, offset, mean, variance = operands
    return [features.normalise(x, scale, offset, mean, variance)]


def _grad(features: _Features, operands: list[ir.Value]) -> list[ir.Value]:
    x, scale, mean, variance, gradient = operands
    deviation = features.deviation(variance)
    centred = hlo.subtract(x, features.spread(mean))
    of_offset = features.sum(gradient)
    projected = features.sum(hlo.multiply(gradient, centred))
    inverse_variance = hlo.divide(
        features.number(1.0), hlo.add(variance, features.number(features.epsilon))
    )
    of_scale = hlo.divide(projected, deviation)
    counted = hlo.multiply(gradient, features.spread(features.number(features.count)))
    along = hlo.multiply(centred, features.spread(hlo.multiply(projected, inverse_variance)))
    rest = hlo.subtract(hlo.subtract(counted, features.spread(of_offset)), along)
    factor = hlo.divide(hlo.divide(scale, deviation), features.number(features.count))
    return [hlo.multiply(features.spread(factor), rest), of_scale, of_offset]


_EXPANSIONS: dict[str, Expansion] = {
    "stablehlo.batch_norm_training": _training,
    "stablehlo.batch_norm_inference": _inference,
    "stablehlo.batch_norm_grad": _grad,
}
RULE = Rule(tuple(_EXPANSIONS), lambda op: True, _expanded)
