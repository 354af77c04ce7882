"""Tracks a moving point from noisy positions: a Kalman filter by scan, its smoother by a scan
backwards, and the noise levels learned from the gradient of the likelihood.

    python examples/kalman.py [--plot]
"""

import sys

import lamina
import lamina.numpy as jnp
from lamina import lax, random

DT = 0.1
MOVE = jnp.array([[1, 0, DT, 0], [0, 1, 0, DT], [0, 0, 1, 0], [0, 0, 0, 1]])  # x, y and speeds
SEE = jnp.eye(2, 4)


def noise(log_levels):
    """Covariances of a step and of an observation, from the logs of two standard deviations."""
    push, blur = jnp.exp(2 * log_levels)
    gain = jnp.array([[DT**2 / 2, 0], [0, DT**2 / 2], [DT, 0], [0, DT]])
    return push * gain @ gain.T, blur * jnp.eye(2)


def simulate(key, steps, log_levels):
    """A path of states, and what was seen of it."""
    push, blur = jnp.exp(log_levels)
    k1, k2 = random.split(key)
    kicks = push * random.normal(k1, (steps, 2))

    def step(state, kick):
        state = MOVE @ state + jnp.concatenate([kick * DT**2 / 2, kick * DT])
        return state, state

    _, path = lax.scan(step, jnp.array([0.0, 0.0, 1.0, 0.5]), kicks)
    return path, path[:, :2] + blur * random.normal(k2, (steps, 2))


def kalman_filter(log_levels, seen):
    """Means and covariances before and after each observation, and the log-likelihood of all."""
    q, r = noise(log_levels)

    def step(carry, z):
        mean, cov = carry
        prior = MOVE @ mean, MOVE @ cov @ MOVE.T + q
        mean, cov = prior
        surprise = z - SEE @ mean
        s = SEE @ cov @ SEE.T + r
        gain = jnp.linalg.solve(s, SEE @ cov).T
        _, logdet = jnp.linalg.slogdet(2 * jnp.pi * s)
        score = -0.5 * (surprise @ jnp.linalg.solve(s, surprise) + logdet)
        after = mean + gain @ surprise, cov - gain @ SEE @ cov
        return after, (*prior, *after, score)

    _, (*beliefs, scores) = lax.scan(step, (jnp.zeros(4), jnp.eye(4)), seen)
    return beliefs, jnp.sum(scores)


def smooth(beliefs):
    """The Rauch-Tung-Striebel smoother: means that know the future, too."""
    prior_means, prior_covs, means, covs = beliefs

    def step(later, now):
        mean, cov, next_prior_mean, next_prior_cov = now
        back = jnp.linalg.solve(next_prior_cov, MOVE @ cov).T
        mean = mean + back @ (later - next_prior_mean)
        return mean, mean

    _, path = lax.scan(
        step, means[-1], (means[:-1], covs[:-1], prior_means[1:], prior_covs[1:]), reverse=True
    )
    return jnp.concatenate([path, means[-1:]])


@lamina.jit
def learn_noise(log_levels, seen):
    """Gradient ascent on the likelihood, 40 steps."""
    score = lamina.value_and_grad(lambda p: kalman_filter(p, seen)[1] / len(seen))

    def step(p, _):
        value, slope = score(p)
        return p + 0.3 * slope, value

    return lax.scan(step, log_levels, None, length=40)


def error(path, truth):
    """Root mean square distance of positions."""
    return jnp.sqrt(jnp.mean(jnp.sum((path[:, :2] - truth[:, :2]) ** 2, axis=1)))


@lamina.jit
def track(log_levels, seen, truth):
    """The smoothed path, and the errors of what was seen, filtered and smoothed."""
    beliefs, _ = kalman_filter(log_levels, seen)
    path = smooth(beliefs)
    return path, error(seen, truth), error(beliefs[2], truth), error(path, truth)


def main(steps=120, seed=0):
    true_levels = jnp.log(jnp.array([1.0, 0.3]))
    truth, seen = lamina.jit(simulate, static_argnums=1)(random.key(seed), steps, true_levels)
    levels, scores = learn_noise(jnp.zeros(2), seen)
    path, raw, filtered, smoothed = track(levels, seen, truth)
    return {"levels": jnp.exp(levels), "scores": scores, "truth": truth, "seen": seen,
            "path": path, "raw": raw, "filtered": filtered, "smoothed": smoothed}  # fmt: skip


if __name__ == "__main__":
    result = lamina.device_get(main())
    push, blur = result["levels"]
    print(f"learned noise: push {push:.2f} (true 1.00), blur {blur:.2f} (true 0.30)")
    print(f"error of position: seen {result['raw']:.3f}, filtered {result['filtered']:.3f}, "
          f"smoothed {result['smoothed']:.3f}")  # fmt: skip
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.plot(*result["seen"].T, "x", *result["truth"][:, :2].T, *result["path"][:, :2].T)
        plt.show()
