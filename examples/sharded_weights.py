"""Fully sharded data parallel (FSDP): weights and what the optimizer remembers are split over devices, too.

    mpiexec -n 4 python examples/sharded_weights.py
    LAMINA_NUM_CPU_DEVICES=4 python examples/sharded_weights.py

Each device holds a part of the batch and a part of each weight. with_sharding_constraint asks for a
layer's weights whole where they are used: the partitioner gathers them there. Gradients are summed over
the devices, each of which keeps its part.
"""

import functools

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import P
from lamina.lax import with_sharding_constraint
from lamina.sharding import Mesh, NamedSharding

STEPS, LAYERS, WIDTH, BATCH = 50, 4, 64, 64


def loss(layers, mesh, x, y):
    whole = NamedSharding(mesh, P())

    @lamina.checkpoint  # the backward pass gathers again instead of keeping whole weights
    def layer(x, w):
        return x + jnp.tanh(x @ with_sharding_constraint(w, whole))

    for w in layers:
        x = layer(x, w)
    return jnp.mean((x - y) ** 2)


@functools.partial(lamina.jit, static_argnums=0, donate_argnums=(1, 2))
def step(mesh, layers, moments, x, y, at):
    """A step of Adam."""
    value, grads = lamina.value_and_grad(loss)(layers, mesh, x, y)
    parts = NamedSharding(mesh, P("data"))
    grads = with_sharding_constraint(grads, parts)
    first = [0.9 * m + 0.1 * g for (m, _), g in zip(moments, grads)]
    second = [0.99 * v + 0.01 * g * g for (_, v), g in zip(moments, grads)]
    layers = [
        w - 0.01 * (m / (1 - 0.9**at)) / (jnp.sqrt(v / (1 - 0.99**at)) + 1e-8)
        for w, m, v in zip(layers, first, second)
    ]
    return layers, list(zip(first, second)), value


def train(devices):
    """The loss at each step, on a mesh of these devices."""
    mesh = Mesh(np.array(devices), ("data",))
    parts = NamedSharding(mesh, P("data"))
    keys = lamina.random.split(lamina.random.key(0), LAYERS + 2)
    layers = [0.1 * lamina.random.normal(k, (WIDTH, WIDTH)) for k in keys[:LAYERS]]
    x = lamina.random.normal(keys[LAYERS], (BATCH, WIDTH))
    y = jnp.sin(x @ (0.2 * lamina.random.normal(keys[LAYERS + 1], (WIDTH, WIDTH))))
    layers, x, y = lamina.device_put((layers, x, y), parts)
    moments = lamina.device_put([(jnp.zeros_like(w), jnp.zeros_like(w)) for w in layers], parts)
    losses = []
    for at in range(1, STEPS + 1):
        layers, moments, value = step(mesh, layers, moments, x, y, jnp.float32(at))
        losses.append(float(value))
    assert layers[0].addressable_shards[0].data.shape == (WIDTH // len(devices), WIDTH)
    return losses


if __name__ == "__main__":
    lamina.distributed.initialize()
    losses = train(lamina.devices())
    if lamina.process_index() == 0:
        for at in range(0, STEPS, 10):
            print(f"step {at:2d}: loss {losses[at]:.4f}")
        print(f"loss {losses[-1]:.4f} after {STEPS} steps on {lamina.device_count()} devices")
