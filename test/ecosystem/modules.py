"""equinox: layers, filtered transformations, runtime errors, checkpointed loops."""

import json

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.random as jr

results = {}


@eqx.filter_jit
@eqx.filter_value_and_grad
def loss(model, x):
    mlp, conv, attention, norm = model
    images = conv(x[0, :16].reshape(1, 4, 4))
    mixed = attention(x, x, x)
    return jnp.sum(jax.vmap(mlp)(x) ** 2) + jnp.sum(images**2) + jnp.sum(jax.vmap(norm)(mixed) ** 3)


keys = jr.split(jr.key(0), 4)
model = (
    eqx.nn.MLP(16, 3, 8, 2, key=keys[0]),
    eqx.nn.Sequential([eqx.nn.Conv2d(1, 2, 3, key=keys[1]), eqx.nn.Lambda(jax.nn.relu)]),
    eqx.nn.MultiheadAttention(2, 16, key=keys[2]),
    eqx.nn.LayerNorm(16),
)
value, gradient = loss(model, jr.normal(keys[3], (5, 16)))
results["loss"] = float(value)
results["gradients"] = [float(jnp.sum(jnp.abs(g))) for g in jax.tree.leaves(gradient)]


@eqx.filter_jit
def recurrent(cell, xs):
    return jax.lax.scan(lambda h, x: (cell(x, h), None), jnp.zeros(5), xs)[0]


results["gru"] = recurrent(eqx.nn.GRUCell(3, 5, key=keys[0]), jnp.ones((4, 3))).tolist()

make = eqx.filter_vmap(lambda key: eqx.nn.Linear(2, 2, key=key))
apply = eqx.filter_vmap(lambda linear, x: linear(x), in_axes=(eqx.if_array(0), None))
results["ensemble"] = apply(make(keys), jnp.ones(2)).tolist()

norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, axis_name="b", mode="batch")
batched = jax.vmap(norm, in_axes=(0, None), out_axes=(0, None), axis_name="b")
results["batch norm"] = batched(jr.normal(keys[0], (6, 3)), state)[0].tolist()


@eqx.filter_jit
def checked(x):
    return eqx.error_if(x, x < 0, "negative")


results["checked"] = float(checked(jnp.asarray(1.0)))
try:
    checked(jnp.asarray(-1.0))
except Exception as error:
    results["error"] = [type(error).__name__, "negative" in str(error)]


def steps(kind):
    def run(x):
        return eqxi.while_loop(
            lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5), (0, x), kind=kind, max_steps=16
        )[1]

    return float(jax.grad(run)(jnp.asarray(2.0)))


results["loops"] = [steps("checkpointed"), steps("bounded")]
print(json.dumps(results))
