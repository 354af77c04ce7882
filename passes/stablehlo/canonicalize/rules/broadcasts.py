"""The rules of `stablehlo-simplify` that move broadcasts down, past element-wise ops and reductions.

What is computed of equal elements is computed once: `sin(repeat(x, n))` is `repeat(sin(x), n)`, and its sum
over what was repeated `n * sin(x)`, rounded once where the sum is in each step. A reduction along
dimensions that stay is done before they are spread. The reshape after a broadcast by which `repeat` and
`tile` join dimensions is looked through.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.facts import (
    ELEMENTWISE,
    computes_elements,
    defining,
    ints,
    made_by,
    reducer_of,
    splat_of,
)
from lamina.passes.stablehlo.analysis.reassociation import grouped_dimensions
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of
from lamina.passes.stablehlo.canonicalize.rules.reshaped import reduced

_IDEMPOTENT = ("stablehlo.maximum", "stablehlo.minimum", "stablehlo.and", "stablehlo.or")
_OF_BOOLEANS = ("stablehlo.add", "stablehlo.multiply")
_LEAST_ITEM = 4  # range
"""Bytes of a float whose sum may be rounded once more before it is multiplied."""


class _Spread(NamedTuple):
    """An array that repeats a smaller one: what a broadcast makes, or a constant of equal elements."""

    value: ir.Value
    places: list[int]
    """The dimensions that are as long as the smaller one's."""

    @classmethod
    def of(cls, value: ir.Value) -> _Spread | None:
        op = made_by(value, "stablehlo.broadcast_in_dim")
        if op is not None:
            before, after = shape_of(op.operands[0].type), shape_of(value.type)
            dims = ints(op, "broadcast_dimensions")
            return cls(value, [d for d, size in zip(dims, before, strict=True) if size == after[d]])
        return None if splat_of(value) is None else cls(value, [])

    @property
    def shape(self) -> Sequence[int]:
        return shape_of(self.value.type)

    def without(self, dropped: Sequence[int]) -> ir.Value:
        """The array as it is without some of the dimensions that it is repeated along."""
        left = [d for d in range(len(self.shape)) if d not in dropped]
        shape = [self.shape[d] for d in left]
        splat = splat_of(self.value)
        if splat is not None:
            return hlo.full(splat, shape, dtype_of(self.value.type))
        source = defining(self.value).operands[0]  # type: ignore[union-attr]
        source = _reshaped(source, [self.shape[d] for d in self.places])
        return _spread(source, shape, [left.index(d) for d in self.places])


# element-wise ops


@needs_operand_of("broadcast_in_dim", "reshape")
def _of_spread(op: ir.Operation) -> ir.Value | None:
    """An op on arrays that are spread alike -> the op on them, spread."""
    if not op.results[0].type.shape or not computes_elements(op):
        return None
    like = None
    for value in op.operands:
        if not value.type.shape or splat_of(value) is not None:
            continue
        spread = _spreading(value)
        if spread is None or (like is not None and not _same_spread(like, spread)):
            return None
        like = spread
    if like is None:
        return None
    source = shape_of(like.operands[0].type)
    operands = [_before_spread(value, source) for value in op.operands]
    of = op.results[0].type.element_type
    small = remade(op, [ir.RankedTensorType.get(source, of)], operands).result
    wide = hlo.broadcast_in_dim(small, shape_of(like.result.type), ints(like, "broadcast_dimensions"))
    return _reshaped(wide, shape_of(op.results[0].type))


def _spreading(value: ir.Value) -> ir.Operation | None:
    """The broadcast that makes an array, perhaps by way of a reshape."""
    return made_by(_before_reshape(value), "stablehlo.broadcast_in_dim")


def _before_reshape(value: ir.Value) -> ir.Value:
    reshape = made_by(value, "stablehlo.reshape")
    return value if reshape is None else reshape.operands[0]


def _same_spread(first: ir.Operation, second: ir.Operation) -> bool:
    return (
        first.operands[0].type.shape == second.operands[0].type.shape
        and first.result.type.shape == second.result.type.shape
        and first.attributes["broadcast_dimensions"] == second.attributes["broadcast_dimensions"]
    )


