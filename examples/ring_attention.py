"""Sequence parallel: attention over texts that are split over all devices, by ring attention.

    mpiexec -n 4 python examples/ring_attention.py
    LAMINA_NUM_CPU_DEVICES=4 python examples/ring_attention.py

Each device holds a part of every text. Its queries stay; keys and values go round: a device attends to
those it has and hands them to the next, until it has seen all. No device ever holds the scores of a whole
text. The texts repeat themselves after a while, so a letter is known from one that another device holds.
"""

import functools
import math

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import P, lax
from lamina.sharding import Mesh, NamedSharding

STEPS, WIDTH, HEADS, LENGTH, BATCH, LETTERS = 50, 32, 4, 32, 16, 8

SPECS = {"letters": P(), "positions": P("part"), "qkv": P(), "out": P()}


def weights(key):
    shapes = {
        "letters": (LETTERS, WIDTH),
        "positions": (LENGTH, WIDTH),
        "qkv": (3, WIDTH, HEADS, WIDTH // HEADS),
        "out": (HEADS, WIDTH // HEADS, WIDTH),
    }
    keys = dict(zip(shapes, lamina.random.split(key, len(shapes))))
    sizes = {"letters": 1.0, "positions": 1.0, "qkv": WIDTH**-0.5, "out": WIDTH**-0.5}
    return {name: sizes[name] * lamina.random.normal(keys[name], s) for name, s in shapes.items()}


def ring_attention(q, k, v):
    """What each query finds among the keys up to its own place, in all parts."""
    devices, me = lax.axis_size("part"), lax.axis_index("part")
    batch, length, heads, width = q.shape
    within = jnp.arange(length)
    following = [(i, (i + 1) % devices) for i in range(devices)]

    def visit(carry, hops):
        k, v, highest, weight, found = carry
        part = (me - hops) % devices  # whose keys these are
        seen = (me * length + within)[:, None] >= part * length + within
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(width)
        scores = jnp.where(seen, scores, -1e9)
        higher = jnp.maximum(highest, scores.max(-1))
        shares = jnp.exp(scores - higher[..., None])
        before = jnp.exp(highest - higher)  # what was found is relative to the highest score so far
        weight = weight * before + shares.sum(-1)
        found = found * before[..., None] + jnp.einsum("bhqk,bkhd->bhqd", shares, v)
        k, v = lax.ppermute((k, v), "part", following)
        return (k, v, higher, weight, found), None

    nothing = (
        jnp.full((batch, heads, length), -jnp.inf),
        jnp.zeros((batch, heads, length)),
        jnp.zeros((batch, heads, length, width)),
    )
    nothing = lax.pcast(nothing, "part", to="varying")
    (_, _, _, weight, found), _ = lax.scan(visit, (k, v, *nothing), jnp.arange(devices))
    return jnp.moveaxis(found / weight[..., None], 1, 2)


def loss(params, text, following, known):
    """The mean over the letters that can be known; each device has a part of every text."""
    x = params["letters"][text] + params["positions"]
    q, k, v = jnp.einsum("bld,cdhk->cblhk", x, params["qkv"])
    x = x + jnp.einsum("blhk,hkd->bld", ring_attention(q, k, v), params["out"])
    scores = lamina.nn.log_softmax(x @ params["letters"].T / math.sqrt(WIDTH))
    picked = jnp.take_along_axis(scores, following[..., None], -1)[..., 0]
    return -lax.psum((picked * known).sum(), "part") / lax.psum(known.sum(), "part")


@functools.partial(lamina.jit, static_argnums=0, donate_argnums=1)
def step(mesh, params, *texts):
    parts = P(None, "part")
    mapped = lamina.shard_map(loss, mesh=mesh, in_specs=(SPECS, parts, parts, parts), out_specs=P())
    value, grads = lamina.value_and_grad(mapped)(params, *texts)
    return lamina.tree.map(lambda p, g: p - 0.5 * g, params, grads), value


def train(devices):
    """The loss at each step, on a mesh of these devices."""
    mesh = Mesh(np.array(devices), ("part",))
    places = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}
    params = lamina.device_put(weights(lamina.random.key(0)), places)
    period = LENGTH // 2
    once = np.random.default_rng(0).integers(0, LETTERS, (BATCH, period)).astype(np.int32)
    text = np.tile(once, (1, 3))[:, : LENGTH + 1]
    known = np.broadcast_to(np.arange(LENGTH) >= period - 1, (BATCH, LENGTH)).astype(np.float32)
    texts = lamina.device_put((text[:, :-1], text[:, 1:], known), NamedSharding(mesh, P(None, "part")))
    losses = []
    for _ in range(STEPS):
        params, value = step(mesh, params, *texts)
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    lamina.distributed.initialize()
    losses = train(lamina.devices())
    if lamina.process_index() == 0:
        for at in range(0, STEPS, 10):
            print(f"step {at:2d}: loss {losses[at]:.4f}")
        print(f"loss {losses[-1]:.4f} after {STEPS} steps on {lamina.device_count()} devices")
