"""Operations on bits, elementwise: and or xor not, shifts, population_count, clz."""

from __future__ import annotations

from typing import Any

from lamina.core import Primitive
from lamina.core.array_class import Array
from lamina.lax.checks import BITS, INTEGER
from lamina.lax.elementwise_rules import builder, elementwise


def bitwise_and(x: Any, y: Any) -> Array:
    """x & y, elementwise; logical and for booleans.

    x, y  arrays of one dtype, integers or booleans, and of one rank, whose sizes are equal or 1; or
          scalars.

    Raises TypeError for floats and where dtypes or ranks differ.

    >>> print(lax.bitwise_and(0b1100, 0b1010))
    8
    """
    return and_p.bind(x, y)


def bitwise_or(x: Any, y: Any) -> Array:
    """x | y, elementwise; logical or for booleans.

    x, y  arrays of one dtype, integers or booleans, and of one rank, whose sizes are equal or 1; or
          scalars.

    Raises TypeError for floats and where dtypes or ranks differ.

    >>> print(lax.bitwise_or(0b1100, 0b1010))
    14
    """
    return or_p.bind(x, y)


def bitwise_xor(x: Any, y: Any) -> Array:
    """x ^ y, elementwise: the bits that differ; for booleans, whether they differ.

    x, y  arrays of one dtype, integers or booleans, and of one rank, whose sizes are equal or 1; or
          scalars.

    Raises TypeError for floats and where dtypes or ranks differ.

    >>> print(lax.bitwise_xor(0b1100, 0b1010))
    6
    """
    return xor_p.bind(x, y)


def bitwise_not(x: Any) -> Array:
    """All bits of x turned round, elementwise: -x - 1 for signed integers, logical not for
    booleans.

    x  an array of integers or booleans.

    Raises TypeError for other dtypes.

    >>> print(lax.bitwise_not(jnp.array([0, 5])), lax.bitwise_not(True))
    [-1 -6] False
    """
    return not_p.bind(x)


def shift_left(x: Any, y: Any) -> Array:
    """x << y, elementwise: zeros come in from the right. 0 where y is negative or not below the
    width.

    x, y  arrays of one integer dtype and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError for other dtypes and where they differ.

    >>> print(lax.shift_left(jnp.array([1, 1, 1]), jnp.array([0, 4, 32])))
    [ 1 16  0]
    """
    return shift_left_p.bind(x, y)


def shift_right_logical(x: Any, y: Any) -> Array:
    """x >> y of the bits of x, elementwise: zeros come in from the left, whatever the sign. 0 where
    y is negative or not below the width.

    x, y  arrays of one integer dtype and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError for other dtypes and where they differ.

    >>> print(lax.shift_right_logical(jnp.array([-1], 'int8'), jnp.int8(4)))
    [15]
    """
    return shift_right_logical_p.bind(x, y)


def shift_right_arithmetic(x: Any, y: Any) -> Array:
    """x >> y, elementwise, with copies of the sign bit coming in: division by 2 ** y, rounded down.
    0, or -1 for negative x, where y is negative or not below the width.

    x, y  arrays of one integer dtype and one rank, whose sizes are equal or 1; or scalars.

    Raises TypeError for other dtypes and where they differ.

    >>> print(lax.shift_right_arithmetic(jnp.array([-9, 9, -9]), jnp.array([1, 1, 32])))
    [-5  4 -1]
    """
    return shift_right_arithmetic_p.bind(x, y)


def population_count(x: Any) -> Array:
    """The number of bits of x that are set, elementwise, in x's dtype.

    x  an array of integers.

    Raises TypeError for other dtypes.

    >>> print(lax.population_count(jnp.array([0, 7, -1], 'int8')))
    [0 3 8]
    """
    return population_count_p.bind(x)


def clz(x: Any) -> Array:
    """The number of zeros before the first bit of x that is set, elementwise, in x's dtype; the
    width for 0.

    x  an array of integers.

    Raises TypeError for other dtypes.

    >>> print(lax.clz(jnp.array([0, 1, 64], 'int8')))
    [8 7 1]
    """
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
