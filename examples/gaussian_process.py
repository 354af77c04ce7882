"""Gaussian process regression by Cholesky: the kernel's parameters climb the marginal likelihood.

    python examples/gaussian_process.py [--plot]

After Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), algorithm 2.1.
"""

import sys

import lamina
import lamina.numpy as jnp
from lamina import lax, random
from lamina.scipy.linalg import cho_solve, cholesky, solve_triangular


def kernel(params, a, b):
    """Squared exponential covariance of all pairs."""
    distance = (a[:, None] - b[None, :]) / jnp.exp(params["log_length"])
    return jnp.exp(2 * params["log_scale"] - distance**2 / 2)


def factor(params, x):
    """Lower Cholesky factor of the covariance of noisy observations."""
    k = kernel(params, x, x)
    return cholesky(k + jnp.exp(2 * params["log_noise"]) * jnp.eye(len(x)), lower=True)


def log_evidence(params, x, y):
    """Log marginal likelihood of the observations."""
    low = factor(params, x)
    fit = y @ cho_solve((low, True), y)
    return -fit / 2 - jnp.sum(jnp.log(jnp.diag(low))) - len(x) / 2 * jnp.log(2 * jnp.pi)


def predict(params, x, y, at):
    """Mean and standard deviation of the function at new points."""
    low = factor(params, x)
    cross = kernel(params, x, at)
    mean = cross.T @ cho_solve((low, True), y)
    v = solve_triangular(low, cross, lower=True)
    variance = jnp.exp(2 * params["log_scale"]) - jnp.sum(v**2, axis=0)
    return mean, jnp.sqrt(variance)


@lamina.jit
def fit(params, x, y):
    """Adam on the negative evidence, 150 steps; also the evidence at each."""
    objective = lamina.value_and_grad(lambda p: -log_evidence(p, x, y))
    zeros = lamina.tree.map(jnp.zeros_like, params)

    def step(state, t):
        p, m, v = state
        value, g = objective(p)
        m = lamina.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = lamina.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        scale = jnp.sqrt(1 - 0.99**t) / (1 - 0.9**t)
        p = lamina.tree.map(lambda p, m, v: p - 0.05 * scale * m / (jnp.sqrt(v) + 1e-8), p, m, v)
        return (p, m, v), -value

    (params, _, _), evidence = lax.scan(step, (params, zeros, zeros), jnp.arange(1.0, 151.0))
    return params, evidence


def main(count=40, seed=0):
    k1, k2 = random.split(random.key(seed))
    x = random.uniform(k1, (count,), minval=-4, maxval=4)
    y = jnp.sin(2 * x) + 0.5 * x + 0.2 * random.normal(k2, (count,))
    start = {"log_length": jnp.zeros(()), "log_scale": jnp.zeros(()), "log_noise": jnp.zeros(())}
    params, evidence = fit(start, x, y)
    at = jnp.linspace(-4, 4, 65)
    mean, deviation = lamina.jit(predict)(params, x, y, at)
    truth = jnp.sin(2 * at) + 0.5 * at
    return {**params, "evidence": evidence, "x": x, "y": y, "at": at, "mean": mean,
            "deviation": deviation, "error": jnp.sqrt(jnp.mean((mean - truth) ** 2)),
            "covered": jnp.mean(jnp.abs(mean - truth) < 2 * deviation)}  # fmt: skip


if __name__ == "__main__":
    result = lamina.device_get(main())
    for name in ("length", "scale", "noise"):
        print(f"{name:6} {jnp.exp(result['log_' + name]):.3f}")
    print(f"log evidence {result['evidence'][0]:.1f} -> {result['evidence'][-1]:.1f}")
    print(f"error {result['error']:.3f}; {result['covered']:.0%} of the function lies within two "
          "standard deviations")  # fmt: skip
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        at, mean, band = result["at"], result["mean"], 2 * result["deviation"]
        plt.fill_between(at, mean - band, mean + band, alpha=0.3)
        plt.plot(at, mean, result["x"], result["y"], "o")
        plt.show()
