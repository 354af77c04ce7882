"""Logistic regression by Newton's method with the exact hessian, and what it says of each feature.

    python examples/newton_logistic.py

scikit-learn's breast cancer data: 30 measurements of a tumour, benign or not. The inverse of the
hessian at the optimum gives the standard errors (Laplace's approximation).
"""

import functools

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import lax


def load_data():
    """Standardised measurements with a constant, 1 for benign, and the names of the columns."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    x = np.concatenate([np.ones((len(x), 1)), x], axis=1)
    return x.astype(np.float32), data.target.astype(np.float32), ["constant", *data.feature_names]


def loss(w, x, y, ridge):
    """Negative log likelihood of all, with a penalty on all weights but the constant."""
    scores = x @ w
    fit = jnp.sum(lamina.nn.softplus(scores) - y * scores)
    return fit + ridge / 2 * jnp.sum(w[1:] ** 2)


def newton(f, w, tolerance, limit):
    """Newton's method with halved steps where a full one is worse: w, rounds, size of slope."""
    slope, curvature = lamina.grad(f), lamina.hessian(f)

    def moving(state):
        w, rounds = state
        return (jnp.linalg.norm(slope(w)) > tolerance) & (rounds < limit)

    def step(state):
        w, rounds = state
        move = lamina.scipy.linalg.solve(curvature(w), slope(w), assume_a="pos")
        full = f(w)
        share = lax.while_loop(
            lambda s: (f(w - s * move) > full) & (s > 1e-3), lambda s: s / 2, jnp.float32(1)
        )
        return w - share * move, rounds + 1

    w, rounds = lax.while_loop(moving, step, (w, 0))
    return w, rounds, jnp.linalg.norm(slope(w))


@lamina.jit
def fit(x, y, ridge):
    """Weights, their standard errors, rounds, final slope."""
    f = functools.partial(loss, x=x, y=y, ridge=ridge)
    w, rounds, slope = newton(f, jnp.zeros(x.shape[1]), 1e-2, 30)
    errors = jnp.sqrt(jnp.diag(jnp.linalg.inv(lamina.hessian(f)(w))))
    return w, errors, rounds, slope


@lamina.jit
def accuracy(w, x, y):
    return jnp.mean((x @ w > 0) == (y > 0.5))


def main(ridge=1.0, train=400):
    x, y, _ = load_data()
    w, errors, rounds, slope = fit(x[:train], y[:train], ridge)
    top = jnp.argsort(-jnp.abs(w[1:] / errors[1:]))[:5] + 1
    return {"weights": w, "errors": errors, "rounds": rounds, "slope": slope, "top": top,
            "train": accuracy(w, x[:train], y[:train]),
            "test": accuracy(w, x[train:], y[train:])}  # fmt: skip


if __name__ == "__main__":
    result = lamina.device_get(main())
    names = load_data()[2]
    print(f"{result['rounds']} rounds of Newton, slope {result['slope']:.1e} at the end")
    print(f"right: {result['train']:.1%} of the training data, {result['test']:.1%} of the rest")
    for i in result["top"].tolist():
        print(f"{names[i]:24} {result['weights'][i]:6.2f} +- {result['errors'][i]:.2f}")
