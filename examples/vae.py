"""A variational autoencoder of handwritten digits: images from a few normal numbers.

    python examples/vae.py [--plot]

After Kingma and Welling (2013): the encoder gives a normal distribution of codes, a sample of it is
decoded, and the evidence lower bound is climbed by Adam through the sampling.
"""

import functools
import sys

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import lax, nn, random

PIXELS, HIDDEN, CODE = 64, 64, 4


def load_images():
    """scikit-learn's digits as rows of 64 numbers in [0, 1]."""
    from sklearn import datasets

    return (datasets.load_digits().data / 16).astype(np.float32)


def init_params(key):
    """Two layers each way."""
    glorot = nn.initializers.glorot_normal()
    sizes = {"see": (PIXELS, HIDDEN), "encode": (HIDDEN, 2 * CODE),
             "think": (CODE, HIDDEN), "draw": (HIDDEN, PIXELS)}  # fmt: skip
    keys = random.split(key, len(sizes))
    return {n: {"w": glorot(k, s), "b": jnp.zeros(s[1])} for k, (n, s) in zip(keys, sizes.items())}


def dense(layer, x):
    return x @ layer["w"] + layer["b"]


def encode(params, x):
    """Mean and log variance of the code of each image."""
    return jnp.split(dense(params["encode"], nn.tanh(dense(params["see"], x))), 2, axis=-1)


def decode(params, code):
    """Scores of the pixels: the logits of their brightness."""
    return dense(params["draw"], nn.tanh(dense(params["think"], code)))


def bound(params, x, noise):
    """What to minimise: the negative evidence lower bound, as cross-entropy and divergence."""
    mean, log_variance = encode(params, x)
    scores = decode(params, mean + jnp.exp(log_variance / 2) * noise)
    cross = jnp.sum(nn.softplus(scores) - x * scores, axis=1)
    divergence = jnp.sum(jnp.exp(log_variance) + mean**2 - 1 - log_variance, axis=1) / 2
    return jnp.mean(cross + divergence), jnp.mean(divergence)


@functools.partial(lamina.jit, static_argnums=(2, 3))
def train(key, images, steps, batch):
    """Parameters after some steps of Adam; the bound and the divergence at each."""
    k1, k2 = random.split(key)
    params = init_params(k1)
    zeros = lamina.tree.map(jnp.zeros_like, params)

    def step(state, t):
        p, m, v = state
        k3, k4 = random.split(random.fold_in(k2, t))
        x = images[random.randint(k3, (batch,), 0, len(images))]
        values, g = lamina.value_and_grad(bound, has_aux=True)(
            p, x, random.normal(k4, (batch, CODE))
        )
        m = lamina.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = lamina.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        scale = 0.005 * jnp.sqrt(1 - 0.99 ** (t + 1.0)) / (1 - 0.9 ** (t + 1.0))
        p = lamina.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), p, m, v)
        return (p, m, v), values

    (params, _, _), (bounds, divergences) = lax.scan(
        step, (params, zeros, zeros), jnp.arange(steps)
    )
    return params, bounds, divergences


@functools.partial(lamina.jit, static_argnums=2)
def look(key, params, count, images):
    """Error of restored images, use of each code, and new images from random codes."""
    mean, _ = encode(params, images)
    error = jnp.sqrt(jnp.mean((nn.sigmoid(decode(params, mean)) - images) ** 2))
    new = nn.sigmoid(decode(params, random.normal(key, (count, CODE))))
    return error, jnp.std(mean, axis=0), new


def main(steps=400, batch=64, seed=0):
    images = load_images()
    k1, k2 = random.split(random.key(seed))
    params, bounds, divergences = train(k1, images[:1500], steps, batch)
    error, use, new = look(k2, params, 12, images[1500:])
    return {"bounds": bounds, "divergences": divergences, "error": error, "use": use, "new": new}


if __name__ == "__main__":
    result = lamina.device_get(main())
    bounds = result["bounds"]
    print(f"negative bound {bounds[:20].mean():.2f} -> {bounds[-20:].mean():.2f} nats, "
          f"of which the code {result['divergences'][-20:].mean():.2f}")  # fmt: skip
    print(f"4 numbers restore unseen images up to {result['error']:.3f} a pixel")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.imshow(jnp.concatenate([*result["new"].reshape(-1, 8, 8)], axis=1), cmap="gray")
        plt.show()
