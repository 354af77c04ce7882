"""tensorflow_probability.substrates.jax: distributions, bijectors, HMC and NUTS, a Gaussian process."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors
key = jax.random.PRNGKey(0)
matrix = jnp.array([[2.0, 0.0], [0.5, 1.0]])
chosen = {
    "normal": tfd.Normal(1.0, 2.0), "gamma": tfd.Gamma(2.0, 3.0), "beta": tfd.Beta(2.0, 3.0),
    "student": tfd.StudentT(4.0, 0.0, 1.0), "poisson": tfd.Poisson(3.0),
    "categorical": tfd.Categorical(logits=jnp.arange(4.0)), "laplace": tfd.Laplace(0.0, 1.0),
    "multivariate": tfd.MultivariateNormalTriL(jnp.ones(2), matrix),
    "dirichlet": tfd.Dirichlet(jnp.array([1.0, 2, 3])), "mises": tfd.VonMises(0.5, 2.0),
    "wishart": tfd.WishartTriL(4, matrix),
    "mixture": tfd.MixtureSameFamily(
        tfd.Categorical(probs=jnp.array([0.3, 0.7])), tfd.Normal(jnp.array([-1.0, 1.0]), 0.5)
    ),
    "flow": tfb.Chain([tfb.Shift(1.0), tfb.Softplus()])(tfd.Logistic(0.0, 1.0)),
    "joint": tfd.JointDistributionSequential(
        [tfd.Exponential(1.0), lambda rate: tfd.Sample(tfd.Normal(0.0, rate), 3)]
    ),
}  # fmt: skip
results = {}
for name, distribution in chosen.items():
    drawn = distribution.sample(seed=key) if name == "joint" else distribution.sample(3, seed=key)
    results[f"drawn {name}"] = [np.asarray(x).tolist() for x in jax.tree.leaves(drawn)]
    results[f"density of {name}"] = np.asarray(jax.jit(distribution.log_prob)(drawn)).tolist()
results["divergence"] = float(tfd.kl_divergence(tfd.Normal(0.0, 1.0), tfd.Normal(1.0, 2.0)))
results["entropy"] = [float(chosen[n].entropy()) for n in ("normal", "gamma", "beta", "categorical")]
results["quantiles"] = tfd.Normal(0.0, 1.0).quantile(jnp.array([0.1, 0.5, 0.9])).tolist()

flow = tfb.Chain([tfb.Exp(), tfb.Scale(2.0), tfb.Tanh()])
x = jnp.linspace(-1.0, 1.0, 5)
results["bijector"] = [
    flow.forward(x).tolist(),
    flow.inverse(flow.forward(x)).tolist(),
    flow.forward_log_det_jacobian(x, event_ndims=0).tolist(),
]
target = chosen["multivariate"].log_prob


def chain(kernel, steps, seed):
    @jax.jit
    def run(seed):
        return tfp.mcmc.sample_chain(
            steps, jnp.zeros(2), kernel=kernel, seed=seed, num_burnin_steps=2,
            trace_fn=lambda _, state: state.is_accepted,
        )  # fmt: skip

    states, accepted = run(seed)
    return [states.tolist(), accepted.tolist()]


results["hmc"] = chain(tfp.mcmc.HamiltonianMonteCarlo(target, 0.3, 4), 6, key)
results["nuts"] = chain(tfp.mcmc.NoUTurnSampler(target, 0.3, max_tree_depth=3), 4, key)
process = tfd.GaussianProcessRegressionModel(
    tfp.math.psd_kernels.ExponentiatedQuadratic(1.0, 0.5),
    index_points=jnp.linspace(-1.0, 1.0, 5)[:, None],
    observation_index_points=jnp.array([[-0.5], [0.2], [0.8]]),
    observations=jnp.array([0.3, -0.1, 0.9]),
    observation_noise_variance=0.1,
)
results["process"] = [process.mean().tolist(), process.stddev().tolist()]
results["gradient"] = jax.grad(
    lambda a: tfd.Gamma(a, 2.0).sample(seed=key) + tfd.Beta(a, 1.0).log_prob(0.3)
)(1.5).tolist()
minimum = tfp.optimizer.lbfgs_minimize(
    jax.value_and_grad(lambda x: ((x - jnp.arange(3.0)) ** 2 * jnp.arange(1, 4.0)).sum()), jnp.ones(3)
)
results["minimum"] = minimum.position.tolist()
results["integral"] = float(
    tfp.math.ode.DormandPrince().solve(lambda t, y: -y, 0.0, 1.0, solution_times=[1.0]).states[0]
)
print(json.dumps(results))
