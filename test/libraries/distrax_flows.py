"""distrax: distributions, a coupling flow and its gradient, a hidden Markov model."""

import json

import distrax
import jax
import jax.numpy as jnp
import numpy as np

key = jax.random.PRNGKey(0)
chosen = {
    "normal": distrax.Normal(1.0, 2.0), "gamma": distrax.Gamma(2.0, 3.0),
    "categorical": distrax.Categorical(jnp.arange(4.0)), "bernoulli": distrax.Bernoulli(probs=0.3),
    "uniform": distrax.Uniform(-1.0, 2.0), "gumbel": distrax.Gumbel(0.0, 1.0),
    "diagonal": distrax.MultivariateNormalDiag(jnp.zeros(3), jnp.arange(1.0, 4)),
    "full": distrax.MultivariateNormalFullCovariance(
        jnp.ones(2), jnp.array([[2.0, 0.5], [0.5, 1.0]])
    ),
    "squashed": distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.Tanh()),
    "mixture": distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])),
        distrax.Normal(jnp.array([-1.0, 1.0]), 0.5),
    ),
}  # fmt: skip
results = {}
for name, distribution in chosen.items():
    drawn, density = distribution.sample_and_log_prob(seed=key, sample_shape=(4,))
    results[name] = [np.asarray(drawn).tolist(), np.asarray(density).tolist()]
results["divergence"] = [
    float(distrax.Normal(0.0, 1.0).kl_divergence(chosen["normal"])),
    float(distrax.Categorical(jnp.zeros(4)).kl_divergence(chosen["categorical"])),
]


def flow(params):
    layers = []
    for i, (w, b) in enumerate(params):

        def conditioner(x, w=w, b=b):
            return jnp.tanh(x @ w + b).reshape(*x.shape, 2)

        def affine(p):
            return distrax.ScalarAffine(shift=p[..., 0], log_scale=p[..., 1])

        layers.append(
            distrax.MaskedCoupling(
                mask=jnp.arange(4) % 2 == i % 2, bijector=affine, conditioner=conditioner
            )
        )
    base = distrax.Independent(distrax.Normal(jnp.zeros(4), 1.0), 1)
    return distrax.Transformed(base, distrax.Inverse(distrax.Chain(layers)))


keys = jax.random.split(key, 3)
params = [(0.3 * jax.random.normal(k, (4, 8)), jnp.zeros(8)) for k in keys]
data = jax.random.normal(keys[0], (20, 4)) * 2 + 1


@jax.jit
def step(params):
    value, gradient = jax.value_and_grad(lambda p: -flow(p).log_prob(data).mean())(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)


losses = []
for _ in range(4):
    value, params = step(params)
    losses.append(float(value))
results["flow"] = [losses, flow(params).sample(seed=key, sample_shape=(2,)).tolist()]
spline = distrax.RationalQuadraticSpline(jnp.linspace(-1.0, 1.0, 13), -2.0, 2.0)
results["spline"] = [v.tolist() for v in spline.forward_and_log_det(jnp.linspace(-1.5, 1.5, 5))]
model = distrax.HMM(
    distrax.Categorical(probs=jnp.array([0.6, 0.4])),
    distrax.Categorical(probs=jnp.array([[0.7, 0.3], [0.2, 0.8]])),
    distrax.Normal(jnp.array([-1.0, 1.0]), 1.0),
)
seen = jnp.array([-1.2, -0.5, 0.9, 1.4, 0.2])
results["filtered"] = [np.asarray(v).tolist() for v in model.forward(seen)]
results["path"] = model.viterbi(seen).tolist()
print(json.dumps(results))