def _before_spread(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    splat = splat_of(value)
    if splat is not None:
        return hlo.full(splat, shape, dtype_of(value.type)) if value.type.shape else value
    spread = _spreading(value)
    return value if spread is None else spread.operands[0]


# reductions


@needs_operand_of("broadcast_in_dim")
def _reduction_of_spread(op: ir.Operation) -> ir.Value | None:
    """Of an array that is spread along dimensions that stay -> spread after it."""
    producer = defining(op.operands[0])
    if len(op.results) != 1 or producer is None or producer.name != "stablehlo.broadcast_in_dim":
        return None
    shape, along, places = (
        shape_of(op.operands[0].type), ints(op, "dimensions"), ints(producer, "broadcast_dimensions"),
    )  # fmt: skip
    left = [d for d in range(len(shape)) if d in places or d in along]
    if len(left) == len(shape):
        return None
    source = hlo.broadcast_in_dim(
        producer.operands[0], [shape[d] for d in left], [left.index(d) for d in places]
    )
    small = reduced(op, source, [left.index(d) for d in along])
    kept = [d for d in range(len(shape)) if d not in along]
    spread = [kept.index(d) for d in left if d not in along]
    return hlo.broadcast_in_dim(small, shape_of(op.results[0].type), spread)


def _reduction_of_copies(op: ir.Operation) -> ir.Value | None:
    """Along dimensions that an array is repeated along -> of one of the copies, a sum times their number."""
    if len(op.results) != 1 or op.operands[0].type.element_type != op.results[0].type.element_type:
        return None
    spread = _Spread.of(_before_reshape(op.operands[0]))
    if spread is None or 0 in spread.shape:
        return None
    along = _before_joining(op)
    copies = [d for d in along if d not in spread.places]
    if not copies:
        return None
    init, reducer, of = op.operands[1], reducer_of(op), op.results[0].type
    left = [d for d in range(len(spread.shape)) if d not in copies]
    rest = [left.index(d) for d in along if d in spread.places]
    idempotent = reducer in _IDEMPOTENT or (reducer in _OF_BOOLEANS and dtype_of(of) == np.bool_)
    count = prod(spread.shape[d] for d in copies)
    factor = _factor(dtype_of(of), count, bool(rest)) if reducer == "stablehlo.add" else None
    if not idempotent and (factor is None or splat_of(init) is None or splat_of(init) != 0):
        return None
    value = spread.without(copies)
    if rest:
        value = reduced(op, value, rest)
    value = _reshaped(value, shape_of(of))
    if not idempotent:
        value = _applied("stablehlo.multiply", value, hlo.full(factor, (), dtype_of(of)))
    # What a sum of zeros begins with decides its sign.
    return value if rest else _applied(str(reducer), value, init)


def _reshaped(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    return value if list(value.type.shape) == list(shape) else hlo.reshape(value, shape)


def _spread(value: ir.Value, shape: Sequence[int], places: Sequence[int]) -> ir.Value:
    splat = splat_of(value)
    if splat is not None:
        return hlo.full(splat, shape, dtype_of(value.type))
    same = list(value.type.shape) == list(shape) and list(places) == sorted(places)
    return value if same else hlo.broadcast_in_dim(value, shape, places)


def _applied(name: str, value: ir.Value, scalar: ir.Value) -> ir.Value:
    """An op of an array and of a scalar for all of it."""
    other = _spread(scalar, shape_of(value.type), ())
    return ir.Operation.create(name, [value.type], [value, other]).result


def _factor(dtype: np.dtype, count: int, of_sums: bool) -> np.ndarray | None:
    """A count as a number of a dtype, wrapped for integers; None where a product by it isn't what the
    sum is: it is rounded itself, or makes NaN of a complex infinity, or sums are rounded coarsely."""
    if dtype.kind == "c" or dtype == np.bool_:
        return None
    if dtype.kind in "iu":
        return np.asarray(count).astype(dtype)
    if of_sums and dtype.itemsize < _LEAST_ITEM:
        return None
    factor = np.asarray(count, np.float64).astype(dtype)
    return factor if float(factor) == count else None


def _before_joining(op: ir.Operation) -> list[int]:
    """The dimensions that a reduction sums of what its operand is reshaped from, if it is; none where the
    reshape mixes them with others."""
    along = ints(op, "dimensions")
    reshape = made_by(op.operands[0], "stablehlo.reshape")
    if reshape is None:
        return along
    groups = grouped_dimensions(shape_of(reshape.operands[0].type), shape_of(reshape.result.type))
    found: list[int] = []
    for old, new in groups or ():
        chosen = [d for d in new if d in along]
        if chosen and chosen != new:
            return []
        found += old if chosen else []
    return found


RULES: dict[str, tuple[Rule, ...]] = {name: (_of_spread,) for name in ELEMENTWISE} | {
    "stablehlo.reduce": (_reduction_of_spread, _reduction_of_copies)
}
