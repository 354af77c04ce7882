"""A small transformer learns to write: next characters of the text that tells how lamina is built.

    python examples/transformer.py

Decoder only: causal attention with several heads, layers of equal shape run by one scan over their
stacked parameters, pre-norm, Adam. Then the model continues a prompt, greedily.
"""

import functools

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import lax, nn, random

WIDTH, HEADS, LAYERS, CONTEXT = 32, 4, 2, 32
TEXT = (
    "a program is traced to a jaxpr, the jaxpr is lowered to stablehlo, passes fold and fuse it, "
    "each group of operations becomes a kernel, the kernels become machine code, and the code is "
    "kept on disk so that the next run starts at once. "
)
LETTERS = sorted(set(TEXT))


def encode(text):
    return np.array([LETTERS.index(c) for c in text], np.int32)


def decode(codes):
    return "".join(LETTERS[i] for i in np.asarray(codes))


def init_params(key):
    """Normal weights; those of all layers are stacked on a leading axis."""
    ks = random.split(key, 6)
    wide = 4 * WIDTH

    def weights(key, *shape):
        return random.normal(key, shape) * shape[-2] ** -0.5

    layers = {
        "qkv": weights(ks[0], LAYERS, WIDTH, 3 * WIDTH),
        "out": weights(ks[1], LAYERS, WIDTH, WIDTH),
        "up": weights(ks[2], LAYERS, WIDTH, wide),
        "down": weights(ks[3], LAYERS, wide, WIDTH),
    }
    return {"letters": 0.1 * random.normal(ks[4], (len(LETTERS), WIDTH)),
            "places": 0.1 * random.normal(ks[5], (CONTEXT, WIDTH)), "layers": layers}  # fmt: skip


def norm(x):
    """Mean 0 and variance 1 along the last axis."""
    return nn.standardize(x, axis=-1)


def attention(x, qkv, out):
    """Each place looks at itself and those before it."""
    q, k, v = jnp.split((x @ qkv).reshape(len(x), HEADS, -1), 3, axis=-1)
    scores = jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(q.shape[-1])
    past = jnp.tril(jnp.ones((len(x), len(x)), bool))
    shares = nn.softmax(jnp.where(past, scores, -jnp.inf))
    return jnp.einsum("hqk,khd->qhd", shares, v).reshape(len(x), WIDTH) @ out


def logits(params, codes):
    """Scores of the next letter at each place of one sequence."""

    def layer(x, w):
        x = x + attention(norm(x), w["qkv"], w["out"])
        return x + nn.gelu(norm(x) @ w["up"]) @ w["down"], None

    x = params["letters"][codes] + params["places"][: len(codes)]
    x, _ = lax.scan(layer, x, params["layers"])
    return norm(x) @ params["letters"].T


def loss(params, batch):
    """Mean cross-entropy of all next letters of sequences one longer than the context."""
    logs = nn.log_softmax(lamina.vmap(logits, (None, 0))(params, batch[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(logs, batch[:, 1:, None], axis=-1))


@functools.partial(lamina.jit, static_argnums=(2, 3))
def train(key, text, steps, batch):
    """The parameters after some steps of Adam, and the loss at each."""
    k1, k2 = random.split(key)
    params = init_params(k1)
    zeros = lamina.tree.map(jnp.zeros_like, params)

    def step(state, t):
        p, m, v = state
        starts = random.randint(random.fold_in(k2, t), (batch, 1), 0, len(text) - CONTEXT)
        value, g = lamina.value_and_grad(loss)(p, text[starts + jnp.arange(CONTEXT + 1)])
        m = lamina.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = lamina.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        rate = 0.01 * (1 - t / steps)
        scale = rate * jnp.sqrt(1 - 0.99 ** (t + 1.0)) / (1 - 0.9 ** (t + 1.0))
        p = lamina.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), p, m, v)
        return (p, m, v), value

    (params, _, _), losses = lax.scan(step, (params, zeros, zeros), jnp.arange(steps))
    return params, losses


@functools.partial(lamina.jit, static_argnums=2)
def write(params, prompt, count):
    """The likeliest letters after a prompt of CONTEXT letters."""

    def step(window, _):
        letter = jnp.argmax(logits(params, window)[-1]).astype(window.dtype)
        return jnp.append(window[1:], letter), letter

    return lax.scan(step, prompt, None, length=count)[1]


def main(steps=300, batch=8, seed=0):
    text = encode(TEXT)
    params, losses = train(random.key(seed), text, steps, batch)
    return {"losses": losses, "written": write(params, text[:CONTEXT], 60)}


if __name__ == "__main__":
    result = lamina.device_get(main())
    losses = result["losses"]
    print(f"loss {losses[:10].mean():.3f} in the first 10 steps, {losses[-10:].mean():.3f} in the last")
    print(f"prompt:  {TEXT[:CONTEXT]}\nwritten: {decode(result['written'])}")
