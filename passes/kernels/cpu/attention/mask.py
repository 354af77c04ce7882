"""Which blocks of keys an attention's mask hides from a block of queries, so that they can be left out.

The mask is read off the scores: select(visible, score, lowest), where `visible` is made of iotas,
constants, sums, comparisons and logic. Bounds of each for the block's queries and a block's keys say
whether any may be visible. Keys are left out at the end only, and only where that changes nothing:
where `lowest` is -inf, or every query of the block sees the first key, so that others' exponentials
are zero beside its own. (A hidden value that is infinite or NaN is then not multiplied by zero.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lamina.dialects.constants import array_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import Scalar, choose, constant, index, repeat_while, smaller, true
from lamina.passes.stablehlo.analysis.facts import CONSTANT, defining, ints, made_by, splat_of
from lamina.passes.stablehlo.attention.reading import Attention
from lamina.records import Record

_LOWEST = -1e30
_LARGEST = 1 << 30  # range: of a constant that is added: sums of those and of positions don't wrap

Bounds = tuple[Scalar, Scalar]
"""The least and the greatest an integer can be; or whether a boolean must, and may be true."""


class Mask(Record):
    """What hides scores: `visible` or, if not `when`, its negation."""

    visible: ir.Value
    when: bool
    is_infinite: bool

    @classmethod
    def of(cls, attention: Attention) -> Mask | None:
        """The mask of an attention's scores; None where there is none, or nothing is known of it."""
        return cls.of_scores(attention.scores)

    @classmethod
    def of_scores(cls, scores: ir.Value) -> Mask | None:
        """The mask of what softmax takes."""
        select = made_by(scores, "stablehlo.select")
        if select is None:
            return None
        visible, *cases = select.operands
        for when, lowest in ((True, cases[1]), (False, cases[0])):
            number = splat_of(lowest)
            if number is not None and float(number) <= _LOWEST and _is_known(visible):
                return cls(visible, when, float(number) == -float("inf"))
        return None

    def bounds(self, at: Sequence[Bounds]) -> Bounds:
        """Whether all scores between these positions are visible, and whether one may be."""
        must, may = _bounds(self.visible, list(at))
        return (must, may) if self.when else (~may, ~must)


def blocks_in_sight(
    mask: Mask, at: Mapping[int, Bounds], keys_dim: int, keys: int, size: int
) -> Scalar:
    """How many blocks of `size` keys a block of queries needs, at least one. `at`: where its scores are
    along all other dimensions."""
    blocks = -(-keys // size)

    def among(low: Scalar, high: Scalar) -> Bounds:
        where = {**at, keys_dim: (low, high)}
        return mask.bounds([where[d] for d in sorted(where)])

    zero = index(0)
    may_leave_out = true() if mask.is_infinite else among(zero, zero)[0]

    def is_hidden(end: Scalar) -> Scalar:
        last = smaller(end * size, keys) - 1
        return may_leave_out & ~among((end - 1) * size, last)[1] & (end > 1)

    return repeat_while([index(blocks)], is_hidden, lambda end: [end - 1])[0]


def _is_known(value: ir.Value) -> bool:
    """Whether anything can be said of a boolean by positions alone."""
    op = defining(value)
    if op is None:
        return False
    if op.name == "stablehlo.compare":
        return all(_is_integer(operand) for operand in op.operands)
    return op.name in _PASSED and any(_is_known(operand) for operand in op.operands)


_PASSED = ("stablehlo.broadcast_in_dim", "stablehlo.and", "stablehlo.or", "stablehlo.not")


def _is_integer(value: ir.Value) -> bool:
    """Whether `_bounds` knows an integer."""
    op, element = defining(value), value.type.element_type
    if op is None or not isinstance(element, ir.IntegerType) or element.width < 32:
        return False
    if op.name == CONSTANT:
        number = splat_of(value)
        return number is not None and abs(int(number)) < _LARGEST
    if op.name == "stablehlo.iota":
        return True
    known = ("stablehlo.add", "stablehlo.subtract", "stablehlo.convert", "stablehlo.broadcast_in_dim")
    return op.name in known and all(map(_is_integer, op.operands))


def _bounds(value: ir.Value, at: list[Bounds]) -> Bounds:
    op = defining(value)
    name = "" if op is None else op.name.removeprefix("stablehlo.")
    if op is not None and name == "broadcast_in_dim":
        return _bounds(op.operands[0], _before_broadcast(op, at))
    if op is not None and name in ("and", "or"):
        left, right = (_bounds(operand, at) for operand in op.operands)
        if name == "and":
            return left[0] & right[0], left[1] & right[1]
        return left[0] | right[0], left[1] | right[1]
    if op is not None and name == "not":
        must, may = _bounds(op.operands[0], at)
        return ~may, ~must
    if op is not None and name == "compare" and all(map(_is_integer, op.operands)):
        return _compared(op, *(_number(operand, at) for operand in op.operands))
    return _nothing()


def _nothing() -> Bounds:
    return ~true(), true()


def _number(value: ir.Value, at: list[Bounds]) -> Bounds:
    """The bounds of an integer, as index."""
    op = defining(value)
    assert op is not None
    match op.name.removeprefix("stablehlo."):
        case "iota":
            return at[op.attributes["iota_dimension"].value]
        case "constant":
            number = constant(int(array_of(op)[(0,) * len(value.type.shape)]))
            return number, number
        case "broadcast_in_dim":
            return _number(op.operands[0], _before_broadcast(op, at))
        case "convert":
            return _number(op.operands[0], at)
        case name:
            left, right = (_number(operand, at) for operand in op.operands)
            if name == "add":
                return left[0] + right[0], left[1] + right[1]
            return left[0] - right[1], left[1] - right[0]


def _before_broadcast(op: ir.Operation, at: list[Bounds]) -> list[Bounds]:
    """Where the operand of a broadcast is read."""
    zero = index(0)
    dimensions = zip(ints(op, "broadcast_dimensions"), op.operands[0].type.shape, strict=True)
    return [at[d] if size > 1 else (zero, zero) for d, size in dimensions]


def _compared(op: ir.Operation, a: Bounds, b: Bounds) -> Bounds:
    direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    if direction in ("LE", "LT"):
        a, b, direction = b, a, {"LE": "GE", "LT": "GT"}[direction]
    if direction == "GE":
        return a[0] >= b[1], a[1] >= b[0]
    if direction == "GT":
        return a[0] > b[1], a[1] > b[0]
    return _nothing()


def tile_bounds(first: Scalar, size: int, extents: Sequence[int]) -> list[Bounds]:
    """Where `size` rows from one on lie in a space of these extents, walked as one, for each of its
    dimensions; rows beyond the last count as the last."""
    total = math.prod(extents)
    last = smaller(first + (size - 1), total - 1)
    found: list[Bounds] = []
    inner = total
    for extent in extents:
        inner //= extent
        low, high = first // inner, last // inner
        if inner * extent < total:  # it may begin anew within the rows
            same = (low // extent).equals(high // extent)
            low, high = choose(same, low % extent, 0), choose(same, high % extent, extent - 1)
        found.append((low, high))
    return found

