"""Bayesian linear regression without matrices: a smooth signal from few samples, by conjugate
gradients, with error bars from solves for random right sides.

    python examples/conjugate_gradients.py [--plot]

The posterior precision A = X'X / noise + prior is never formed: cg needs only the product with it.
The gradient of a fit by the prior's strength goes through the solver, by solving once more.
"""

import functools
import sys

import lamina
import lamina.numpy as jnp
from lamina import random
from lamina.scipy.sparse.linalg import cg

SIZE, NOISE = 200, 0.1


def smoothness(w):
    """D'D w for second differences D: large where w bends."""
    bend = jnp.convolve(w, jnp.array([1.0, -2.0, 1.0]), mode="valid")
    return jnp.convolve(bend, jnp.array([1.0, -2.0, 1.0]), mode="full")


def precision(w, where, strength):
    """The posterior precision times w, for samples of w at some places."""
    data = jnp.zeros(SIZE).at[where].add(w[where]) / NOISE**2
    return data + strength * smoothness(w) + 1e-3 * w


def solve(where, strength, right):
    """A w = right, preconditioned by the diagonal."""
    diagonal = jnp.zeros(SIZE).at[where].add(1 / NOISE**2) + 6 * strength + 1e-3
    return cg(lambda w: precision(w, where, strength), right,
              tol=1e-5, maxiter=600, M=lambda w: w / diagonal)[0]  # fmt: skip


def posterior_mean(where, y, strength):
    return solve(where, strength, jnp.zeros(SIZE).at[where].add(y) / NOISE**2)


def draws(key, where, strength, mean, count):
    """Samples of the posterior: perturb data and prior, then solve (Papandreou and Yuille, 2010)."""

    def draw(key):
        k1, k2, k3 = random.split(key, 3)
        data = random.normal(k1, where.shape) / NOISE
        bend = jnp.sqrt(strength) * random.normal(k2, (SIZE - 2,))
        right = jnp.zeros(SIZE).at[where].add(data)
        right += jnp.convolve(bend, jnp.array([1.0, -2.0, 1.0]), mode="full")
        return mean + solve(where, strength, right + 1e-3**0.5 * random.normal(k3, (SIZE,)))

    return lamina.vmap(draw)(random.split(key, count))


def truth():
    t = jnp.linspace(0, 1, SIZE)
    return jnp.sin(12 * t**2) + 0.5 * t


@functools.partial(lamina.jit, static_argnums=(1, 2))
def run(key, samples, count, log_strength):
    """Fit, error bars, and the slope of the error on unseen samples by the prior's strength."""
    k1, k2, k3 = random.split(key, 3)
    where = random.permutation(k1, SIZE)[: 2 * samples]
    y = truth()[where] + NOISE * random.normal(k2, where.shape)
    seen, unseen = where[:samples], where[samples:]

    def unseen_error(log_strength):
        mean = posterior_mean(seen, y[:samples], jnp.exp(log_strength))
        return jnp.mean((mean[unseen] - y[samples:]) ** 2)

    error, slope = lamina.value_and_grad(unseen_error)(log_strength)
    strength = jnp.exp(log_strength)
    mean = posterior_mean(seen, y[:samples], strength)
    deviation = jnp.std(draws(k3, seen, strength, mean, count), axis=0)
    left = jnp.zeros(SIZE).at[seen].add(y[:samples]) / NOISE**2 - precision(mean, seen, strength)
    return {"mean": mean, "deviation": deviation, "unseen_error": error, "slope": slope,
            "residual": jnp.linalg.norm(left), "covered":
            jnp.mean(jnp.abs(mean - truth()) < 2 * deviation)}  # fmt: skip


def main(samples=40, count=24, log_strength=7.0, seed=0):
    return run(random.key(seed), samples, count, log_strength)


if __name__ == "__main__":
    result = lamina.device_get(main())
    print(f"residual {result['residual']:.1e}; mean square error on unseen samples "
          f"{result['unseen_error']:.4f} (noise alone {NOISE**2:.4f})")  # fmt: skip
    print(f"its slope by the log of the prior's strength {result['slope']:.5f}")
    print(f"{result['covered']:.0%} of the signal lies within two standard deviations")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        mean, band = result["mean"], 2 * result["deviation"]
        plt.fill_between(range(SIZE), mean - band, mean + band, alpha=0.3)
        plt.plot(mean)
        plt.plot(truth(), "--")
        plt.show()
