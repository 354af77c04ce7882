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
