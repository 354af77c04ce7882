"""mulhi: the upper half of the product of two integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import lax
from lamina.core import get_aval
from lamina.core.array_class import Array
from lamina.lax.checks import INTEGER, check_accepted, check_same_dtypes


def mulhi(x: Any, y: Any, /) -> Array:
    """The upper half of the product of x and y, elementwise: the bits that x * y loses.

    x, y  arrays of one integer dtype, signed or unsigned, which broadcast.

    Raises TypeError for other dtypes.

    >>> print(lax.mulhi(jnp.array([2**30, 3]), jnp.array([8, 5])))
    [2 0]
    """
    avals = [get_aval(x), get_aval(y)]
    for position, aval in enumerate(avals):
        check_accepted("mulhi", INTEGER, aval, position)
    check_same_dtypes("mulhi", avals)
    dtype = avals[0].dtype
    bits = np.iinfo(dtype).bits
    if bits < 32:
        wide = np.dtype(f"{dtype.kind}4")
        product = lax.mul(*(lax.convert_element_type(v, wide) for v in (x, y)))
        upper = lax.shift_right_arithmetic if dtype.kind == "i" else lax.shift_right_logical
        return lax.convert_element_type(upper(product, wide.type(bits)), dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    as_words = [lax.convert_element_type(v, word) for v in (x, y)]
    out = _unsigned(as_words[0], as_words[1], word)
    if dtype.kind == "i":
        # A negative number is 2^bits more as a word: the other one is too many times in.
        zero = dtype.type(0)
        for v, other in ((x, y), (y, x)):
            negative = lax.convert_element_type(lax.lt(v, zero), word)
            out = lax.sub(out, lax.mul(negative, lax.convert_element_type(other, word)))
    return lax.convert_element_type(out, dtype)


def _unsigned(x: Any, y: Any, word: np.dtype) -> Any:
    """By the four products of halves."""
    half = word.type(word.itemsize * 4)
    mask = word.type((1 << int(half)) - 1)

    def low(v: Any) -> Any:
        return lax.bitwise_and(v, mask)

    def high(v: Any) -> Any:
        return lax.shift_right_logical(v, half)

    middle = lax.add(lax.mul(high(x), low(y)), high(lax.mul(low(x), low(y))))
    carry = lax.add(lax.mul(low(x), high(y)), low(middle))
    return lax.add(lax.mul(high(x), high(y)), lax.add(high(middle), high(carry)))
