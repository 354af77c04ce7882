"""haiku: an MLP with batch norm, an LSTM, attention, a convolution; state and keys."""

import json

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
x = jnp.asarray(rng.normal(size=(16, 6)).astype("float32"))
y = jnp.asarray(rng.integers(0, 3, 16))


def forward(x, training):
    x = hk.nets.MLP([12, 8], activate_final=True)(x)
    x = hk.BatchNorm(True, True, 0.9)(x, is_training=training)
    x = hk.dropout(hk.next_rng_key(), 0.2, x) if training else x
    return hk.Linear(3, w_init=hk.initializers.VarianceScaling(2.0))(hk.LayerNorm(-1, True, True)(x))


net = hk.transform_with_state(forward)
params, state = net.init(jax.random.PRNGKey(0), x, True)
optimizer = optax.adamw(1e-2)
opt_state = optimizer.init(params)


@jax.jit
def step(params, state, opt_state, key):
    def loss(params):
        scores, new = net.apply(params, state, key, x, True)
        return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean(), new

    (value, new), gradient = jax.value_and_grad(loss, has_aux=True)(params)
    updates, opt_state = optimizer.update(gradient, opt_state, params)
    return optax.apply_updates(params, updates), new, opt_state, value


losses = []
for key in jax.random.split(jax.random.PRNGKey(1), 4):
    params, state, opt_state, value = step(params, state, opt_state, key)
    losses.append(float(value))


def sequences(x):
    core = hk.LSTM(5)
    out, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
    out = hk.MultiHeadAttention(2, 4, w_init=hk.initializers.TruncatedNormal(0.5))(out, out, out)
    return hk.Conv1D(2, 3)(out)


mixed = hk.without_apply_rng(hk.transform(sequences))
steps = jnp.asarray(rng.normal(size=(7, 3, 4)).astype("float32"))
weights = mixed.init(jax.random.PRNGKey(2), steps)
gradient = jax.jit(jax.grad(lambda w: (mixed.apply(w, steps) ** 2).sum()))(weights)
layers = hk.transform(hk.experimental.layer_stack(3)(lambda x: jnp.tanh(hk.Linear(6)(x))))
stacked = layers.init(jax.random.PRNGKey(3), x)
print(
    json.dumps(
        {
            "losses": losses,
            "scores": net.apply(params, state, None, x, False)[0].tolist(),
            "averages": [float(v.sum()) for v in jax.tree.leaves(state)],
            "sequences": mixed.apply(weights, steps).tolist(),
            "gradient": {k: [float(jnp.abs(g).sum()) for g in v.values()] for k, v in gradient.items()},
            "stacked": layers.apply(stacked, None, x).tolist(),
            "parameters": hk.data_structures.tree_size(params),
        }
    )
)
