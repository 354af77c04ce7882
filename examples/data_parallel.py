"""Trains the classifier of digits.py data-parallel: four virtual devices, each with a quarter of
the batch, whose gradients are averaged.

    python examples/data_parallel.py
"""

import time

import numpy as np
from sklearn.datasets import load_digits

import lamina
import lamina.numpy as jnp
from lamina import P, lax

lamina.config.update("num_cpu_devices", 4)


def loss(params, images, labels):
    hidden = lamina.nn.relu(images @ params["w1"] + params["b1"])
    scores = lamina.nn.log_softmax(hidden @ params["w2"] + params["b2"])
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))


def step(params, images, labels):
    """One step of every device: params are the same on all, the batch is split."""
    value, grads = lamina.value_and_grad(loss)(params, images, labels)
    value, grads = lax.pmean((value, grads), "data")
    return lamina.tree.map(lambda p, g: p - 0.5 * g, params, grads), value


def main() -> None:
    data = load_digits()
    images = (data.data / 16).astype(np.float32)
    labels = data.target.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(images))
    train, test = order[:1536], order[1536:]

    mesh = lamina.make_mesh((4,), ("data",))
    k1, k2 = lamina.random.split(lamina.random.key(0))
    params = {
        "w1": lamina.random.normal(k1, (64, 64)) * 0.1,
        "b1": jnp.zeros(64),
        "w2": lamina.random.normal(k2, (64, 10)) * 0.1,
        "b2": jnp.zeros(10),
    }
    batch = P("data")
    train_step = lamina.jit(
        lamina.shard_map(step, mesh=mesh, in_specs=(P(), batch, batch), out_specs=(P(), P())),
        donate_argnums=0,
    )
    # Placed once: each device reads its part from then on.
    placed = lamina.NamedSharding(mesh, batch)
    x, y = lamina.device_put((images[train], labels[train]), placed)
    start = time.perf_counter()
    for epoch in range(200):
        params, value = train_step(params, x, y)
        if epoch % 50 == 0:
            print(f"step {epoch:3d}: loss {float(value):.4f}")
    seconds = time.perf_counter() - start
    hidden = np.maximum(images[test] @ np.asarray(params["w1"]) + np.asarray(params["b1"]), 0)
    guess = np.argmax(hidden @ np.asarray(params["w2"]) + np.asarray(params["b2"]), 1)
    right = float(np.mean(guess == labels[test]))
    print(f"{right:.1%} of {len(test)} unseen digits are right, after {seconds:.2f} s")
    print(f"params lie on {params['w1'].sharding}, the batch on {x.sharding}")
    assert right > 0.9


if __name__ == "__main__":
    main()
