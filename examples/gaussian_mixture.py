"""A mixture of Gaussians by expectation maximisation, with full covariances, in log space.

    python examples/gaussian_mixture.py [--plot]
"""

import functools
import sys

import lamina
import lamina.numpy as jnp
from lamina import lax, random
from lamina.nn import logsumexp
from lamina.scipy.linalg import solve_triangular


def make_data(key, count):
    """Points of three long clouds in the plane, and the cloud of each."""
    k1, k2 = random.split(key)
    member = random.categorical(k1, jnp.log(jnp.array([0.5, 0.3, 0.2])), shape=(count,))
    means = jnp.array([[0.0, 0.0], [4.0, 1.0], [-1.0, 4.0]])
    shapes = jnp.array(
        [[[1.0, 0.0], [0.8, 0.5]], [[0.4, 0.0], [0.3, 1.5]], [[1.2, 0.0], [-1.0, 0.4]]]
    )
    z = random.normal(k2, (count, 2))
    return means[member] + jnp.einsum("nij,nj->ni", shapes[member], z), member


def log_joint(mixture, x):
    """log p(point, cloud) for all points and clouds."""
    weights, means, covariances = mixture

    def log_density(mean, covariance):
        low = jnp.linalg.cholesky(covariance)
        z = solve_triangular(low, (x - mean).T, lower=True)
        volume = jnp.sum(jnp.log(jnp.diag(low))) + len(mean) / 2 * jnp.log(2 * jnp.pi)
        return -jnp.sum(z**2, axis=0) / 2 - volume

    return lamina.vmap(log_density)(means, covariances).T + jnp.log(weights)


def maximise(x, shares):
    """The mixture that suits the shares best: weighted means and covariances."""
    sizes = jnp.sum(shares, axis=0)

    def cloud(share, size):
        mean = share @ x / size
        gaps = x - mean
        return mean, (share[:, None] * gaps).T @ gaps / size + 1e-6 * jnp.eye(x.shape[1])

    means, covariances = lamina.vmap(cloud)(shares.T, sizes)
    return sizes / len(x), means, covariances


def em(x, start, rounds):
    """Expectation and maximisation in turn: the mixture, and the mean log likelihood of each."""

    def step(mixture, _):
        joint = log_joint(mixture, x)
        total = logsumexp(joint, axis=1, keepdims=True)
        return maximise(x, jnp.exp(joint - total)), jnp.mean(total)

    return lax.scan(step, start, None, length=rounds)


@functools.partial(lamina.jit, static_argnums=(1, 2, 3))
def run(key, count, starts, rounds):
    """EM from random points of the data; the best of some starts, clouds sorted by weight."""
    k1, k2 = random.split(key)
    x, member = make_data(k1, count)

    def once(key):
        means = random.choice(key, x, (3,), replace=False)
        spread = jnp.broadcast_to(jnp.cov(x, rowvar=False), (3, 2, 2))
        return em(x, (jnp.full(3, 1 / 3), means, spread), rounds)

    mixtures, scores = lamina.vmap(once)(random.split(k2, starts))
    best = jnp.argmax(jnp.round(scores[:, -1], 2))  # of those that found the same the first
    weights, means, covariances = lamina.tree.map(lambda a: a[best], mixtures)
    order = jnp.argsort(-weights)
    mixture = weights[order], means[order], covariances[order]
    guess = jnp.argmax(log_joint(mixture, x), axis=1)
    return {"weights": mixture[0], "means": mixture[1], "covariances": mixture[2],
            "scores": scores[:, -1], "curve": scores[best], "right": jnp.mean(guess == member),
            "x": x}  # fmt: skip


def main(count=500, starts=4, rounds=40, seed=0):
    return run(random.key(seed), count, starts, rounds)


if __name__ == "__main__":
    result = lamina.device_get(main())
    print(f"mean log likelihood of each start: {result['scores'].round(4)}")
    for weight, mean in zip(result["weights"], result["means"]):
        print(f"weight {weight:.3f} around ({mean[0]:5.2f}, {mean[1]:5.2f})")
    print(f"{result['right']:.1%} of the points are given to their cloud")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        plt.plot(*result["x"].T, ".", *result["means"].T, "kx")
        plt.show()
