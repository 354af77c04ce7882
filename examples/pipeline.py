"""Pipeline parallel: each device holds some of the layers, and micro-batches go from one to the next.

    mpiexec -n 4 python examples/pipeline.py
    LAMINA_NUM_CPU_DEVICES=4 python examples/pipeline.py

In each tick all devices work, each on another micro-batch: the first takes a new one, the others what the
device before them handed on. Gradients go the same way back, since the transpose of a ppermute is the
ppermute the other way. With n devices and m micro-batches n - 1 of m + n - 1 ticks are spent on filling
and emptying the pipeline.
"""

import functools

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import P, lax
from lamina.sharding import Mesh, NamedSharding

STEPS, LAYERS, WIDTH, MICRO_BATCHES, BATCH = 50, 4, 32, 8, 16


def loss(layers, x, y):
    """What the last device finds; each has its own layers, all have the data."""
    devices, me = lax.axis_size("stage"), lax.axis_index("stage")
    onward = [(i, i + 1) for i in range(devices - 1)]

    def layer(x, w):
        return x + jnp.tanh(x @ w), None

    def tick(arrived, at):
        new = x[jnp.minimum(at, MICRO_BATCHES - 1)]
        out, _ = lax.scan(layer, jnp.where(me == 0, new, arrived), layers)
        return lax.ppermute(out, "stage", onward), out

    empty = lax.pcast(jnp.zeros_like(x[0]), "stage", to="varying")
    _, outs = lax.scan(tick, empty, jnp.arange(MICRO_BATCHES + devices - 1))
    value = jnp.mean((outs[devices - 1 :] - y) ** 2)  # the last device's: others are still at earlier ones
    return lax.psum(jnp.where(me == devices - 1, value, 0.0), "stage")


@functools.partial(lamina.jit, static_argnums=0, donate_argnums=1)
def step(mesh, layers, x, y):
    mapped = lamina.shard_map(loss, mesh=mesh, in_specs=(P("stage"), P(), P()), out_specs=P())
    value, grads = lamina.value_and_grad(mapped)(layers, x, y)
    return layers - 0.5 * grads, value


def train(devices):
    """The loss at each step, on a mesh of these devices."""
    mesh = Mesh(np.array(devices), ("stage",))
    k1, k2, k3 = lamina.random.split(lamina.random.key(0), 3)
    layers = 0.1 * lamina.random.normal(k1, (LAYERS, WIDTH, WIDTH))
    x = lamina.random.normal(k2, (MICRO_BATCHES, BATCH, WIDTH))
    y = jnp.sin(x @ (0.2 * lamina.random.normal(k3, (WIDTH, WIDTH))))
    layers = lamina.device_put(layers, NamedSharding(mesh, P("stage")))
    x, y = lamina.device_put((x, y), NamedSharding(mesh, P()))
    losses = []
    for _ in range(STEPS):
        layers, value = step(mesh, layers, x, y)
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    lamina.distributed.initialize()
    losses = train(lamina.devices())
    if lamina.process_index() == 0:
        for at in range(0, STEPS, 10):
            print(f"step {at:2d}: loss {losses[at]:.4f}")
        print(f"loss {losses[-1]:.4f} after {STEPS} steps on {lamina.device_count()} devices")
