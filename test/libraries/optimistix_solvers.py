"""optimistix: roots, minima, least squares, fixed points, and slopes through them; lineax's solvers below."""

import json

import jax
import jax.numpy as jnp
import lineax
import optimistix

NEAR = (1e-6, 1e-6)
T = jnp.linspace(0, 1, 20)
DATA = 2 * jnp.exp(-1.5 * T) + 0.3
SQUARE = jax.random.normal(jax.random.key(0), (6, 6))
POSITIVE = SQUARE @ SQUARE.T + jnp.eye(6)


def _curves(y, height):
    return jnp.stack([y[0] ** 2 + y[1] - height, jnp.exp(y[0]) - y[1] - 0.2])


def _valley(y, args):
    return (1 - y[0]) ** 2 + 10 * (y[1] - y[0] ** 2) ** 2


def root(solver, height=1.3):
    return optimistix.root_find(_curves, solver(*NEAR), jnp.array([0.5, 0.5]), args=height).value


def lowest(solver):
    return optimistix.minimise(
        _valley, solver(1e-5, 1e-5), jnp.array([-0.5, 0.7]), max_steps=4000, throw=False
    ).value.tolist()


def fitted(solver):
    start = jnp.array([1.0, 1.0, 0.0])
    return optimistix.least_squares(
        lambda p, args: p[0] * jnp.exp(-p[1] * T) + p[2] - DATA, solver(*NEAR), start
    ).value.tolist()


def fixed(slope):
    solver = optimistix.FixedPointIteration(*NEAR)
    return optimistix.fixed_point(lambda y, slope: jnp.cos(y) * slope, solver, 0.5, args=slope).value


def cube_root(x):
    between = {"lower": 0.0, "upper": 4.0}
    solver = optimistix.Bisection(1e-5, 1e-5)
    return optimistix.root_find(lambda y, args: y**3 - x, solver, 1.0, options=between).value


def solved(matrix, solver, *tags):
    return of(lineax.MatrixLinearOperator(matrix, *tags), solver)


def of(operator, solver):
    return lineax.linear_solve(operator, jnp.arange(6.0), solver).value.tolist()


positive = lineax.positive_semidefinite_tag
bands = lineax.TridiagonalLinearOperator(jnp.full(6, 4.0), jnp.ones(5), jnp.ones(5))
print(json.dumps({
    "newton": root(optimistix.Newton).tolist(), "dogleg": root(optimistix.Dogleg).tolist(),
    "its slope": jax.jacrev(lambda height: root(optimistix.Newton, height))(1.3).tolist(),
    "bfgs": lowest(optimistix.BFGS), "simplex": lowest(optimistix.NelderMead),
    "levenberg": fitted(optimistix.LevenbergMarquardt), "gauss": fitted(optimistix.GaussNewton),
    "fixed": [float(fixed(0.9)), float(jax.grad(fixed)(0.9))],
    "bisection": jax.vmap(cube_root)(jnp.arange(1.0, 5.0)).tolist(),
    "lu": solved(SQUARE, lineax.LU()), "qr": solved(SQUARE[:, :4], lineax.QR()),
    "svd": solved(SQUARE, lineax.SVD()), "cholesky": solved(POSITIVE, lineax.Cholesky(), positive),
    "cg": solved(POSITIVE, lineax.CG(*NEAR), positive), "gmres": solved(POSITIVE, lineax.GMRES(1e-5, 1e-5)),
    "tridiagonal": of(bands, lineax.Tridiagonal()),
}))  # fmt: skip
