"""equinox: layers, filtered transformations, state, checkpoints, errors in compiled code, loops with reverse mode."""

import io
import json

import equinox as eqx
import equinox.internal
import jax
import jax.numpy as jnp
import optax

KEY = jax.random.key(1)


class Pictures(eqx.Module):
    layers: list
    norm: eqx.nn.LayerNorm
    dropout: eqx.nn.Dropout

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.layers = [
            eqx.nn.Conv2d(1, 4, 3, key=first), eqx.nn.MaxPool2d(2, 2), jax.nn.relu, jnp.ravel,
            eqx.nn.Linear(4 * 5 * 5, 16, key=second), jax.nn.gelu,
        ]  # fmt: skip
        self.norm, self.dropout = eqx.nn.LayerNorm(16), eqx.nn.Dropout(0.2)

    def __call__(self, x, key):
        for layer in self.layers:
            x = layer(x)
        return self.dropout(self.norm(x), key=key)


class Sequence(eqx.Module):
    cell: eqx.nn.GRUCell
    out: eqx.nn.Linear

    def __init__(self, key):
        self.cell, self.out = eqx.nn.GRUCell(3, 8, key=key), eqx.nn.Linear(8, 1, key=key)

    def __call__(self, xs):
        last, _ = jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(8), xs)
        return jax.nn.sigmoid(self.out(last))


def losses(steps=8):
    model, optimiser = Pictures(KEY), optax.adam(1e-2)
    x, y = jax.random.normal(KEY, (8, 1, 12, 12)), jax.random.normal(KEY, (8, 16))
    state = optimiser.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_value_and_grad
    def loss(model, keys):
        return jnp.mean((jax.vmap(model)(x, keys) - y) ** 2)

    @eqx.filter_jit
    def step(model, state, keys):
        value, grad = loss(model, keys)
        updates, state = optimiser.update(grad, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), state, value

    found = []
    for i in range(steps):
        model, state, value = step(model, state, jax.random.split(jax.random.key(i), 8))
        found.append(float(value))
    return found


def read_back(model):
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, model)
    file.seek(0)
    return bool(eqx.tree_equal(model, eqx.tree_deserialise_leaves(file, model)))


@eqx.filter_jit
def not_negative(x):
    return eqx.error_if(x, x < 0, "it is negative")


def refused(x):
    try:
        not_negative(x)
    except Exception as error:
        return "it is negative" in str(error)
    return False


def looped(kind):
    def f(x):
        step, keep = (lambda c: (c[0] + 1, jnp.sin(c[1]) * x)), (lambda c: c[0] < 5)
        return eqx.internal.while_loop(keep, step, (0, x), kind=kind, max_steps=16)[1]

    return [float(f(0.7)), float(jax.grad(f)(0.7))]


sequence = Sequence(KEY)
xs, words = jax.random.normal(KEY, (5, 7, 3)), jax.random.normal(KEY, (6, 16))
slopes = eqx.filter_grad(lambda model: jax.vmap(model)(xs).sum())(sequence)
norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(4, axis_name="batch", mode="ema")
normed, _ = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(xs[:, :4, 0], state)
print(json.dumps({
    "losses": losses(),
    "gru": jax.vmap(sequence)(xs).ravel().tolist(),
    "its slopes": [float(jnp.abs(leaf).sum()) for leaf in jax.tree.leaves(eqx.filter(slopes, eqx.is_array))],
    "attention": jnp.sum(eqx.filter_jit(eqx.nn.MultiheadAttention(2, 16, key=KEY))(words, words, words), 1).tolist(),
    "batch norm": normed.ravel().tolist(),
    "read back": read_back(sequence),
    "errors": [refused(jnp.array(1.0)), refused(jnp.array(-1.0))],
    "checkpointed": looped("checkpointed"),
    "bounded": looped("bounded"),
}))  # fmt: skip
