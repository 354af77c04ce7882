"""What a dynamic slice takes of an array, and arithmetic on where: known positions are computed here, others by
ops at the ambient place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import splat_of


@dataclass(frozen=True)
class Part:
    """What a dynamic slice takes of an array of some shape."""

    starts: list[ir.Value]
    sizes: list[int]
    shape: list[int]

    @classmethod
    def of(cls, op: ir.Operation) -> Part:
        array, *starts = op.operands
        return cls(starts, list(shape_of(op.results[0].type)), list(shape_of(array.type)))

    @property
    def dtype(self) -> np.dtype:
        return dtype_of(self.starts[0].type)

    @property
    def can_compute(self) -> bool:
        """Whether positions can be computed in the type of the starts."""
        of = self.dtype
        return of.itemsize >= 4 and max(self.shape) <= np.iinfo(of).max // 2

    def is_whole(self, dim: int) -> bool:
        return self.sizes[dim] == self.shape[dim]

    def start(self, dim: int) -> ir.Value:
        """Where it begins along a dimension: the start, clamped."""
        return self.clamped(self.starts[dim], self.shape[dim] - self.sizes[dim])

    def clamped(self, start: ir.Value, most: int) -> ir.Value:
        known = splat_of(start)
        if known is not None or not most:
            return self.number(min(max(int(known or 0), 0), most))
        return hlo.clamp(self.number(0), start, self.number(most))

    def number(self, value: int) -> ir.Value:
        return hlo.full(value, (), self.dtype)

    def plus(self, start: ir.Value, number: int) -> ir.Value:
        known = splat_of(start)
        if known is not None:
            return self.number(int(known) + number)
        return hlo.add(start, self.number(number)) if number else start

    def sum(self, one: ir.Value, other: ir.Value) -> ir.Value:
        for value, rest in ((one, other), (other, one)):
            known = splat_of(value)
            if known is not None:
                return self.plus(rest, int(known))
        return hlo.add(one, other)

    def times(self, start: ir.Value, number: int) -> ir.Value:
        known = splat_of(start)
        if known is not None:
            return self.number(int(known) * number)
        return start if number == 1 else hlo.multiply(start, self.number(number))

    def minus(self, number: int, start: ir.Value) -> ir.Value:
        known = splat_of(start)
        if known is not None:
            return self.number(number - int(known))
        return hlo.subtract(self.number(number), start)

    def taken(self, value: ir.Value) -> ir.Value:
        """The same part of another array of the shape."""
        return hlo.dynamic_slice(value, self.starts, self.sizes)
