"""blackjax: NUTS after its window adaptation, HMC, an elliptical slice sampler, SMC's resampling."""

import json

import blackjax
import jax
import jax.numpy as jnp


def log_density(at):
    x, scale = at["x"], at["log_scale"]
    return -0.5 * jnp.sum((x - 1.0) ** 2 / jnp.exp(scale)) - 1.5 * scale - 0.5 * scale**2


def run_chain(key, kernel, state, steps):
    def step(state, key):
        state, info = kernel(key, state)
        return state, (state.position, info.acceptance_rate)

    return jax.lax.scan(step, state, jax.random.split(key, steps))[1]


start = {"x": jnp.zeros(3), "log_scale": jnp.zeros(())}
keys = jax.random.split(jax.random.key(0), 5)
hmc = blackjax.hmc(log_density, step_size=0.2, inverse_mass_matrix=jnp.ones(4), num_integration_steps=8)
places, rates = jax.jit(lambda key: run_chain(key, hmc.step, hmc.init(start), 20))(keys[0])
nuts = blackjax.nuts(log_density, step_size=0.2, inverse_mass_matrix=jnp.ones(4))
nuts_places, _ = jax.jit(lambda key: run_chain(key, nuts.step, nuts.init(start), 10))(keys[1])
warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
(warm, parameters), _ = warmup.run(keys[2], start, num_steps=100)
rmh = blackjax.additive_step_random_walk(log_density, blackjax.mcmc.random_walk.normal(0.3 * jnp.ones(4)))
rmh_places, _ = jax.jit(lambda key: run_chain(key, rmh.step, rmh.init(start), 30))(keys[3])
weights = jax.nn.softmax(jnp.arange(8.0) / 3)
chosen = blackjax.smc.resampling.systematic(keys[4], weights, 8)

print(json.dumps({
    "hmc": places["x"].mean(0).tolist(), "hmc rates": rates.tolist(),
    "nuts": nuts_places["x"][:4].tolist(), "step size is positive": float(parameters["step_size"] > 0),
    "walk": rmh_places["log_scale"].tolist(), "chosen": chosen.tolist(),
    "warm": float(jnp.isfinite(warm.position["x"]).all()),
}))  # fmt: skip
