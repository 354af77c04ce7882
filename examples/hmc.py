"""Hamiltonian Monte Carlo: samples the posterior of a logistic regression with four chains.

    python examples/hmc.py

Each proposal follows the leapfrog integrator of Neal (2011), whose forces are gradients of the log
density. A chain is a scan, the chains are a vmap, and the whole sampler is one compiled program.
"""

import functools

import lamina
import lamina.numpy as jnp
from lamina import lax, random

TRUE_WEIGHTS = jnp.array([1.0, -2.0, 0.5])


def make_data(key, count):
    """Points with a constant feature, and labels drawn from the true model."""
    k1, k2 = random.split(key)
    x = random.normal(k1, (count, 3)).at[:, 0].set(1.0)
    return x, random.bernoulli(k2, lamina.nn.sigmoid(x @ TRUE_WEIGHTS))


def log_density(weights, x, y):
    """Log posterior up to a constant: Bernoulli likelihood, normal prior."""
    scores = x @ weights
    return jnp.sum(y * scores - lamina.nn.softplus(scores)) - jnp.sum(weights**2) / 8


def leapfrog(force, position, momentum, step_size, steps):
    """Follows the dynamics for some steps: reversible, keeps volume."""

    def step(_, state):
        q, p = state
        p = p + step_size / 2 * force(q)
        q = q + step_size * p
        return q, p + step_size / 2 * force(q)

    return lax.fori_loop(0, steps, step, (position, momentum))


def chain(key, start, log_prob, draws, step_size=0.08, steps=7):
    """Draws of one chain, and how many proposals were accepted."""
    force = lamina.grad(log_prob)

    def draw(q, key):
        k1, k2 = random.split(key)
        p = random.normal(k1, q.shape)
        new_q, new_p = leapfrog(force, q, p, step_size, steps)
        gain = log_prob(new_q) - log_prob(q) + (p @ p - new_p @ new_p) / 2
        accepted = jnp.log(random.uniform(k2)) < gain
        q = jnp.where(accepted, new_q, q)
        return q, (q, accepted)

    _, (samples, accepted) = lax.scan(draw, start, random.split(key, draws))
    return samples, jnp.mean(accepted)


def spread_between_chains(samples):
    """Gelman and Rubin's R-hat of each weight: 1 where the chains agree."""
    n = samples.shape[1]
    within = jnp.mean(jnp.var(samples, axis=1, ddof=1), axis=0)
    between = jnp.var(jnp.mean(samples, axis=1), axis=0, ddof=1)
    return jnp.sqrt((n - 1) / n + between / within)


@functools.partial(lamina.jit, static_argnums=(1, 2, 3))
def run(key, count, chains, draws):
    """Data, the chains, and what they say about the weights."""
    k1, k2, k3 = random.split(key, 3)
    x, y = make_data(k1, count)
    log_prob = functools.partial(log_density, x=x, y=y)
    starts = random.normal(k2, (chains, 3))
    samples, accepted = lamina.vmap(lambda k, s: chain(k, s, log_prob, draws))(
        random.split(k3, chains), starts
    )
    kept = samples[:, draws // 4 :]
    return {
        "mean": jnp.mean(kept, axis=(0, 1)),
        "deviation": jnp.std(kept, axis=(0, 1)),
        "r_hat": spread_between_chains(kept),
        "accepted": jnp.mean(accepted),
    }


def main(count=200, chains=4, draws=200, seed=0):
    return run(random.key(seed), count, chains, draws)


if __name__ == "__main__":
    result = lamina.device_get(main())
    print(f"accepted {result['accepted']:.0%} of the proposals")
    for i, true in enumerate(TRUE_WEIGHTS):
        print(f"weight {i}: {result['mean'][i]:6.3f} +- {result['deviation'][i]:.3f}, "
              f"true {true:.1f}, R-hat {result['r_hat'][i]:.3f}")  # fmt: skip
