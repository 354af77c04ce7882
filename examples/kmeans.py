"""k-means: Lloyd's algorithm until nothing moves, from k-means++ seeds, best of several starts.

    python examples/kmeans.py [--plot]

The iteration is a while_loop; the starts are a vmap, each lane running as long as it needs.
"""

import functools
import sys

import lamina
import lamina.numpy as jnp
from lamina import lax, random


def make_blobs(key, count, k):
    """Points around k centres in the plane."""
    k1, k2, k3 = random.split(key, 3)
    centres = random.uniform(k1, (k, 2), minval=-5, maxval=5)
    member = random.randint(k2, (count,), 0, k)
    return centres[member] + 0.6 * random.normal(k3, (count, 2))


def squared_distances(points, centres):
    return jnp.sum((points[:, None] - centres[None]) ** 2, axis=-1)


def seeds(key, points, k):
    """k-means++ (Arthur and Vassilvitskii, 2007): each next seed far from those before it."""
    k1, k2 = random.split(key)
    first = points[random.randint(k1, (), 0, len(points))]
    centres = jnp.full((k, 2), jnp.inf).at[0].set(first)

    def add(i, centres):
        nearest = jnp.min(squared_distances(points, centres), axis=1)
        chosen = random.categorical(random.fold_in(k2, i), jnp.log(nearest))
        return centres.at[i].set(points[chosen])

    return lax.fori_loop(1, k, add, centres)


def assign(points, centres):
    return jnp.argmin(squared_distances(points, centres), axis=1)


def lloyd(key, points, k):
    """Centres, total squared distance, and rounds until the assignment stays."""

    def changed(state):
        _, before, now, _ = state
        return jnp.any(before != now)

    def improve(state):
        centres, _, now, rounds = state
        sums = lamina.ops.segment_sum(points, now, k)
        sizes = lamina.ops.segment_sum(jnp.ones(len(points)), now, k)
        means = sums / jnp.maximum(sizes, 1)[:, None]
        centres = jnp.where(sizes[:, None] > 0, means, centres)
        return centres, now, assign(points, centres), rounds + 1

    centres = seeds(key, points, k)
    now = assign(points, centres)
    centres, _, now, rounds = lax.while_loop(changed, improve, (centres, now - 1, now, 0))
    cost = jnp.sum(jnp.min(squared_distances(points, centres), axis=1))
    return centres, cost, rounds


@functools.partial(lamina.jit, static_argnums=(1, 2, 3))
def run(key, count, k, starts):
    """All starts, and the clusters of the best."""
    k1, k2 = random.split(key)
    points = make_blobs(k1, count, k)
    centres, costs, rounds = lamina.vmap(lambda s: lloyd(s, points, k))(random.split(k2, starts))
    best = centres[jnp.argmin(costs)]
    best = best[jnp.argsort(best[:, 0])]
    sizes = jnp.bincount(assign(points, best), length=k)
    return {"points": points, "centres": best, "sizes": sizes, "costs": costs, "rounds": rounds}


def main(count=600, k=6, starts=8, seed=1):
    return run(random.key(seed), count, k, starts)


if __name__ == "__main__":
    result = lamina.device_get(main())
    print(f"costs of {len(result['costs'])} starts: {result['costs'].round(1)}")
    print(f"rounds they took: {result['rounds']}")
    for centre, size in zip(result["centres"], result["sizes"]):
        print(f"{size:4d} points around ({centre[0]:5.2f}, {centre[1]:5.2f})")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.plot(*result["points"].T, ".", *result["centres"].T, "kx")
        plt.show()
