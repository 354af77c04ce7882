"""Arrays repeated over larger shapes, as lowering emits them: once in a block, and late.

    n = broadcast_in_dim[shape=(1, 1, 8)] b       %0 = stablehlo.sqrt %b
    o = sqrt n                             ->     %1 = stablehlo.broadcast_in_dim %0, dims = [2]
    p = mul m o                                   %p = stablehlo.multiply %m, %1
    q = add p o                                   %q = stablehlo.add %p, %1

What only adds or drops dimensions of 1 is not carried along: the simplifier would take it out again,
op by op, which takes longer than to emit it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.records import Record


class _Literal(Record, frozen=False):
    """A number in the program, and the constants of several shapes that repeat it."""

    number: np.ndarray
    scalar: ir.Value
    constants: dict[tuple[int, ...], ir.Value] = field(default_factory=dict)


class _BeforeOnes(Record, frozen=False):
    """What an array with dimensions of 1 was before it had them; dims[i] is dimension i in it."""

    value: ir.Value
    shape: list[int]
    dims: tuple[int, ...]


class Spreads:
    """Those of one module."""

    def __init__(self) -> None:
        self._literals: dict[ir.Value, _Literal] = {}
        self._before_ones: dict[ir.Value, _BeforeOnes] = {}
        self._made: dict[tuple[object, ...], ir.Value] = {}
        self._droppable: list[ir.Value] = []

    def literal(self, number: np.ndarray) -> ir.Value:
        """A number that stands in the program."""
        value = hlo.constant(number)
        self._literals[value] = _Literal(number, value)
        self._droppable.append(value)
        return value

    def _repeated(self, literal: _Literal, shape: tuple[int, ...]) -> ir.Value:
        found = literal.constants.get(shape)
        if found is None:
            with ir.InsertionPoint.after(literal.scalar.owner):  # there for all that it is there for
                found = hlo.full(literal.number, shape, literal.number.dtype)
            literal.constants[shape] = found
            self._literals[found] = literal
            self._droppable.append(found)
        return found

    def spread(self, x: ir.Value, shape: tuple[int, ...], dims: Sequence[int]) -> ir.Value:
        """x's dimension i as dimension dims[i] of a shape; dims ascend."""
        literal = self._literals.get(x)
        if literal is not None and 0 not in shape:
            return self._repeated(literal, shape)
        before = self._before_ones.get(x)
        if before is not None:
            x, dims = before.value, [dims[d] for d in before.dims]
        dims = tuple(dims)
        of = x.type.shape
        if prod(of) == prod(shape):
            return self._with_ones(_BeforeOnes(x, of, dims), shape)
        key = (x, shape, dims, ir.InsertionPoint.current.block)  # others might not see it
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = hlo.broadcast_in_dim(x, shape, dims)
        return found

    def _with_ones(self, of: _BeforeOnes, shape: tuple[int, ...]) -> ir.Value:
        value = hlo.reshape(of.value, shape)
        self._before_ones[value] = of
        self._droppable.append(value)
        return value

    def apply(
        self, build: Callable[..., ir.Value], values: Sequence[ir.Value], shape: tuple[int, ...]
    ) -> ir.Value | None:
        """An element-wise op of operands that all got the same dimensions of 1, or are numbers, done
        before; None where they are others."""
        first = None
        for value in values:
            before = self._before_ones.get(value)
            if before is None:
                if value not in self._literals:
                    return None
            elif first is None:
                first = before
            elif before.dims != first.dims or before.shape != first.shape:
                return None
        if first is None or not first.shape or prod(first.shape) != prod(shape):
            return None
        of = tuple(first.shape)
        operands = [
            self._before_ones[value].value
            if value in self._before_ones
            else self._repeated(self._literals[value], of)
            for value in values
        ]
        return self._with_ones(_BeforeOnes(build(*operands), first.shape, first.dims), shape)

    def reshape(self, x: ir.Value, shape: tuple[int, ...]) -> ir.Value:
        """x's elements in another shape."""
        before = self._before_ones.get(x)
        if before is not None:
            x = before.value
        of = x.type.shape
        if of == list(shape):
            return x
        kept = [d for d, size in enumerate(shape) if size != 1]
        if of == [shape[d] for d in kept]:
            return self._with_ones(_BeforeOnes(x, of, tuple(kept)), shape)
        return hlo.reshape(x, shape)

    def mark(self) -> int:
        """Where a body begins, for `drop_unused`."""
        return len(self._droppable)

    def drop_unused(self, mark: int, results: Sequence[ir.Value]) -> None:
        """Erase what was made since and only read spread, unless it is a result."""
        kept = set(results)
        for value in self._droppable[mark:]:
            if value not in kept and next(iter(value.uses), None) is None:
                self._before_ones.pop(value, None)
                literal = self._literals.pop(value, None)
                if literal is not None and value != literal.scalar:
                    del literal.constants[tuple(value.type.shape)]
                value.owner.erase()
        del self._droppable[mark:]
