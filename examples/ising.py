"""The Ising model by Metropolis sampling: magnetisation and heat capacity across the transition.

    python examples/ising.py [--plot]

Spins are updated like the squares of a chessboard, all of one colour at once. Temperatures are a
vmap of one scan. Onsager's exact magnetisation (below T = 2.269) is printed beside.
"""

import functools
import sys

import lamina
import lamina.numpy as jnp
from lamina import lax, random


def neighbours(spins):
    """The sum of the four spins around each, on a torus."""
    return sum(jnp.roll(spins, shift, axis) for axis in (0, 1) for shift in (1, -1))


def sweep(spins, key, beta):
    """Offers every spin one flip, black squares first."""
    n = spins.shape[0]
    rows, columns = jnp.indices((n, n))
    chance = random.uniform(key, (n, n))
    for colour in (0, 1):
        cost = 2 * spins * neighbours(spins)
        flip = (chance < jnp.exp(-beta * cost)) & ((rows + columns) % 2 == colour)
        spins = jnp.where(flip, -spins, spins)
    return spins


def sample(key, temperature, n, sweeps):
    """Means of |magnetisation| and energy per spin, and heat capacity, after a warm-up."""

    def step(spins, key):
        spins = sweep(spins, key, 1 / temperature)
        energy = -jnp.mean(spins * neighbours(spins)) / 2
        return spins, (jnp.abs(jnp.mean(spins)), energy)

    spins = jnp.ones((n, n))
    spins, (magnet, energy) = lax.scan(step, spins, random.split(key, sweeps))
    magnet, energy = magnet[sweeps // 4 :], energy[sweeps // 4 :]
    capacity = jnp.var(energy) * n * n / temperature**2
    return jnp.mean(magnet), jnp.mean(energy), capacity, spins


@functools.partial(lamina.jit, static_argnums=(2, 3))
def run(key, temperatures, n, sweeps):
    """A sample at every temperature."""
    keys = random.split(key, len(temperatures))
    magnet, energy, capacity, spins = lamina.vmap(lambda k, t: sample(k, t, n, sweeps))(
        keys, temperatures
    )
    exact = jnp.maximum(1 - jnp.sinh(2 / temperatures) ** -4, 0) ** 0.125
    return {"temperature": temperatures, "magnetisation": magnet, "onsager": exact,
            "energy": energy, "heat_capacity": capacity, "spins": spins}  # fmt: skip


def main(n=24, sweeps=400, seed=0):
    return run(random.key(seed), jnp.linspace(1.6, 3.2, 9), n, sweeps)


if __name__ == "__main__":
    result = lamina.device_get(main())
    print("    T      |m|   exact   energy  heat capacity")
    columns = ("temperature", "magnetisation", "onsager", "energy", "heat_capacity")
    for row in zip(*(result[c].tolist() for c in columns)):
        print("{:5.2f}  {:7.3f} {:7.3f}  {:7.3f}  {:7.3f}".format(*row))
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.imshow(jnp.concatenate([*result["spins"][::2]], axis=1))
        plt.show()
