"""tinygp: Gaussian processes with several kernels, fitted by gradients; quasi-separable solvers."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from tinygp import GaussianProcess, kernels, noise, transforms

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 5, 30))
y = np.sin(3 * x) + 0.1 * rng.normal(size=30)
t = np.linspace(0, 5, 7)


def build(p):
    kernel = jnp.exp(p["amplitude"]) * kernels.ExpSquared(jnp.exp(p["scale"]))
    kernel += 0.1 * kernels.Matern32(2.0) + 0.05 * kernels.ExpSineSquared(scale=1.3, gamma=0.8)
    return GaussianProcess(kernel, x, diag=jnp.exp(p["noise"]), mean=0.1)


@jax.jit
def step(p):
    value, gradient = jax.value_and_grad(lambda p: -build(p).log_probability(y))(p)
    return value, jax.tree.map(lambda a, g: a - 0.005 * g, p, gradient)


params = {"amplitude": jnp.array(0.2), "scale": jnp.array(-0.5), "noise": jnp.array(-2.0)}
losses = []
for _ in range(10):
    value, params = step(params)
    losses.append(float(value))
likelihood, conditioned = build(params).condition(y, t)
quasi = kernels.quasisep.SHO(omega=2.0, quality=3.0) + kernels.quasisep.Matern52(scale=1.5)


@jax.jit
def fast(y):
    process = GaussianProcess(quasi, x, diag=0.1)
    return process.log_probability(y), process.predict(y, t, return_var=True)


autoregressive = kernels.quasisep.CARMA(
    alpha=jnp.array([1.2, 0.7]), beta=jnp.array([0.5, 0.2])
)
two = transforms.Linear(jnp.array([1.0, 0.5]), kernels.ExpSquared())
points = rng.normal(size=(6, 2))
results = {
    "losses": losses,
    "likelihood": likelihood,
    "mean": conditioned.loc,
    "variance": conditioned.variance,
    "drawn": build(params).sample(jax.random.PRNGKey(0), shape=(2,)),
    "quasi-separable": fast(y),
    "its gradient": jax.grad(lambda y: fast(y)[0])(jnp.asarray(y)),
    "autoregressive": GaussianProcess(autoregressive, x, diag=0.1).log_probability(y),
    "by hand": GaussianProcess(two, points, noise=noise.Diagonal(jnp.full(6, 0.2))).covariance,
    "product": (kernels.RationalQuadratic(alpha=1.5) * kernels.Cosine(2.0))(x[:4], x[:3]),
}
print(json.dumps({k: [np.asarray(v).tolist() for v in jax.tree.leaves(r)] for k, r in results.items()}))
