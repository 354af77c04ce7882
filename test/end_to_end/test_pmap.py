"""pmap against JAX on eight virtual devices, and its errors."""

import jax
import numpy as np
import pytest
from support.devices import eight_devices as eight_devices
from support.oracle.judge import assert_same

import lamina

pytestmark = pytest.mark.usefixtures("eight_devices")
X = np.arange(24, dtype=np.float32).reshape(4, 6) / 10


def _both(program, *args):
    assert_same(program(lamina, lamina.numpy)(*args), program(jax, jax.numpy)(*args), weak=False)


def test_a_dict_of_results() -> None:
    def program(m, np_):
        lax = m.lax

        def f(x, scale):
            return {
                "sum": lax.psum(x, "i"),
                "own": x * scale + lax.axis_index("i"),
                "gather": lax.all_gather(x, "i"),
                "next": lax.ppermute(x, "i", [(k, (k + 1) % 4) for k in range(4)]),
            }

        return m.pmap(f, axis_name="i", in_axes=(0, None))

    _both(program, X, np.float32(3))


def test_groups_of_different_sizes() -> None:
    groups = [[2], [0, 1, 3]]

    def program(m, np_):
        lax = m.lax

        def f(x):
            sums = lax.psum(x, "i", axis_index_groups=groups)
            least = lax.pmin(x, "i", axis_index_groups=groups)
            return {"sums": sums, "least": least, "most": lax.pmax(x, "i", axis_index_groups=groups)}

        return m.pmap(f, axis_name="i")

    _both(program, X)
    mean = lambda x: lamina.lax.pmean(x, "i", axis_index_groups=groups)  # noqa: E731
    total = lambda map: lambda x: (map(mean, axis_name="i")(x) * x).sum()  # noqa: E731
    others = X[[0, 1, 3]].mean(0)
    np.testing.assert_allclose(lamina.pmap(mean, "i")(X), [others, others, X[2], others], rtol=1e-6)
    np.testing.assert_array_equal(lamina.pmap(mean, "i")(X), lamina.vmap(mean, axis_name="i")(X))
    gradients = [lamina.grad(total(m))(X) for m in (lamina.pmap, lamina.vmap)]
    np.testing.assert_allclose(*gradients, rtol=1e-6)
    with pytest.raises(ValueError, match="all be of one size"):
        lamina.pmap(lambda x: lamina.lax.all_gather(x, "i", axis_index_groups=groups), "i")(X)


def test_an_outer_axis_of_a_vmap_in_the_function() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def f(x):
        return x + lamina.lax.ppermute(2 * x, "i", [(0, 1), (1, 0)])

    outside = lamina.vmap(lamina.pmap(f), axis_name="i")(x)
    np.testing.assert_array_equal(outside, x + 2 * x[::-1])


def test_what_it_says_of_itself() -> None:
    def f(x):
        return x

    assert lamina.pmap(f).__wrapped__ is f
    with pytest.raises(ValueError, match="must be non-empty"):
        lamina.pmap(f, devices=[])


def test_axes_and_trees() -> None:
    def program(m, np_):
        def f(a, b, *, c):
            return a["u"] + b, c.sum()

        g = m.pmap(f, in_axes=({"u": 1}, 0), out_axes=(1, 0))
        return lambda x: g({"u": x.T}, x, c=x)

    _both(program, X)


def test_grad_vmap_and_jit_of_pmap() -> None:
    def program(m, np_):
        p = m.pmap(lambda x: np_.sin(x) / m.lax.psum(np_.exp(x), "i"), axis_name="i")
        return m.jit(lambda x: (
            m.grad(lambda x: np_.sum(p(x) ** 2))(x),
            m.vmap(p, in_axes=1, out_axes=1)(np_.stack([x, x + 1], 1)),
        ))  # fmt: skip

    _both(program, X)


def test_static_and_donated_arguments() -> None:
    f = lamina.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)
    np.testing.assert_array_equal(f(X, 3), X * 3)
    g = lamina.pmap(lambda x: x + 1, donate_argnums=0)
    x = lamina.pmap(lambda x: x * 1)(X)
    np.testing.assert_array_equal(g(x), X + 1)
    assert x.is_deleted()


def test_devices_are_those_asked_for() -> None:
    devices = lamina.devices()[4:6]
    y = lamina.pmap(lambda x: x + 1, devices=devices)(X[:2])
    assert y.sharding.device_list == tuple(devices)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("requires 9 logical devices, but only 8", lambda: lamina.pmap(lambda x: x)(np.ones(9))),
        ("inconsistent sizes for array axes", lambda: lamina.pmap(lambda x, y: x)(X, X[:2])),
        ("rank should be at least 1", lambda: lamina.pmap(lambda x: x)(np.float32(1))),
        ("at least one non-None", lambda: lamina.pmap(lambda x: x, in_axes=None)(X)),
    ],
)  # fmt: skip
def test_errors(text, call) -> None:
    with pytest.raises(ValueError, match=text):
        call()
