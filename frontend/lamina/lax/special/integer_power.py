"""x ** y of integers, modulo two to the width: by squarings, as many as the exponents have bits.

Of wide integers most exponents are small: where all of an array's are, a branch does a few squarings
instead of one for each bit. GPUs, which would have to wait for the predicate, do them all.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lamina import lax
from lamina.control_flow import cond
from lamina.control_flow.two_forms import bind_forms
from lamina.core import Primitive, ShapedArray, get_aval
from lamina.core.array_class import Array
from lamina.core.jaxpr import ClosedJaxpr
from lamina.lax.checks import INTEGER
from lamina.lax.elementwise_rules import broadcast_to, elementwise

_FEW = 6  # bits of small exponents


def integer_power(x: Any, y: Any) -> Array:
    """x ** y of integers, elementwise; for negative y the reciprocal of the power rounded to zero,
    and 0 for x = 0. Never weakly typed, as in JAX.

    x, y  arrays of one integer dtype, which broadcast.

    Raises TypeError for other dtypes.

    >>> print(lax.integer_power(jnp.array([3, 2, -1]), jnp.array([4, -1, -3])))
    [81  0 -1]
    """
    out = integer_power_p.bind(x, y)
    return lax.convert_element_type(out, get_aval(out).dtype)


@functools.lru_cache(maxsize=256)
def _program(
    dtype: np.dtype, x_shape: tuple[int, ...], y_shape: tuple[int, ...], shape: tuple[int, ...]
) -> ClosedJaxpr:
    """The program of (x, y), of which either may have rank 0 beside the result's shape."""
    from lamina.interpreters.staging import trace_to_jaxpr

    avals = [ShapedArray(x_shape, dtype), ShapedArray(y_shape, dtype)]
    bits = dtype.itemsize * 8

    def few(x: Any, y: Any) -> Any:
        return _squarings(broadcast_to(x, shape), broadcast_to(y, shape), _FEW)

    def all_bits(x: Any, y: Any) -> Any:
        x, y = broadcast_to(x, shape), broadcast_to(y, shape)
        if np.iinfo(dtype).min == 0:
            return _squarings(x, y, bits)
        return lax.select(y < 0, _reciprocal(x, y), _squarings(x, y, bits - 1))

    def by_size(x: Any, y: Any) -> list[Any]:
        used = lax.reduce_or(y, tuple(range(len(y_shape))))
        large = lax.shift_right_logical(used, _number(y, _FEW))
        return [cond(large != 0, all_bits, few, x, y)]

    def every(x: Any, y: Any) -> list[Any]:
        return [all_bits(x, y)]

    plain = trace_to_jaxpr(every, avals)
    if dtype.itemsize <= 2:
        return plain
    in_blocks = trace_to_jaxpr(by_size, avals)
    return trace_to_jaxpr(lambda x, y: bind_forms(plain, in_blocks, [x, y]), avals)


def _number(x: Any, value: int) -> Any:
    return np.array(value, x.dtype)[()]


def _squarings(x: Any, y: Any, bits: int) -> Any:
    """x to the power of the lowest bits of y."""
    result = lax.full_like(x, 1)
    for bit in range(bits):
        is_set = lax.bitwise_and(y, _number(y, 1 << bit)) != _number(y, 0)
        result = lax.select(is_set, result * x, result) if bit else lax.select(is_set, x, result)
        x = x * x
    return result


def _reciprocal(x: Any, y: Any) -> Any:
    """x ** y for negative y, rounded to zero: 1 or -1 of those, else 0."""
    odd = lax.bitwise_and(y, _number(y, 1)) != _number(y, 0)
    sign = lax.select(odd, x, lax.full_like(x, 1))
    return lax.select(lax.abs(x) == _number(x, 1), sign, lax.full_like(x, 0))


def _lowering(ctx: Any, x: Any, y: Any) -> Any:
    (base, exponent), result = ctx.avals_in, ctx.aval_out
    program = _program(result.dtype, base.shape, exponent.shape, result.shape)
    return ctx.call(program, "integer_power", (x, y))[0]


integer_power_p: Primitive = elementwise("integer_power", _lowering, INTEGER, INTEGER)
