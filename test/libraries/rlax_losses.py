"""rlax: returns, off-policy corrections, losses of value and policy learning, exploration."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import rlax

rng = np.random.default_rng(0)


def draw(*shape):
    return jnp.asarray(rng.normal(size=shape).astype("float32"))


rewards, discounts, values = draw(7), jnp.full(7, 0.9), draw(8)
ratios = jnp.exp(0.3 * draw(7))
q, q_next, actions = draw(5, 4), draw(5, 4), jnp.asarray(rng.integers(0, 4, 5))
r, d = draw(5), jnp.full(5, 0.95)
logits, advantages = draw(7, 3), draw(7)
taken, weights = jnp.asarray(rng.integers(0, 3, 7)), jnp.ones(7)
results = {
    "lambda returns": rlax.lambda_returns(rewards, discounts, values[1:], 0.8),
    "n steps": rlax.n_step_bootstrapped_returns(rewards, discounts, values[1:], 3),
    "advantages": rlax.truncated_generalized_advantage_estimation(rewards, discounts, 0.95, values),
    "v-trace": rlax.vtrace(values[:-1], values[1:], rewards, discounts, ratios, 0.9),
    "td lambda": rlax.td_lambda(values[:-1], rewards, discounts, values[1:], 0.8),
    "q": jax.vmap(rlax.q_learning)(q, actions, r, d, q_next),
    "double q": jax.vmap(rlax.double_q_learning)(q, actions, r, d, q_next, q),
    "sarsa": jax.vmap(rlax.sarsa)(q, actions, r, d, q_next, actions),
    "persistent": jax.vmap(rlax.persistent_q_learning)(q, actions, r, d, q_next, jnp.full(5, 0.5)),
    "policy gradient": rlax.policy_gradient_loss(logits, taken, advantages, weights),
    "its gradient": jax.jit(jax.grad(rlax.policy_gradient_loss))(logits, taken, advantages, weights),
    "entropy": rlax.entropy_loss(logits, weights),
    "clipped": rlax.clipped_surrogate_pg_loss(ratios, advantages, 0.2),
    "huber": rlax.huber_loss(values, 0.5),
    "value transform": rlax.signed_hyperbolic(values),
    "two-hot": rlax.transform_to_2hot(values, -2.0, 2.0, 9),
    "noise": rlax.add_gaussian_noise(jax.random.PRNGKey(0), values, 0.1),
    "epsilon greedy": rlax.epsilon_greedy(0.3).sample(jax.random.PRNGKey(1), q),
    "softmax": rlax.softmax(0.5).logprob(actions, q),
    "projected": rlax.categorical_l2_project(
        jnp.linspace(-1.5, 1.5, 5), jax.nn.softmax(draw(5)), jnp.linspace(-1.0, 1.0, 5)
    ),
    "quantiles": jax.vmap(rlax.quantile_q_learning)(
        draw(5, 6, 4), jnp.tile(jnp.linspace(0.1, 0.9, 6), (5, 1)), actions, r, d, draw(5, 6, 4),
        draw(5, 6, 4),
    ),
}  # fmt: skip
print(json.dumps({k: [np.asarray(x).tolist() for x in jax.tree.leaves(v)] for k, v in results.items()}))
