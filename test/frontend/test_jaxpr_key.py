"""The text that names a program in the store: equal for equal programs, and for those alone."""

import dataclasses
import enum
from typing import Any

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina.core.jaxpr_key import jaxpr_key
from lamina.core.primitive import Primitive

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


def test_each_part_of_a_linear_solve_has_its_own_constants():
    """Both take (m, s, b) and solve by a product of two, but one by m and one by s."""

    def by_s(m, s, b):
        return lamina.lax.custom_linear_solve(lambda x: m * x, b, lambda _, r: r * s)

    def by_m(m, s, b):
        return lamina.lax.custom_linear_solve(
            lambda x: x, b, lambda _, r: r * m, lambda _, r: r * m * s
        )

    assert key(by_s, X, X, X) != key(by_m, X, X, X)


noted_p = Primitive("noted", abstract_eval=lambda x, **_: x)


class Shade(enum.Enum):
    LIGHT = 1


@dataclasses.dataclass(frozen=True)
class Note:
    values: Any
    hidden: Any = dataclasses.field(default=0, repr=False)


def with_parameter(value):
    return key(lambda x: noted_p.bind(x, value=value))


LONG = np.arange(5000.0)
CHANGED = np.where(LONG == 2500, -1, LONG)


@pytest.mark.parametrize(
    "a, b",
    [
        (LONG, CHANGED),
        ({"x": LONG}, {"x": CHANGED}),  # whose repr ends in the middle by "..."
        (Note(LONG), Note(CHANGED)),
        (Note(np.array(0.1)), Note(np.array(0.1 + 1e-12))),  # and leaves out digits
        (Note(0, hidden=1), Note(0, hidden=2)),
        (jnp.array([0.1], "float32"), jnp.nextafter(jnp.array([0.1], "float32"), 1)),
        (np.float32(0.0), np.float32(-0.0)),
        (np.float32(1), np.float64(1)),
        (frozenset({1, 2}), frozenset({1, 3})),
        (Note((1, 2)), Note([1, 2])),
    ],
)
def test_parameters_are_told_apart_by_all_of_them(a, b):
    assert with_parameter(a) == with_parameter(a) is not None
    assert with_parameter(a) != with_parameter(b)


class Unknown:
    def __repr__(self):
        return "Unknown()"


@pytest.mark.parametrize(
    "value", [Unknown(), {"x": Unknown()}, Note(Unknown()), np.array([Unknown()]), lambda x: x]
)
def test_parameters_of_which_a_text_does_not_say_all_have_none(value):
    assert with_parameter(value) is None


def test_members_of_enums_are_their_names():
    assert "Shade.LIGHT" in with_parameter(Shade.LIGHT)
