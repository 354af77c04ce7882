"""Random well-typed programs over lax, for tests of what must hold of every jaxpr."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lamina import lax
from lamina.core import dtypes

SHAPES = [(), (3,), (2, 3), (1, 0, 2)]
TYPES = [np.dtype(t) for t in ("float32", "int32", "bool", "complex64", "uint8", "float16")]
TYPES.append(dtypes.bfloat16)


def _unary(draw: Any, x: Any) -> Any:
    ndim, dtype = x.ndim, x.dtype
    makers: list[Callable[[], Any]] = [
        lambda: lax.broadcast_in_dim(x, (2, *x.shape), tuple(range(1, ndim + 1))),
        lambda: lax.reshape(x, (*x.shape, 1)),
        lambda: lax.transpose(x, draw(st.permutations(range(ndim)))),
        lambda: lax.rev(x, tuple(range(ndim))),
        lambda: lax.convert_element_type(x, draw(st.sampled_from(TYPES[:3]))),
        lambda: lax.select(lax.eq(x, x), x, x),
        lambda: lax.concatenate([x, x], 0) if ndim else x,
        lambda: lax.slice(x, (0,) * ndim, x.shape, (2,) * ndim),
        lambda: lax.cond(True, lambda v: v, lambda v: lax.select(lax.eq(v, v), v, v), x),
    ]
    if dtypes.is_inexact(dtype):
        makers += [lambda: lax.sin(x), lambda: lax.exp(x), lambda: lax.integer_pow(x, 3),
                   lambda: lax.mul(x, x)]  # fmt: skip
        makers.append(lambda: lax.fori_loop(0, 3, lambda i, v: lax.neg(v), x))
    if dtypes.is_integer(dtype) or dtypes.is_float(dtype):
        makers += [lambda: lax.reduce_max(x, (0,)) if ndim and x.shape[0] else x,
                   lambda: lax.reduce_sum(x, tuple(range(ndim))),
                   lambda: lax.add(x, np.asarray(draw(st.sampled_from([0, 1, 7])), dtype))]  # fmt: skip
        if ndim and x.shape[-1]:
            makers += [lambda: lax.argmax(x, ndim - 1, np.dtype("int32")),
                       lambda: lax.sort(x), lambda: lax.cumsum(x, ndim - 1)]  # fmt: skip
    if dtypes.is_float(dtype):
        makers += [lambda: lax.add(x, np.asarray(draw(st.floats(width=16)), dtype)), lambda: lax.round(x)]
    if dtype == np.bool_:
        makers.append(lambda: lax.bitwise_not(x))
    return draw(st.sampled_from(makers))()


def _binary(draw: Any, x: Any, y: Any) -> Any:
    if x.dtype == np.bool_:
        return lax.bitwise_and(x, y)
    ops = [lax.add, lax.sub, lax.mul, lax.eq]
    if x.ndim == 2:
        ops.append(lambda a, b: lax.dot_general(a, b, (((1,), (1,)), ((), ()))))
    return draw(st.sampled_from(ops))(x, y)


@st.composite
def programs(draw: Any) -> tuple[Callable[..., list[Any]], list[tuple[tuple[int, ...], np.dtype]]]:
    """A function of flat arguments, and its argument types. Must be called while tracing, once."""
    types = draw(st.lists(st.tuples(st.sampled_from(SHAPES), st.sampled_from(TYPES)),
                          min_size=1, max_size=3))  # fmt: skip
    steps = draw(st.integers(1, 8))

    def program(*args: Any) -> list[Any]:
        values = list(args)
        for _ in range(steps):
            x = draw(st.sampled_from(values))
            same = [v for v in values if v.shape == x.shape and v.dtype == x.dtype]
            if draw(st.booleans()):
                values.append(_binary(draw, x, draw(st.sampled_from(same))))
            else:
                values.append(_unary(draw, x))
        return values[-3:]

    return program, types
