"""Optimal transport by Sinkhorn's iteration in log space, and shapes that flow into each other.

    python examples/sinkhorn.py [--plot]

After Cuturi (2013). The iteration ends by itself; its gradient needs no derivative of the loop, by
the envelope theorem: at the optimum only the cost matrix depends on the points.
"""

import functools
import sys

import lamina
import lamina.numpy as jnp
from lamina import lax, random
from lamina.nn import logsumexp


def cost(x, y):
    return jnp.sum((x[:, None] - y[None]) ** 2, axis=-1)


def sinkhorn(c, blur, tolerance=1e-3, limit=500):
    """The entropic transport plan between equal masses, and the rounds that it took."""
    rows, columns = c.shape
    log_a, log_b = -jnp.log(rows), -jnp.log(columns)

    def plan(f, g):
        return jnp.exp((f[:, None] + g[None, :] - c) / blur + log_a + log_b)

    def unfinished(state):
        f, g, rounds = state
        error = jnp.sum(jnp.abs(jnp.sum(plan(f, g), axis=1) - 1 / rows))
        return (error > tolerance) & (rounds < limit)

    def improve(state):
        f, g, rounds = state
        f = -blur * logsumexp((g[None, :] - c) / blur + log_b, axis=1)
        g = -blur * logsumexp((f[:, None] - c) / blur + log_a, axis=0)
        return f, g, rounds + 1

    f, g, rounds = lax.while_loop(unfinished, improve, (jnp.zeros(rows), jnp.zeros(columns), 0))
    return plan(f, g), rounds


def transport_cost(x, y, blur):
    """What moving x to y costs under the best plan, and the rounds."""
    c = cost(x, y)
    plan, rounds = sinkhorn(lax.stop_gradient(c), blur)
    return jnp.sum(lax.stop_gradient(plan) * c), rounds


def circle(n):
    angle = 2 * jnp.pi * jnp.arange(n) / n
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)


@functools.partial(lamina.jit, static_argnums=(1, 2))
def run(key, count, steps, blur):
    """A cloud flows onto a circle, down the gradient of the cost."""
    start = 0.4 * random.normal(key, (count, 2))
    target = circle(count)
    slope = lamina.value_and_grad(transport_cost, has_aux=True)

    def step(x, _):
        (value, rounds), g = slope(x, target, blur)
        return x - 0.15 * count * g, (value, rounds)

    x, (values, rounds) = lax.scan(step, start, None, length=steps)
    plan, _ = sinkhorn(cost(x, target), blur)
    radius = jnp.sqrt(jnp.sum(x**2, axis=1))
    return {"costs": values, "rounds": rounds, "radius": jnp.mean(radius),
            "spread": jnp.std(radius), "mass": jnp.sum(plan, axis=1), "start": start, "x": x}  # fmt: skip


def main(count=48, steps=20, blur=0.05, seed=0):
    return run(random.key(seed), count, steps, blur)


if __name__ == "__main__":
    result = lamina.device_get(main())
    print(f"transport cost {result['costs'][0]:.4f} -> {result['costs'][-1]:.4f}")
    print(f"rounds of Sinkhorn at each step: {result['rounds']}")
    print(f"distance from the middle {result['radius']:.3f} +- {result['spread']:.3f} (circle: 1)")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.plot(*result["start"].T, "o", *result["x"].T, "x")
        plt.axis("equal")
        plt.show()
