"""Tensor parallel: a transformer whose heads and hidden units are split over devices, as Megatron does.

    mpiexec -n 4 python examples/sharded_layers.py
    LAMINA_NUM_CPU_DEVICES=4 python examples/sharded_layers.py

Half of the devices hold other parts of the batch, the two along "model" other parts of each layer. The
first weights of a layer are split by columns and the second by rows, so that a layer's result is a sum
over "model": one all-reduce for the attention and one for the two-layer network.
"""

import functools
import math

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import P
from lamina.sharding import Mesh, NamedSharding

STEPS, LAYERS, WIDTH, HEADS, LENGTH, BATCH, LETTERS = 50, 2, 32, 4, 16, 8, 16

SPECS = {
    "embedding": P(),
    "qkv": P(None, None, None, "model", None),  # layer, width, 3, heads, head's width
    "out": P(None, "model", None, None),
    "up": P(None, None, "model"),
    "down": P(None, "model", None),
}


def weights(key):
    shapes = {
        "embedding": (LETTERS, WIDTH),
        "qkv": (LAYERS, WIDTH, 3, HEADS, WIDTH // HEADS),
        "out": (LAYERS, HEADS, WIDTH // HEADS, WIDTH),
        "up": (LAYERS, WIDTH, 4 * WIDTH),
        "down": (LAYERS, 4 * WIDTH, WIDTH),
    }
    keys = dict(zip(shapes, lamina.random.split(key, len(shapes))))
    return {name: 0.3 / math.sqrt(WIDTH) * lamina.random.normal(keys[name], s) for name, s in shapes.items()}


def normalized(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def layer(x, w):
    q, k, v = jnp.moveaxis(jnp.einsum("bld,dchk->bclhk", normalized(x), w["qkv"]), 1, 0)
    scores = jnp.einsum("blhk,bmhk->bhlm", q, k) / math.sqrt(WIDTH // HEADS)
    seen = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    attention = lamina.nn.softmax(jnp.where(seen, scores, -1e9), -1)
    x = x + jnp.einsum("bhlm,bmhk,hkd->bld", attention, v, w["out"])
    return x + lamina.nn.gelu(normalized(x) @ w["up"]) @ w["down"], None


def loss(params, text):
    x = params["embedding"][text[:, :-1]]
    x, _ = lamina.lax.scan(layer, x, {name: w for name, w in params.items() if name != "embedding"})
    scores = lamina.nn.log_softmax(normalized(x) @ params["embedding"].T)
    return -jnp.mean(jnp.take_along_axis(scores, text[:, 1:, None], -1))


@functools.partial(lamina.jit, donate_argnums=0)
def step(params, text):
    value, grads = lamina.value_and_grad(loss)(params, text)
    return lamina.tree.map(lambda p, g: p - 0.5 * g, params, grads), value


def train(devices):
    """The loss at each step, on a mesh of these devices."""
    model = 2 if len(devices) % 2 == 0 else 1
    mesh = Mesh(np.array(devices).reshape(-1, model), ("data", "model"))
    places = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}
    params = lamina.device_put(weights(lamina.random.key(0)), places)
    starts = np.random.default_rng(0).integers(0, LETTERS, (BATCH, 1))
    text = (starts + 3 * np.arange(LENGTH + 1)) % LETTERS
    text = lamina.device_put(text.astype(np.int32), NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(STEPS):
        params, value = step(params, text)
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    lamina.distributed.initialize()
    losses = train(lamina.devices())
    if lamina.process_index() == 0:
        for at in range(0, STEPS, 10):
            print(f"step {at:2d}: loss {losses[at]:.4f}")
        print(f"loss {losses[-1]:.4f} after {STEPS} steps on {lamina.device_count()} devices")
