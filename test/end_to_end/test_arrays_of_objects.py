"""Objects that make arrays of themselves by `__jax_array__`, as JAX takes them."""

from typing import Any

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp


class Boxed:
    """Holds an array; no pytree."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return jnp.asarray(self.value)


class Node(Boxed):
    """Holds an array, and is a pytree."""


lamina.tree_util.register_pytree_node(Node, lambda n: ((n.value,), None), lambda _, c: Node(c[0]))
VALUES = np.array([0.5, 1.0, 2.0], np.float32)
FUNCTIONS = [
    jnp.sin, jnp.sum, jnp.cumsum, jnp.sort, lamina.nn.softmax, lamina.nn.relu, lamina.lax.exp,
    lambda x: jnp.add(x, x), lambda x: jnp.dot(x, x), lambda x: jnp.ones(3) * x,
    lambda x: jnp.matmul(jnp.eye(3), x), lambda x: jnp.clip(x, 0, 1), lambda x: jnp.where(True, x, 0),
    lambda x: jnp.concatenate([x, x]), lambda x: jnp.stack([x, x]), jnp.zeros_like,
    lambda x: jnp.zeros(3).at[:].set(x), lambda x: jnp.einsum("i,i", x, x), lambda x: jnp.take(x, 1),
    jnp.fft.fft, jnp.iscomplexobj, lambda x: jnp.delete(x, 1), lambda x: jnp.interp(x, x, x),
    lambda x: jnp.vecmat(x, jnp.eye(3)), lambda x: jnp.ldexp(x, 2),
    lambda x: jnp.choose(np.array([1, 0, 1]), [x, x], mode="clip"), jnp.isscalar,
    lambda x: jnp.reshape(x, (3, 1)), lambda x: lamina.lax.scan(lambda c, v: (c + v, v), 0.0, x),
]  # fmt: skip


@pytest.mark.parametrize("kind", [Boxed, Node])
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_functions_take_objects_that_make_arrays(fun: Any, kind: Any) -> None:
    got, want = lamina.tree.leaves(fun(kind(VALUES))), lamina.tree.leaves(fun(VALUES))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_objects_of_tracers() -> None:
    def fun(t: Any) -> Any:
        return jnp.sum(jnp.sin(Boxed(t))) + jnp.dot(Boxed(t), t)

    np.testing.assert_allclose(lamina.grad(fun)(VALUES), np.cos(VALUES) + 2 * VALUES, rtol=1e-6)
    rows = lamina.vmap(lambda t: lamina.vmap(lambda s: jnp.sin(Boxed(t)) * s)(VALUES))(VALUES)
    np.testing.assert_allclose(rows, np.outer(np.sin(VALUES), VALUES), rtol=1e-6)


def test_jit_asks_for_a_pytree() -> None:
    with pytest.raises(ValueError, match="Boxed, which makes an array of itself.*asarray"):
        lamina.jit(jnp.sin)(Boxed(VALUES))
    np.testing.assert_allclose(lamina.jit(jnp.sin)(Node(VALUES)), np.sin(VALUES), rtol=1e-6)
