"""Predators and prey: fits the rates of the Lotka-Volterra equations to noisy counts, by
Levenberg-Marquardt through a scan of Runge-Kutta steps.

    python examples/lotka_volterra.py [--plot]
"""

import sys

import lamina
import lamina.numpy as jnp
from lamina import lax, random

TRUE_RATES = jnp.array([1.1, 0.4, 0.4, 0.1])  # births, hunting, starving, feeding
START = jnp.array([10.0, 5.0])
SPACING, SUBSTEPS = 0.5, 10


def growth(state, rates):
    """How prey and predators change."""
    prey, predators = state
    births, hunting, starving, feeding = rates
    return jnp.stack([births * prey - hunting * prey * predators,
                      feeding * prey * predators - starving * predators])  # fmt: skip


def rk4(f, y, h):
    """One step of the classical Runge-Kutta method."""
    k1 = f(y)
    k2 = f(y + h / 2 * k1)
    k3 = f(y + h / 2 * k2)
    k4 = f(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def simulate(log_rates, count):
    """The populations at equally spaced times."""
    rates = jnp.exp(log_rates)

    def small(_, y):
        return rk4(lambda s: growth(s, rates), y, SPACING / SUBSTEPS)

    def step(y, _):
        return lax.fori_loop(0, SUBSTEPS, small, y), y

    return lax.scan(step, START, None, length=count)[1]


@lamina.jit
def fit(counts, guess):
    """Levenberg-Marquardt on the logs of the counts, 25 rounds: log rates, their costs, their
    covariance."""

    def residuals(p):
        return (jnp.log(simulate(p, len(counts))) - jnp.log(counts)).reshape(-1)

    def cost(p):
        return jnp.sum(residuals(p) ** 2) / 2

    def step(state, _):
        p, damping = state
        r, j = residuals(p), lamina.jacfwd(residuals)(p)
        normal = j.T @ j
        move = jnp.linalg.solve(normal + damping * jnp.diag(jnp.diag(normal)), j.T @ r)
        better = cost(p - move) < cost(p)
        p = jnp.where(better, p - move, p)
        return (p, jnp.where(better, damping / 3, damping * 5)), cost(p)

    (p, _), costs = lax.scan(step, (guess, 0.1), None, length=25)
    j = lamina.jacfwd(residuals)(p)
    variance = 2 * costs[-1] / (2 * len(counts) - 4)
    return p, costs, variance * jnp.linalg.inv(j.T @ j)


def main(count=40, noise=0.1, seed=0):
    clean = lamina.jit(simulate, static_argnums=1)(jnp.log(TRUE_RATES), count)
    counts = clean * jnp.exp(noise * random.normal(random.key(seed), clean.shape))
    p, costs, covariance = fit(counts, jnp.log(jnp.array([0.9, 0.5, 0.5, 0.12])))
    return {"rates": jnp.exp(p), "deviations": jnp.exp(p) * jnp.sqrt(jnp.diag(covariance)),
            "costs": costs, "counts": counts, "clean": clean}  # fmt: skip


if __name__ == "__main__":
    result = lamina.device_get(main())
    names = ("births", "hunting", "starving", "feeding")
    for name, rate, error, true in zip(names, result["rates"], result["deviations"], TRUE_RATES):
        print(f"{name:9} {rate:.4f} +- {error:.4f}, true {true:.1f}")
    print(f"cost {result['costs'][0]:.3f} -> {result['costs'][-1]:.3f}")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.plot(result["clean"], "-")
        plt.plot(result["counts"], "x")
        plt.show()
