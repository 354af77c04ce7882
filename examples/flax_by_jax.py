"""A flax net learns handwritten digits: real JAX, real flax and optax, and lamina as what compiles and runs.

    python examples/flax_by_jax.py                     # on lamina
    JAX_PLATFORMS=cpu python examples/flax_by_jax.py   # the same program on JAX's own CPU backend

Nothing here but the two lines that register the plugin knows lamina; JAX_PLATFORMS=lamina in the environment does
without them. Needs `pip install 'lamina[jax]' flax optax scikit-learn`.
"""

import time

import numpy as np

import lamina.jax_plugin

try:
    import jax
    import jax.numpy as jnp
    import optax
    from flax import linen as nn
except ImportError as error:
    raise SystemExit(f"{error}: this example needs pip install 'lamina[jax]' flax optax") from error

EPOCHS, BATCH, RATE = 4, 64, 3e-3


class Net(nn.Module):
    """Two convolutions, each with the norm of a layer and a pool, and a classifier."""

    @nn.compact
    def __call__(self, x):
        for features in (8, 16):
            x = nn.relu(nn.LayerNorm()(nn.Conv(features, (3, 3))(x)))
            x = nn.max_pool(x, (2, 2), (2, 2))
        return nn.Dense(10)(x.reshape(len(x), -1))


def load_digits():
    """scikit-learn's images as [count, 8, 8, 1] in [0, 1], and their digits."""
    from sklearn import datasets

    images, digits = datasets.load_digits(return_X_y=True)
    return (images / 16).astype(np.float32).reshape(-1, 8, 8, 1), digits.astype(np.int32)


def main():
    """Trains; returns the loss of each epoch and how many digits of those kept back are right."""
    net, optimizer = Net(), optax.adamw(RATE)
    images, digits = load_digits()
    order = np.random.default_rng(0).permutation(len(images))
    images, digits = images[order], digits[order]
    kept = len(images) // 5

    def loss(parameters, x, y):
        scores = net.apply(parameters, x)
        return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()

    @jax.jit
    def epoch(parameters, state, x, y):
        def step(carry, batch):
            parameters, state = carry
            value, gradient = jax.value_and_grad(loss)(parameters, *batch)
            updates, state = optimizer.update(gradient, state, parameters)
            return (optax.apply_updates(parameters, updates), state), value

        (parameters, state), losses = jax.lax.scan(step, (parameters, state), (x, y))
        return parameters, state, losses.mean()

    parameters = net.init(jax.random.key(0), images[:1])
    state = optimizer.init(parameters)
    batches = (len(images) - kept) // BATCH
    x = jnp.asarray(images[kept:][: batches * BATCH]).reshape(batches, BATCH, 8, 8, 1)
    y = jnp.asarray(digits[kept:][: batches * BATCH]).reshape(batches, BATCH)
    losses = []
    for number in range(EPOCHS):
        start = time.perf_counter()
        parameters, state, value = epoch(parameters, state, x, y)
        losses.append(float(value))
        print(f"epoch {number}: loss {losses[-1]:.3f}, {time.perf_counter() - start:.2f} s")
    right = jax.jit(lambda p, x, y: (net.apply(p, x).argmax(-1) == y).mean())(parameters, images[:kept], digits[:kept])
    print(f"{float(right):.1%} of {kept} images that it has not seen are right, on {jax.devices()[0]}")
    return {"losses": losses, "right": float(right)}


if __name__ == "__main__":
    lamina.jax_plugin.register()
    main()
