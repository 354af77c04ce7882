"""jaxopt: L-BFGS, proximal gradients, Gauss-Newton, a root by bisection, their implicit derivatives."""

import json

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

rng = np.random.default_rng(0)
a, y = jnp.asarray(rng.standard_normal((20, 4)), jnp.float32), jnp.asarray(rng.standard_normal(20), jnp.float32)


def ridge(w, penalty):
    return jnp.mean((a @ w - y) ** 2) + penalty * jnp.sum(w**2)


def best(penalty):
    return jaxopt.LBFGS(ridge, maxiter=100, tol=1e-5).run(jnp.zeros(4), penalty).params


# With a line search, the last bits of the loss decide where it stops: in float32 by a half percent of the result.
lasso = jaxopt.ProximalGradient(
    lambda w, data: jnp.mean((data[0] @ w - data[1]) ** 2), jaxopt.prox.prox_lasso, stepsize=0.2, tol=1e-5
)
curve = jaxopt.LevenbergMarquardt(lambda w: jnp.exp(w[0] * jnp.arange(5.0)) - w[1] * jnp.arange(5.0) - 1.0)
root = jaxopt.Bisection(lambda x, c: x**3 - c, 0.0, 4.0, check_bracket=False)
box = jaxopt.ProjectedGradient(ridge, jaxopt.projection.projection_box)
print(json.dumps({
    "ridge": best(0.1).tolist(), "its derivative": jax.jacobian(best)(0.1).tolist(),
    "lasso": lasso.run(jnp.zeros(4), hyperparams_prox=0.1, data=(a, y)).params.tolist(),
    "fit": curve.run(jnp.array([0.3, 0.5])).params.tolist(),
    "root": float(root.run(None, 5.0).params), "its slope": float(jax.grad(lambda c: root.run(None, c).params)(5.0)),
    "in a box": box.run(jnp.zeros(4), (-0.1, 0.1), penalty=0.1).params.tolist(),
    "simplex": jaxopt.projection.projection_simplex(jnp.arange(4.0)).tolist(),
}))  # fmt: skip
