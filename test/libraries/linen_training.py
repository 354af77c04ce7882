"""flax.linen: a convolutional net trained by Adam with batch norm and dropout, attention, an LSTM."""

import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import serialization, traverse_util
from flax.training import train_state

rng = np.random.default_rng(0)
images = jnp.asarray(rng.normal(size=(16, 8, 8, 1)).astype("float32"))
labels = jnp.asarray(rng.integers(0, 4, 16))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(8, (3, 3), use_bias=False)(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.max_pool(nn.relu(x), (2, 2), (2, 2))
        x = nn.Dropout(0.2, deterministic=not train)(x.reshape(len(x), -1))
        return nn.Dense(4)(nn.LayerNorm()(nn.Dense(16)(x)))


class State(train_state.TrainState):
    batch_stats: dict


net = Net()
variables = net.init(jax.random.key(0), images, False)
state = State.create(
    apply_fn=net.apply,
    params=variables["params"],
    tx=optax.adam(1e-2),
    batch_stats=variables["batch_stats"],
)


@jax.jit
def step(state, key):
    def loss(params):
        scores, updates = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats}, images, True,
            rngs={"dropout": key}, mutable=["batch_stats"],
        )  # fmt: skip
        return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean(), updates

    (value, updates), gradient = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=gradient, batch_stats=updates["batch_stats"]), value


losses = []
for i in range(4):
    state, value = step(state, jax.random.key(i))
    losses.append(float(value))
restored = serialization.from_bytes(state.params, serialization.to_bytes(state.params))
sums = {"/".join(k): float(jnp.abs(v).sum()) for k, v in traverse_util.flatten_dict(restored).items()}


class Sequences(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.MultiHeadDotProductAttention(2, qkv_features=8)(nn.Embed(10, 8)(x))
        x = nn.RNN(nn.OptimizedLSTMCell(6))(x)
        layers = nn.scan(
            nn.remat(Layer), variable_axes={"params": 0}, split_rngs={"params": True}, length=3
        )
        return layers()(x, None)[0]


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return x + nn.tanh(nn.Dense(6)(x)), None


tokens = jnp.asarray(rng.integers(0, 10, (3, 5)))
sequences = Sequences()
weights = sequences.init(jax.random.key(1), tokens)
print(
    json.dumps(
        {
            "losses": losses,
            **sums,
            "mean": state.batch_stats["BatchNorm_0"]["mean"].tolist(),
            "sequences": sequences.apply(weights, tokens).tolist(),
            "gradient": float(
                optax.global_norm(jax.grad(lambda w: sequences.apply(w, tokens).sum())(weights))
            ),
            "rows of the table": len(net.tabulate(jax.random.key(0), images, False).splitlines()),
        }
    )
)
