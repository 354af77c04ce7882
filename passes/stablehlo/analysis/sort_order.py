"""Which sorts are by the order of numbers, read from their comparators.

Known are `a < b` and `a > b` in any comparison type; what `lax.sort` emits: less, or only the right
is NaN, and several keys as `less(a0, b0) or (not less(b0, a0) and less(a1, b1))`; and what JAX
emits: TOTALORDER after zeros and NaNs were made equal among themselves. A `chlo.top_k` is by the
order of its numbers as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from lamina.dialects.constants import array_of, is_splat
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import CONSTANT, made_by
from lamina.records import Record

UNSIGNED, SIGNED, FLOAT, TOTAL_ORDER = range(4)
BRAIN_FLOAT = 8  # added to the kind of a bf16 key
_FLOATS = ("f16", "bf16", "f32", "f64")
_WIDTHS = {
    "i1": 1, "i8": 1, "ui8": 1, "i16": 2, "ui16": 2, "f16": 2, "bf16": 2, "i32": 4, "ui32": 4,
    "f32": 4, "i64": 8, "ui64": 8, "f64": 8, "complex<f32>": 8, "complex<f64>": 16,
}  # fmt: skip
_LEAST_LENGTH = 32  # shape: of a row: shorter ones cost less to sort than to hand over
_LEAST_OF_MANY, _MANY = 4, 256  # shape: but for so many rows, which are sorted together


class Key(Record):
    """An operand that is sorted by, the kind of its order, and its direction."""

    operand: int
    kind: int
    descending: bool = False


class SortOrder(Record):
    """A sort of rows: element j of row (o, i) lies at (o * length + j) * inner + i."""

    outer: int
    length: int
    inner: int
    widths: tuple[int, ...]
    keys: tuple[Key, ...]

    @classmethod
    def of(cls, sort: ir.Operation) -> SortOrder | None:
        """What a `stablehlo.sort` does; None if its order is another, or its rows are short."""
        types = [operand.type for operand in sort.operands]
        if not all(type_.has_static_shape for type_ in types):
            return None
        shape = list(types[0].shape)
        dimension = (
            ir.IntegerAttr(sort.attributes["dimension"]).value if "dimension" in sort.attributes
            else -1
        ) % max(len(shape), 1)  # fmt: skip
        if not shape or 0 in shape:
            return None
        is_many = prod(shape) // shape[dimension] >= _MANY
        if not (_LEAST_OF_MANY if is_many else _LEAST_LENGTH) <= shape[dimension] < 1 << 31:
            return None
        widths = [_WIDTHS.get(str(type_.element_type)) for type_ in types]
        keys = _keys(sort.regions[0].blocks[0])
        if keys is None or any(width is None for width in widths):
            return None
        kept = list(dict.fromkeys(keys))
        if len(widths) == 1 and len(kept) > 1:
            return None
        return cls(
            prod(shape[:dimension]),
            shape[dimension],
            prod(shape[dimension + 1 :]),
            tuple(width for width in widths if width is not None),
            tuple(kept),
        )


class TopK(Record):
    """The greatest `count` elements of each dense row, the greatest first, and their places."""

    rows: int
    length: int
    count: int
    width: int
    kind: int

    @classmethod
    def of(cls, op: ir.Operation) -> TopK | None:
        """What a `chlo.top_k` does; None where there is nothing to find, or its numbers are unknown."""
        of = op.operands[0].type
        count = ir.IntegerAttr(op.attributes["k"]).value
        if not of.has_static_shape or 0 in of.shape or not 0 < count <= of.shape[-1] < 1 << 31:
            return None
        element = str(of.element_type)
        kind = TOTAL_ORDER if element in _FLOATS else _kind_of_integers(element)
        if kind is None:
            return None
        *outer, length = of.shape
        return cls(prod(outer), length, count, _WIDTHS[element], kind)


def _kind_of_integers(element: str) -> int | None:
    if element in _FLOATS or element not in _WIDTHS or element.startswith("complex"):
        return None
    return SIGNED if element.startswith("i") and element != "i1" else UNSIGNED


def _keys(comparator: ir.Block) -> list[Key] | None:
    """The keys of a comparator, the most important first."""
    end = comparator.operations[len(comparator.operations) - 1].operation
    places = {argument: number for number, argument in enumerate(comparator.arguments)}
    found = _Comparator(places).less(end.operands[0])
    if found is None or any(left % 2 for _, left in found):
        return None  # compares right with left
    return [key for key, _ in found]


_Found = list[tuple[Key, int]]
"""Keys, each with the number of the comparator's argument that stands on the left."""


