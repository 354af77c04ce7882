"""numpyro: NUTS on a hierarchical model, SVI with an automatic guide, predictions."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.diagnostics import summary
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, init_to_median, log_likelihood
from numpyro.infer.autoguide import AutoDiagonalNormal

EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12], "float32")
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18], "float32")


def schools(errors, effects=None):
    mean = numpyro.sample("mean", dist.Normal(0, 5))
    spread = numpyro.sample("spread", dist.HalfCauchy(5))
    with numpyro.plate("schools", len(errors)):
        noise = numpyro.sample("noise", dist.Normal(0, 1))
        effect = numpyro.deterministic("effect", mean + spread * noise)
        numpyro.sample("observed", dist.Normal(effect, errors), obs=effects)


# Few steps: chains on two compilers part with the last bit.
chain = MCMC(
    NUTS(schools, init_strategy=init_to_median, max_tree_depth=3),
    num_warmup=3, num_samples=3, progress_bar=False,
)  # fmt: skip
chain.run(jax.random.PRNGKey(0), ERRORS, EFFECTS, extra_fields=("potential_energy",))
few = chain.get_samples()

long = MCMC(NUTS(schools), num_warmup=300, num_samples=700, progress_bar=False)
long.run(jax.random.PRNGKey(1), ERRORS, EFFECTS)
found = summary(long.get_samples(), group_by_chain=False)

x = jnp.linspace(-1, 1, 20)
y = 2 * x + 1 + 0.1 * jax.random.normal(jax.random.PRNGKey(2), (20,))


def line(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 3))
    offset = numpyro.sample("offset", dist.StudentT(4.0, 0, 3))
    sigma = numpyro.sample("sigma", dist.LogNormal(-1, 1))
    numpyro.sample("y", dist.Normal(slope * x + offset, sigma), obs=y)


guide = AutoDiagonalNormal(line)
svi = SVI(line, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
fitted = svi.run(jax.random.PRNGKey(3), 40, x, y, progress_bar=False)
posterior = guide.sample_posterior(jax.random.PRNGKey(4), fitted.params, sample_shape=(6,))
predicted = Predictive(line, posterior)(jax.random.PRNGKey(5), x)["y"]

chosen = {
    "gamma": dist.Gamma(2.0, 3.0), "beta": dist.Beta(2.0, 3.0), "poisson": dist.Poisson(3.0),
    "dirichlet": dist.Dirichlet(jnp.ones(3)), "categorical": dist.Categorical(jnp.ones(4) / 4),
    "lkj": dist.LKJCholesky(3, 2.0), "truncated": dist.TruncatedNormal(0.0, 1.0, low=-1.0, high=2.0),
    "mixture": dist.MixtureSameFamily(
        dist.Categorical(jnp.array([0.3, 0.7])), dist.Normal(jnp.array([-1.0, 1.0]), 0.5)
    ),
    "flow": dist.TransformedDistribution(dist.Normal(0, 1), dist.transforms.ExpTransform()),
}  # fmt: skip
drawn = {name: d.sample(jax.random.PRNGKey(6), (3,)) for name, d in chosen.items()}
results = {f"few {name}": value.tolist() for name, value in few.items()}
results |= {f"drawn {name}": value.tolist() for name, value in drawn.items()}
results |= {f"density of {n}": d.log_prob(drawn[n]).tolist() for n, d in chosen.items()}
results |= {
    "energy": chain.get_extra_fields()["potential_energy"].tolist(),
    "likelihood": log_likelihood(schools, few, ERRORS, EFFECTS)["observed"].tolist(),
    "losses": fitted.losses.tolist(),
    "predicted": predicted.tolist(),
    # Of long chains only what their length settles.
    "rounded": [round(float(found["mean"]["mean"]) / 10), float(found["mean"]["r_hat"]) < 1.05],
}
print(json.dumps(results))
