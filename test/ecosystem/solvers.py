"""diffrax, lineax, optimistix: an adaptive ODE solver and its adjoint, linear systems, roots."""

import json

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import lineax
import optimistix


def solve(a):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, a: -a * y),
        diffrax.Tsit5(),
        0.0,
        1.0,
        0.1,
        jnp.asarray(1.0),
        args=a,
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6),
        saveat=diffrax.SaveAt(ts=jnp.linspace(0, 1, 5)),
    ).ys


value, pullback = jax.vjp(solve, 2.0)
matrix, b = jr.normal(jr.key(0), (4, 4)), jnp.arange(4.0)
positive = lineax.MatrixLinearOperator(
    matrix @ matrix.T + jnp.eye(4), lineax.positive_semidefinite_tag
)
minimum = optimistix.minimise(
    lambda x, a: jnp.sum((x - a) ** 2), optimistix.BFGS(1e-5, 1e-5), jnp.zeros(3), jnp.arange(3.0)
)
root = optimistix.root_find(
    lambda y, a: jnp.tanh(y) - 0.5, optimistix.Newton(1e-6, 1e-6), jnp.asarray(0.1)
)
results = {
    "ode": value.tolist(),
    "adjoint": float(pullback(jnp.ones(5))[0]),
    "lu": lineax.linear_solve(lineax.MatrixLinearOperator(matrix), b).value.tolist(),
    "cg": lineax.linear_solve(positive, b, lineax.CG(1e-5, 1e-5)).value.tolist(),
    "minimum": minimum.value.tolist(),
    "root": float(root.value),
}
print(json.dumps(results))