class _Comparator(Record):
    places: dict[ir.Value, int]

    def less(self, value: ir.Value) -> _Found | None:
        """The keys by which this value says that the left comes first."""
        compare = made_by(value, "stablehlo.compare")
        if compare is not None:
            return self._comparison(compare)
        either = made_by(value, "stablehlo.or")
        if either is None:
            return None
        first, second = either.operands
        found = self.less(first)
        if found is None:
            return None
        if self._only_right_is_nan(second, found):
            return found
        both = made_by(second, "stablehlo.and")
        if both is None:
            return None
        tied, rest = both.operands
        following = self.less(rest)
        if following is None or len(found) != 1:
            return None
        return found + following if self._is_tie(tied, *found[0]) else None

    def _is_tie(self, value: ir.Value, key: Key, left: int) -> bool:
        """Whether a value says that the right does not come first by a key."""
        negated = made_by(value, "stablehlo.not")
        compare = made_by(value, "stablehlo.compare")
        if negated is not None:
            swapped = self.less(negated.operands[0])
        elif compare is not None and key.kind in (UNSIGNED, SIGNED):  # the negation folded
            swapped = self._comparison(compare, {"GE": "LT", "LE": "GT"})
        else:
            return False
        reverse = replace(key, descending=not key.descending)
        return swapped in ([(key, left ^ 1)], [(reverse, left)])

    def _comparison(
        self, compare: ir.Operation, directions: Mapping[str, str] | None = None
    ) -> _Found | None:
        """The key of a comparison; `directions` says as which to see those it has."""
        direction = _enum(compare, "comparison_direction")
        if directions is not None:
            direction = directions.get(direction, "")
        if direction not in ("LT", "GT"):
            return None
        element = str(compare.operands[0].type.element_type)
        total = _enum(compare, "compare_type") == "TOTALORDER"
        plain = [self.places.get(operand) for operand in compare.operands]
        made_equal = [self._made_equal(operand) for operand in compare.operands]
        if None not in made_equal and total:
            left, right = made_equal
            kind = FLOAT
        else:
            left, right = plain
            kind = TOTAL_ORDER if total else FLOAT
        if left is None or right is None or left ^ right != 1:
            return None
        if element not in _FLOATS:
            whole = _kind_of_integers(element)
            if whole is None:
                return None
            kind = whole
        elif element == "bf16":
            kind += BRAIN_FLOAT
        return [(Key(left // 2, kind, direction == "GT"), left)]

    def _only_right_is_nan(self, value: ir.Value, found: _Found) -> bool:
        """Whether a value is `left == left and right != right` for the one key found."""
        both = made_by(value, "stablehlo.and")
        if both is None or len(found) != 1 or found[0][0].descending:
            return False
        left = found[0][1]
        for operand, direction, place in zip(
            both.operands, ("EQ", "NE"), (left, left ^ 1), strict=True
        ):
            compare = made_by(operand, "stablehlo.compare")
            if compare is None or _enum(compare, "comparison_direction") != direction:
                return False
            if [self.places.get(x) for x in compare.operands] != [place, place]:
                return False
        return True

    def _made_equal(self, value: ir.Value) -> int | None:
        """The argument behind `select(x != x, nan, select(x == 0, 0, x))`, if this is one."""
        outer = made_by(value, "stablehlo.select")
        inner = None if outer is None else made_by(outer.operands[2], "stablehlo.select")
        if outer is None or inner is None:
            return None
        argument = inner.operands[2]
        place = self.places.get(argument)
        is_nan = made_by(outer.operands[0], "stablehlo.compare")
        is_zero = made_by(inner.operands[0], "stablehlo.compare")
        nan, zero = (_constant(op.operands[1]) for op in (outer, inner))
        if place is None or is_nan is None or is_zero is None:
            return None
        if nan is None or nan == nan or zero != 0:
            return None
        if _enum(is_nan, "comparison_direction") != "NE" or list(is_nan.operands) != [argument] * 2:
            return None
        against = _constant(is_zero.operands[1])
        matches = _enum(is_zero, "comparison_direction") == "EQ" and against == 0
        return place if matches and is_zero.operands[0] == argument else None


def _constant(value: ir.Value) -> float | None:
    op = made_by(value, CONSTANT)
    return float(array_of(op).flat[0]) if op is not None and is_splat(op) else None


def _enum(op: ir.Operation, name: str) -> str:
    """`LT` of `#stablehlo<comparison_direction LT>`."""
    if name not in op.attributes:
        return ""
    return str(op.attributes[name]).rstrip(">").split()[-1]
