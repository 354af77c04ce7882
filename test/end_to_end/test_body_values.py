"""Python sees values in a shard_map's body that no program is around."""

import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices

import lamina
import lamina.numpy as jnp
from lamina import P, lax

pytestmark = pytest.mark.usefixtures("eight_devices")
X = np.arange(8, dtype=np.float32).reshape(2, 4)


def _mapped(f, *in_specs, **how):
    mesh = auto_mesh((2, 4), ("x", "y"))
    return lamina.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=P("x", "y"), **how)


def test_branches_and_loops_on_what_all_devices_have() -> None:
    table = jnp.arange(3.0)
    calls = []

    def f(x, times):
        calls.append(float(times))
        if lax.psum(x, ("x", "y")).sum() + table[1] > 0:
            x = -x
        for i in range(int(times)):
            x = x + table[i]
        return x

    g = _mapped(f, P("x", "y"), P())
    np.testing.assert_array_equal(g(X, 2), -X + 1)
    np.testing.assert_array_equal(g(X, 3), -X + 3)
    np.testing.assert_array_equal(g(-X, 3), -X + 3)
    np.testing.assert_array_equal(g(-X, 3), -X + 3)
    assert calls == [2, 3, 3, 3]  # none is remembered


def test_text_is_what_each_device_has() -> None:
    texts = []

    def f(x):
        texts.extend([str(x[0, 0]), f"{lax.axis_index('y')}"])
        return x

    for how in ({}, {"check_vma": False}):
        texts.clear()
        _mapped(f, P("x", "y"), **how)(X)
        values, index = texts
        assert values.count("at mesh coordinates (x, y,) = ") == 8
        assert "On cpu:6 at mesh coordinates (x, y,) = (1, 2):\n6.0\n" in values
        assert "On cpu:6 at mesh coordinates (x, y,) = (1, 2):\n2\n" in index


def test_text_over_some_axes_of_a_mesh() -> None:
    texts = []

    def f(x):
        texts.append(str(x[0, 1]))
        return x

    mesh = auto_mesh((2, 4), ("x", "y"))
    lamina.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(X)
    assert texts == [
        "On cpu:0 at mesh coordinates (x,) = (0,):\n1.0\n\nOn cpu:4 at mesh coordinates (x,) = (1,):\n5.0\n"
    ]


def test_effects_before_it_happen_once() -> None:
    seen = []

    def f(x):
        lamina.debug.callback(lambda v: seen.append(float(v)), x[0, 0])
        assert bool(lax.pmax(x, ("x", "y")).max() == 7)
        return x

    _mapped(f, P("x", "y"))(X)
    lamina.effects_barrier()
    assert sorted(seen) == sorted(X.ravel())


def test_a_body_that_asks_for_nothing_is_traced_once() -> None:
    calls = []

    def f(x):
        calls.append(None)
        return 2 * x

    g = _mapped(f, P("x", "y"))
    for _ in range(3):
        np.testing.assert_array_equal(g(X), 2 * X)
    assert len(calls) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda f: _mapped(f, P("x", "y"))(X),  # devices have different values
        lambda f: _mapped(lambda x: f(lax.psum(x, ("x", "y"))) + x, P("x", "y"), check_vma=False)(X),
        lambda f: lamina.jit(_mapped(lambda x: f(lax.psum(x, ("x", "y"))) + x, P("x", "y")))(X),
        lambda f: lamina.grad(lambda x: _mapped(lambda x: f(lax.psum(x, ("x", "y"))) + x, P("x", "y"))(x).sum())(X),
    ],
)  # fmt: skip
def test_where_there_is_no_one_value(call) -> None:
    with pytest.raises(lamina.errors.TracerBoolConversionError, match="Attempted boolean conversion"):
        call(lambda x: x if x.sum() > 0 else -x)
