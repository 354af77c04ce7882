"""Functions of lamina.numpy under grad, vmap and both, against JAX."""

import numpy as np
import pytest
from support.oracle.judge import check_all

X = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32)
W = np.random.default_rng(4).normal(size=(3, 4)).astype(np.float32)
I = np.array([[1, 0, 3], [2, 2, 1], [0, 3, -1]])  # noqa: E741

# Functions of a vector (or of a row of each of two matrices).
VECTOR = {
    "sum": lambda m, x: m.np.sum(x), "mean": lambda m, x: m.np.mean(x), "var": lambda m, x: m.np.var(x),
    "std": lambda m, x: m.np.std(x), "max": lambda m, x: m.np.max(x), "prod": lambda m, x: m.np.prod(x),
    "ptp": lambda m, x: m.np.ptp(x), "cumsum": lambda m, x: m.np.cumsum(x), "cumprod": lambda m, x: m.np.cumprod(x),
    "sort": lambda m, x: m.np.sort(x), "sort down": lambda m, x: m.np.sort(x, descending=True),
    "median": lambda m, x: m.np.median(x), "quantile": lambda m, x: m.np.quantile(x, 0.3),
    "clip": lambda m, x: m.np.clip(x, -0.5, 0.5), "where": lambda m, x: m.np.where(x > 0, m.np.exp(x), x),
    "power": lambda m, x: m.np.abs(x) ** 1.5, "square": lambda m, x: x**2, "mod": lambda m, x: x % 0.7,
    "floor_divide": lambda m, x: x // 0.3 + x, "slices": lambda m, x: x[1:] - x[:-1],
    "reverse": lambda m, x: x[::-1] * x,
    "pad": lambda m, x: m.np.pad(x, 2, "reflect") ** 2, "roll": lambda m, x: m.np.roll(x, 1) * x,
    "diff": lambda m, x: m.np.diff(x), "outer": lambda m, x: m.np.outer(x, x),
    "diag": lambda m, x: m.np.diag(x),
    "tile": lambda m, x: m.np.tile(x, 2) * 2, "repeat": lambda m, x: m.np.repeat(x, 2),
    "flip": lambda m, x: m.np.flip(x),
    "concatenate": lambda m, x: m.np.concatenate([x, 2 * x]), "stack": lambda m, x: m.np.stack([x, x * x], 1),
    "split": lambda m, x: m.np.split(x, 2)[1], "set": lambda m, x: x.at[1].set(x[0] * 2),
    "add": lambda m, x: x.at[1:3].add(x[0]), "scatter": lambda m, x: x.at[m.np.asarray([0, 0, 2])].add(x[:3]),
    "softmax": lambda m, x: m.module.nn.softmax(x), "logsumexp": lambda m, x: m.module.nn.logsumexp(x),
    "log_softmax": lambda m, x: m.module.nn.log_softmax(x), "gelu": lambda m, x: m.module.nn.gelu(x),
    "nan_to_num": lambda m, x: m.np.nan_to_num(x), "interp": lambda m, x: m.np.interp(0.3, m.np.sort(x), x),
    "average": lambda m, x: m.np.average(x, weights=m.np.arange(4.0)), "hypot": lambda m, x: m.np.hypot(x, 2.0),
    "einsum": lambda m, x: m.np.einsum("i,j,i->j", x, x, x), "norm": lambda m, x: m.np.sqrt(m.np.vdot(x, x)),
    "histogram": lambda m, x: m.np.trapezoid(x, dx=0.5), "sinc": lambda m, x: m.np.sinc(x),
}  # fmt: skip
PAIRS = {
    "matmul": lambda m, x, w: m.np.matmul(x, w), "arctan2": lambda m, x, w: m.np.arctan2(x, w),
    "maximum": lambda m, x, w: m.np.maximum(x, w), "logaddexp": lambda m, x, w: m.np.logaddexp(x, w),
    "where": lambda m, x, w: m.np.where(x > w, x * w, w), "kron": lambda m, x, w: m.np.kron(x, w),
    "cross": lambda m, x, w: m.np.cross(x[:3], w[1:]), "convolve": lambda m, x, w: m.np.convolve(x, w),
    "tensordot": lambda m, x, w: m.np.tensordot(x, w, 0), "divide": lambda m, x, w: x / (w * w + 1),
}  # fmt: skip


def _scalar(m, f):
    return lambda *a: m.np.sum(m.np.sin(f(m, *a)))


@pytest.mark.parametrize("names", [list(VECTOR)[i::4] for i in range(4)], ids=range(4))
def test_functions_of_a_vector(names):
    def program(m, x):
        out = {}
        for n in names:
            f = VECTOR[n]
            out[n, "vmap"] = m.vmap(lambda v, f=f: f(m, v))(x)
            out[n, "vmap of grad"] = m.vmap(m.grad(_scalar(m, f)), in_axes=1, out_axes=1)(x.T)
        return out

    check_all(program, X, jit=True, rtol=2e-4, atol=2e-5)


def test_functions_of_two_vectors():
    def program(m, x, w):
        out = {}
        for n, f in PAIRS.items():
            out[n, "grad"] = m.grad(_scalar(m, f), (0, 1))(x[0], w[0])
            out[n, "vmap"] = m.vmap(lambda u, v, f=f: f(m, u, v))(x, w)
            out[n, "one side"] = m.vmap(lambda u, v, f=f: f(m, u, v), in_axes=(None, 0))(x[0], w)
        return out

    check_all(program, X, W, jit=True, rtol=2e-4, atol=2e-5)


def test_indices_of_each_row():
    def program(m, x, i):
        take = m.vmap(lambda v, k: m.np.take(v, k))
        return {
            "take": take(x, i), "index": m.vmap(lambda v, k: v[k])(x, i),
            "along": m.vmap(lambda v, k: m.np.take_along_axis(v, k, 0))(x, i),
            "scalar": m.vmap(lambda v, k: v[k[0]] * v[k[1]])(x, i),
            "set": m.vmap(lambda v, k: v.at[k[0]].set(9.0))(x, i), "add": m.vmap(lambda v, k: v.at[k].add(1.0))(x, i),
            "one table": m.vmap(lambda k: m.np.asarray(x)[0][k])(i), "columns": m.vmap(lambda k: x[:, k])(i),
            "searchsorted": m.vmap(lambda v, k: m.np.searchsorted(m.np.sort(v), 0.1 * k))(x, i),
            "one_hot": m.vmap(lambda k: m.module.nn.one_hot(k, 4))(i), "argsort": m.vmap(m.np.argsort)(x),
            "argmax": m.vmap(m.np.argmax)(x), "nonzero": m.vmap(lambda v: m.np.nonzero(v > 0, size=3)[0])(x),
            "grad": m.grad(lambda v: m.np.sum(take(v, i) ** 2))(x),
            "unique": m.vmap(lambda k: m.np.unique(k, size=3))(i),
        }  # fmt: skip

    check_all(program, X, I, jit=True, rtol=1e-5)


def test_second_derivatives():
    def program(m, x):
        return {
            n: m.hessian(_scalar(m, VECTOR[n]))(x)
            for n in ("var", "softmax", "cumprod", "logsumexp", "gelu", "power", "sinc")
        }  # fmt: skip

    check_all(program, X[0], jit=True, rtol=1e-3, atol=1e-4)
