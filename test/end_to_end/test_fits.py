"""What stands on linear algebra elsewhere: fits and roots of polynomials, mean rotations."""

import importlib

import numpy as np
import pytest
from support.oracle.judge import check, check_all

RNG = np.random.default_rng(1)
X = np.linspace(-1, 2, 9).astype(np.float32)
Y = (X**3 - 2 * X + 0.5 + 0.01 * RNG.standard_normal(9)).astype(np.float32)
Q = RNG.standard_normal((5, 4)).astype(np.float32)


def test_polynomials_and_rotations():
    def program(m, x, y, q):
        n = m.np
        rotation = importlib.import_module(f"{m.name}.scipy.spatial.transform").Rotation

        def roots(*coefficients):
            z = n.roots(n.asarray(coefficients) + 0 * x[0], strip_zeros=False)
            return n.sort(n.abs(z))

        return {
            "fit": n.polyfit(x, y, 3), "weighted": n.polyfit(x, y, 2, w=n.abs(y)),
            "covariance": n.polyfit(x, y, 2, cov=True), "unscaled": n.polyfit(x, y, 2, cov="unscaled"),
            "full": n.polyfit(x, y, 2, full=True)[:1], "rcond": n.polyfit(x, y, 3, rcond=1e-3),
            "of columns": n.polyfit(x, n.stack([y, 2 * y], 1), 2),
            "gradient": m.grad(lambda v: n.sum(n.polyfit(x, v, 2) ** 2))(y),
            "of a matrix": n.poly(y.reshape(3, 3)), "of roots": n.poly(y[:4]),
            "roots": roots(1.0, -6.0, 11.0, -6.0), "leading zero": roots(0.0, 1.0, -6.0, 11.0, -6.0),
            "mean": rotation.from_quat(q).mean().as_matrix(),
            "weighted mean": rotation.from_quat(q).mean(x[-5:] + 2).as_matrix(),
        }  # fmt: skip

    check_all(program, X, Y, Q, jit=True, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("coefficients", [[0.0, 0, 1, -3, 2, 0, 0], [1.0, 2], [0.0, 0], [3.0]])
def test_zeros_at_the_ends_are_stripped(coefficients):
    check(lambda m: m.np.sort(m.np.abs(m.np.roots(m.np.asarray(coefficients)))), rtol=1e-3)
