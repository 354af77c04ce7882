"""Data parallel: a classifier of digits whose batch is split over all devices, by shardings alone.

    mpiexec -n 4 python examples/sharded_batch.py
    LAMINA_NUM_CPU_DEVICES=4 python examples/sharded_batch.py

The function is written for one device. The batch lies in parts on the devices and the weights whole on
each; the partitioner adds the sum of the gradients over the devices.
"""

import functools

import numpy as np
from sklearn.datasets import load_digits

import lamina
import lamina.numpy as jnp
from lamina import P
from lamina.sharding import Mesh, NamedSharding

STEPS = 50


def loss(params, images, labels):
    hidden = lamina.nn.relu(images @ params["w1"] + params["b1"])
    scores = lamina.nn.log_softmax(hidden @ params["w2"] + params["b2"])
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))


@functools.partial(lamina.jit, donate_argnums=0)
def step(params, images, labels):
    value, grads = lamina.value_and_grad(loss)(params, images, labels)
    return lamina.tree.map(lambda p, g: p - 0.5 * g, params, grads), value


def train(devices):
    """The loss at each step, on a mesh of these devices."""
    mesh = Mesh(np.array(devices), ("data",))
    data = load_digits()
    k1, k2 = lamina.random.split(lamina.random.key(0))
    params = {
        "w1": lamina.random.normal(k1, (64, 64)) * 0.1,
        "b1": jnp.zeros(64),
        "w2": lamina.random.normal(k2, (64, 10)) * 0.1,
        "b2": jnp.zeros(10),
    }
    params = lamina.device_put(params, NamedSharding(mesh, P()))
    batch = (data.data[:1536] / 16).astype(np.float32), data.target[:1536].astype(np.int32)
    images, labels = lamina.device_put(batch, NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(STEPS):
        params, value = step(params, images, labels)
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    lamina.distributed.initialize()
    losses = train(lamina.devices())
    if lamina.process_index() == 0:
        for at in range(0, STEPS, 10):
            print(f"step {at:2d}: loss {losses[at]:.4f}")
        print(f"loss {losses[-1]:.4f} after {STEPS} steps on {lamina.device_count()} devices")
