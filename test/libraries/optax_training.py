"""optax: optimisers of many kinds, clipping, accumulation over steps, schedules, losses."""

import json

import jax
import jax.numpy as jnp
import optax

KEY = jax.random.key(0)
X = jax.random.normal(KEY, (64, 8))
Y = jnp.tanh(X @ (jnp.arange(8.0) / 8)) + 0.1


def start():
    first, last = jax.random.split(KEY, 2)
    return {
        "in": jax.random.normal(first, (8, 16)) / 3,
        "shift": jnp.zeros(16),
        "out": jax.random.normal(last, (16,)) / 4,
    }


def loss(params):
    hidden = jnp.tanh(X @ params["in"] + params["shift"])
    return optax.losses.huber_loss(hidden @ params["out"], Y).mean()


def last_loss(optimiser, steps=20):
    optimiser = optax.with_extra_args_support(optimiser)

    @jax.jit
    def step(params, state):
        value, grad = jax.value_and_grad(loss)(params)
        updates, state = optimiser.update(grad, state, params, value=value, grad=grad, value_fn=loss)
        return optax.apply_updates(params, updates), state, value

    params = start()
    state = optimiser.init(params)
    for _ in range(steps):
        params, state, value = step(params, state)
    return float(value)


logits, labels = jax.random.normal(KEY, (6, 5)), jnp.arange(6) % 5
frames = jax.random.normal(KEY, (2, 10, 6))
words = jnp.array([[1, 2, 3], [2, 2, 4]])
print(json.dumps({
    "adamw": last_loss(optax.adamw(optax.cosine_decay_schedule(1e-2, 20))),
    "sgd": last_loss(optax.sgd(0.1, momentum=0.9, nesterov=True)),
    "lion": last_loss(optax.lion(1e-3)),
    "adafactor": last_loss(optax.adafactor(1e-2)),
    "lamb": last_loss(optax.lamb(1e-2)),
    "clipped": last_loss(optax.chain(
        optax.clip_by_global_norm(0.1), optax.scale_by_adam(), optax.add_decayed_weights(1e-4),
        optax.scale_by_learning_rate(1e-2),
    )),
    "every fourth step": last_loss(optax.MultiSteps(optax.adam(1e-2), 4).gradient_transformation()),
    "if finite": last_loss(optax.apply_if_finite(optax.adabelief(1e-2), 3)),
    "muon": last_loss(optax.contrib.muon(1e-2)),
    "lbfgs": last_loss(optax.lbfgs()),
    "schedule free": last_loss(optax.contrib.schedule_free_adamw(1e-2)),
    "cross entropy": optax.softmax_cross_entropy_with_integer_labels(logits, labels).tolist(),
    "ctc": optax.ctc_loss(frames, jnp.zeros((2, 10)), words, jnp.zeros((2, 3))).tolist(),
}))  # fmt: skip
