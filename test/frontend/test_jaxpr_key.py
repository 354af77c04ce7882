"""The text that names a program in the store: equal for equal programs, and for those alone."""

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina.core.jaxpr_key import jaxpr_key

X = np.ones((4, 3), np.float32)


def key(f, *args):
    return jaxpr_key(lamina.make_jaxpr(f)(*(args or (X,))).jaxpr)


def nested(factor):
    inner = lamina.jit(lambda x: x * factor)
    return lambda x: inner(x) + inner(x)


def looped(n):
    return lambda x: lamina.lax.fori_loop(0, n, lambda i, v: jnp.sin(v), x)


def test_equal_programs_have_equal_keys():
    for make in (lambda: lambda x: jnp.sin(x) @ x.T + 1.5, lambda: nested(2.0), lambda: looped(3)):
        assert key(make()) == key(make()) is not None


@pytest.mark.parametrize(
    "f, g",
    [
        (lambda x: x * 0.0, lambda x: x * -0.0),
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x - x * 2, lambda x: x * 2 - x),
        (lambda x: jnp.sum(x, 0), lambda x: jnp.sum(x, 1)),
        (lambda x: x.reshape(12), lambda x: x.reshape(2, 6)),
        (lambda x: (x, x + 1), lambda x: (x + 1, x)),
        (nested(2.0), nested(3.0)),
        (looped(3), looped(4)),
    ],
)
def test_different_programs_have_different_keys(f, g):
    assert key(f) != key(g)


def test_types_of_arguments_are_in_it():
    f = jnp.sin
    assert len({key(f, X), key(f, X.T), key(f, X.astype(np.float16)), key(f, X[0])}) == 4


def test_what_is_called_back_has_none():
    def f(x):
        return lamina.pure_callback(np.sin, lamina.ShapeDtypeStruct(x.shape, x.dtype), x)

    assert key(f) is None
    assert key(lambda x: lamina.jit(f)(x) + 1) is None
