"""Arrays repeated over larger shapes, as lowering emits them: each once, of the least there is.

    n = broadcast_in_dim[shape=(1, 1, 8)] b       %n = stablehlo.reshape %b
    o = mul m n                            ->     %1 = stablehlo.broadcast_in_dim %b, dims = [2]
    q = add o n                                   %o = stablehlo.multiply %m, %1
                                                  %q = stablehlo.add %o, %1
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from math import prod

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir


@dataclasses.dataclass
class _Literal:
    """A number in the program, and the constants of several shapes that repeat it."""

    number: np.ndarray
    constants: dict[tuple[int, ...], ir.Value] = dataclasses.field(default_factory=dict)


class Spreads:
    """Those of one module."""

    def __init__(self) -> None:
        self._literals: dict[ir.Value, _Literal] = {}
        self._before_ones: dict[ir.Value, tuple[ir.Value, Sequence[int]]] = {}
        self._made: dict[tuple[object, ...], ir.Value] = {}
        self._droppable: list[ir.Value] = []

    def literal(self, number: np.ndarray) -> ir.Value:
        """A number that stands in the program."""
        value = hlo.constant(number)
        self._literals[value] = _Literal(number)
        self._droppable.append(value)
        return value

    def spread(self, x: ir.Value, shape: tuple[int, ...], dims: Sequence[int]) -> ir.Value:
        """x's dimension i as dimension dims[i] of a shape; dims ascend."""
        literal = self._literals.get(x)
        if literal is not None and 0 not in shape:
            return _repeated(x, literal, shape)
        source, places = self._before_ones.get(x, (x, None))
        if places is not None:
            dims = [dims[d] for d in places]
        if prod(source.type.shape) == prod(shape):
            value = hlo.reshape(source, shape)
            self._before_ones[value] = (source, dims)
            self._droppable.append(value)
            return value
        key = (source, shape, *dims, ir.InsertionPoint.current.block)  # others might not see it
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = hlo.broadcast_in_dim(source, shape, dims)
        return found

    def drop_ones(self, x: ir.Value, shape: tuple[int, ...]) -> ir.Value:
        """x in a shape that has fewer dimensions of 1."""
        source, _ = self._before_ones.get(x, (x, None))
        return source if tuple(source.type.shape) == shape else hlo.reshape(source, shape)

    def mark(self) -> int:
        """Where a body begins, for `drop_unused`."""
        return len(self._droppable)

    def drop_unused(self, mark: int, results: Sequence[ir.Value]) -> None:
        """Erase what was made since and only read spread, unless it is a result."""
        kept = set(results)
        for value in self._droppable[mark:]:
            if value not in kept and next(iter(value.uses), None) is None:
                self._literals.pop(value, None)
                self._before_ones.pop(value, None)
                value.owner.erase()
        del self._droppable[mark:]


def _repeated(x: ir.Value, literal: _Literal, shape: tuple[int, ...]) -> ir.Value:
    found = literal.constants.get(shape)
    if found is None:
        with ir.InsertionPoint.after(x.owner):  # there for all that the scalar is there for
            found = hlo.full(literal.number, shape, literal.number.dtype)
        literal.constants[shape] = found
    return found
