"""A graph neural network finds two communities from the friendships of a few known members.

    python examples/graph_network.py

A random graph of two groups whose members mostly befriend their own. Features are random: only the
edges tell. Messages are gathered along edges and added up by segment_sum (Kipf and Welling, 2016).
"""

import functools

import lamina
import lamina.numpy as jnp
from lamina import lax, nn, random

WIDTH = 16


def make_graph(key, nodes, edges):
    """Both directions of random edges, four in five within a group; nodes of even number are in
    group 0."""
    k1, k2, k3 = random.split(key, 3)
    source = random.randint(k1, (edges,), 0, nodes)
    same = random.bernoulli(k2, 0.8, (edges,))
    other = 2 * random.randint(k3, (edges,), 0, nodes // 2)
    target = other + jnp.where(same, source % 2, 1 - source % 2)
    return jnp.concatenate([source, target]), jnp.concatenate([target, source])


def propagate(x, source, target):
    """Mean over neighbours and itself, weighted by both degrees."""
    nodes = len(x)
    degree = 1 + lamina.ops.segment_sum(jnp.ones(len(target)), target, nodes)
    scale = lax.rsqrt(degree)[:, None]
    arrived = lamina.ops.segment_sum((x * scale)[source], target, nodes)
    return scale * (arrived + x * scale)


def scores(params, x, source, target):
    """Two rounds of messages: a score for each group, for each node."""
    x = nn.relu(propagate(x @ params["w1"], source, target) + params["b1"])
    return propagate(x @ params["w2"], source, target) + params["b2"]


def loss(params, x, source, target, labels, known):
    """Cross-entropy of the known members, and a little weight decay."""
    logs = nn.log_softmax(scores(params, x, source, target))
    own = jnp.take_along_axis(logs, labels[:, None], axis=1)[:, 0]
    decay = sum(jnp.sum(w**2) for w in lamina.tree.leaves(params))
    return -jnp.sum(own * known) / jnp.sum(known) + 1e-3 * decay


@functools.partial(lamina.jit, static_argnums=(1, 2, 3, 4))
def run(key, nodes, edges, members, steps):
    """Trains by gradient descent with momentum; accuracy on known and on unknown nodes."""
    k1, k2, k3, k4 = random.split(key, 4)
    source, target = make_graph(k1, nodes, edges)
    labels = jnp.arange(nodes) % 2
    known = jnp.arange(nodes) < members
    x = random.normal(k2, (nodes, WIDTH))
    glorot = nn.initializers.glorot_uniform()
    params = {"w1": glorot(k3, (WIDTH, WIDTH)), "b1": jnp.zeros(WIDTH),
              "w2": glorot(k4, (WIDTH, 2)), "b2": jnp.zeros(2)}  # fmt: skip

    def step(state, _):
        p, speed = state
        value, g = lamina.value_and_grad(loss)(p, x, source, target, labels, known)
        speed = lamina.tree.map(lambda s, g: 0.9 * s - 0.05 * g, speed, g)
        return (lamina.tree.map(jnp.add, p, speed), speed), value

    zeros = lamina.tree.map(jnp.zeros_like, params)
    (params, _), losses = lax.scan(step, (params, zeros), None, length=steps)
    right = jnp.argmax(scores(params, x, source, target), axis=1) == labels
    degree = lamina.ops.segment_sum(jnp.ones(2 * edges), target, nodes)
    return {"losses": losses, "known": jnp.sum(right * known) / members,
            "unknown": jnp.sum(right & ~known) / (nodes - members),
            "degree": jnp.stack([degree.min(), degree.mean(), degree.max()])}  # fmt: skip


def main(nodes=200, edges=1500, members=40, steps=150, seed=0):
    return run(random.key(seed), nodes, edges, members, steps)


if __name__ == "__main__":
    result = lamina.device_get(main())
    low, mean, high = result["degree"]
    print(f"200 nodes with {low:.0f} to {high:.0f} friends, {mean:.0f} on average")
    print(f"loss {result['losses'][0]:.3f} -> {result['losses'][-1]:.3f}")
    print(f"right: {result['known']:.1%} of the 40 known members, {result['unknown']:.1%} of the "
          "others")  # fmt: skip
