"""A large array as chunks that stay in cache, each a row of what the array is seen as."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.facts import CHEAP, computes_elements, defining, splat_of
from lamina.records import Record

_LENGTHS = range(8192, 511, -16)  # of a chunk: whole vectors, read again from the first cache or the second
_LEAST_CHUNKS = 8  # rounding
_MOST_OPS = 8  # search
_REDUCERS: dict[str, tuple[Callable[..., ir.Value], Any]] = {
    "stablehlo.add": (hlo.add, 0),
    "stablehlo.maximum": (hlo.maximum, -np.inf),
}


class Chunks(Record):
    """An array in the shape in which its last dimensions are a chunk."""

    view: ir.Value
    dimensions: tuple[int, ...]

    @classmethod
    def of(cls, x: ir.Value) -> Chunks | None:
        """All of an array's elements, seen from behind the op that makes it; None where no length of a chunk
        divides them."""
        shape = shape_of(x.type)
        for first in range(len(shape) - 1, 0, -1):
            if prod(shape[first:]) > _LENGTHS[0] or prod(shape[:first]) < _LEAST_CHUNKS:
                break
            if prod(shape[first:]) >= _LENGTHS[-1]:
                return cls(x, tuple(range(first, len(shape))))
        return cls.of_rows(x, prod(shape))

    @classmethod
    def of_rows(cls, x: ir.Value, row: int) -> Chunks | None:
        """Rows of so many elements, which the last dimensions are, each in chunks of one dimension."""
        length = next((n for n in _LENGTHS if row % n == 0), None)
        if length is None or row < _LEAST_CHUNKS * length:
            return None
        shape = shape_of(x.type)
        kept = list(shape[: next(d for d in range(len(shape) + 1) if prod(shape[d:]) == row)])
        view = _reshaped(x, [*kept, row // length, length])
        return None if view is None else cls(view, (len(kept) + 1,))

    @property
    def length(self) -> int:
        """How many elements a chunk has."""
        return prod(shape_of(self.view.type)[d] for d in self.dimensions)

    def reduced(self, values: ir.Value, reducer: str) -> ir.Value:
        """Of values in the view's shape those of each chunk as one."""
        return _reduced(values, self.dimensions, reducer)

    def spread(self, values: ir.Value) -> ir.Value:
        """One value for each chunk at each of its elements."""
        shape = shape_of(self.view.type)
        return hlo.broadcast_in_dim(values, shape, range(len(shape) - len(self.dimensions)))


def whole(values: ir.Value, reducer: str) -> ir.Value:
    """All values as one."""
    return _reduced(values, range(len(shape_of(values.type))), reducer)


def _reduced(values: ir.Value, dimensions: Any, reducer: str) -> ir.Value:
    combine, neutral = _REDUCERS[reducer]
    init = hlo.full(neutral, (), dtype_of(values.type))
    return hlo.reduce([values], [init], list(dimensions), lambda a, b: [combine(a, b)])[0]


def _reshaped(value: ir.Value, shape: list[int]) -> ir.Value | None:
    """A value in another shape, which is free: what is cheap to compute is computed once more from arrays
    in memory; None where there is too much of that."""
    members: dict[ir.Operation, None] = {}
    work = [value]
    while work:
        op = defining(work.pop())
        if op is not None and op not in members and computes_elements(op):
            if op.name not in CHEAP or len(members) == _MOST_OPS:
                return None
            members[op] = None
            work += [operand for operand in op.operands if operand.type.shape]
        elif op is not None and op.name in _IN_NO_MEMORY:
            return None
    made: dict[ir.Value, ir.Value] = {}

    def build(value: ir.Value) -> ir.Value:
        if value in made or not value.type.shape:
            return made.get(value, value)
        op, splat = defining(value), splat_of(value)
        if splat is not None:
            new = hlo.full(splat, shape, dtype_of(value.type))
        elif op is not None and op in members:
            of = ir.RankedTensorType.get(shape, value.type.element_type)
            new = remade(op, [of], [build(operand) for operand in op.operands]).result
        else:
            new = hlo.reshape(value, shape)
        made[value] = new
        return new

    return build(value)


_IN_NO_MEMORY = frozenset(
    f"stablehlo.{name}" for name in "broadcast_in_dim concatenate gather iota pad reverse slice transpose".split()
)
