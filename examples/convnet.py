"""A small convolutional net learns handwritten digits by Adam with mini-batches, in one scan.

    python examples/convnet.py
"""

import functools

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import lax, nn, random

CHANNELS = (1, 8, 16)


def load_digits():
    """scikit-learn's images as [count, 8, 8, 1] in [0, 1], and their digits."""
    from sklearn import datasets

    images, digits = datasets.load_digits(return_X_y=True)
    return (images / 16).astype(np.float32).reshape(-1, 8, 8, 1), digits.astype(np.int32)


def init_params(key):
    """He's weights for two convolutions, and a last layer that starts with zeros."""
    he = nn.initializers.he_normal(in_axis=(0, 1, 2))
    pairs = zip(CHANNELS, CHANNELS[1:])
    layers = [
        {"w": he(random.fold_in(key, i), (3, 3, m, n)), "b": jnp.zeros(n)}
        for i, (m, n) in enumerate(pairs)
    ]
    return layers, {"w": jnp.zeros((2 * 2 * CHANNELS[-1], 10)), "b": jnp.zeros(10)}


def max_pool(x):
    """The maximum of each 2 by 2 square."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def scores(params, x):
    """What the net makes of images: a score for each digit."""
    layers, last = params
    for layer in layers:
        x = lax.conv_general_dilated(
            x, layer["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = max_pool(nn.relu(x + layer["b"]))
    return x.reshape(len(x), -1) @ last["w"] + last["b"]


def loss(params, x, y):
    """Mean cross-entropy."""
    logs = nn.log_softmax(scores(params, x))
    return -jnp.mean(jnp.take_along_axis(logs, y[:, None], axis=1))


def adam(state, grads, t, rate):
    """One step of Adam (Kingma and Ba, 2014)."""
    p, m, v = state
    m = lamina.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = lamina.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    scale = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return lamina.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v


@functools.partial(lamina.jit, static_argnums=(3, 4))
def train(key, x, y, steps, batch):
    """The parameters after some steps, and the loss at each."""
    k1, k2 = random.split(key)
    params = init_params(k1)
    zeros = lamina.tree.map(jnp.zeros_like, params)

    def step(state, t):
        rows = random.randint(random.fold_in(k2, t), (batch,), 0, len(x))
        value, grads = lamina.value_and_grad(loss)(state[0], x[rows], y[rows])
        return adam(state, grads, t + 1.0, 0.01), value

    (params, _, _), losses = lax.scan(step, (params, zeros, zeros), jnp.arange(steps))
    return params, losses


@lamina.jit
def evaluate(params, x, y):
    """The share of images that are told right, and how often each digit is."""
    right = jnp.argmax(scores(params, x), axis=1) == y
    each = lamina.ops.segment_sum(right.astype(jnp.float32), y, 10) / jnp.bincount(y, length=10)
    return jnp.mean(right), each


def main(steps=120, batch=32, seed=0):
    x, y = load_digits()
    params, losses = train(random.key(seed), x[:1500], y[:1500], steps, batch)
    accuracy, each = evaluate(params, x[1500:], y[1500:])
    return {"losses": losses, "accuracy": accuracy, "each": each,
            "filters": params[0][0]["w"][:, :, 0]}  # fmt: skip


if __name__ == "__main__":
    result = lamina.device_get(main())
    for i in range(0, 120, 30):
        print(f"steps {i:3d} to {i + 29:3d}: mean loss {result['losses'][i : i + 30].mean():.3f}")
    print(f"{result['accuracy']:.1%} of 297 unseen digits are told right")
    print(f"hardest is {result['each'].argmin()}, with {result['each'].min():.0%}")
