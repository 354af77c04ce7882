"""Operations on bits, elementwise: and or xor not, shifts, population_count, clz."""

from __future__ import annotations

from typing import Any

from lamina.core import Primitive
from lamina.core.array_class import Array
from lamina.lax.checks import BITS, INTEGER
from lamina.lax.elementwise_rules import builder, elementwise


def bitwise_and(x: Any, y: Any) -> Array:
    """x & y, elementwise; logical and for booleans."""
    return and_p.bind(x, y)


def bitwise_or(x: Any, y: Any) -> Array:
    """x | y, elementwise; logical or for booleans."""
    return or_p.bind(x, y)


def bitwise_xor(x: Any, y: Any) -> Array:
    """x ^ y, elementwise; inequality for booleans."""
    return xor_p.bind(x, y)


def bitwise_not(x: Any) -> Array:
    """~x, elementwise; logical not for booleans."""
    return not_p.bind(x)


def shift_left(x: Any, y: Any) -> Array:
    """x << y, elementwise; 0 where y is negative or not below the width."""
    return shift_left_p.bind(x, y)


def shift_right_logical(x: Any, y: Any) -> Array:
    """x >> y with zeros coming in, elementwise; 0 where y is negative or not below the width."""
    return shift_right_logical_p.bind(x, y)


def shift_right_arithmetic(x: Any, y: Any) -> Array:
    """x >> y with copies of the sign bit coming in, elementwise."""
    return shift_right_arithmetic_p.bind(x, y)


def population_count(x: Any) -> Array:
    """The number of bits set, elementwise."""
    return population_count_p.bind(x)


def clz(x: Any) -> Array:
    """The number of leading zero bits, elementwise."""
    return clz_p.bind(x)


and_p: Primitive = elementwise("and", builder("and_"), BITS, BITS)
or_p: Primitive = elementwise("or", builder("or_"), BITS, BITS)
xor_p: Primitive = elementwise("xor", builder("xor"), BITS, BITS)
not_p: Primitive = elementwise("not", builder("not_"), BITS)
shift_left_p: Primitive = elementwise("shift_left", builder("shift_left"), INTEGER, INTEGER)
shift_right_logical_p: Primitive = elementwise(
    "shift_right_logical", builder("shift_right_logical"), INTEGER, INTEGER,
)  # fmt: skip
shift_right_arithmetic_p: Primitive = elementwise(
    "shift_right_arithmetic", builder("shift_right_arithmetic"), INTEGER, INTEGER,
)  # fmt: skip
population_count_p: Primitive = elementwise("population_count", builder("popcnt"), INTEGER)
clz_p: Primitive = elementwise("clz", builder("count_leading_zeros"), INTEGER)
