"""optax: every optimiser, wrappers and schedules on a small classifier."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
params = {
    "w": jnp.asarray(rng.normal(size=(4, 3)).astype("float32")),
    "b": jnp.asarray(rng.normal(size=3).astype("float32")),
}
X = jnp.asarray(rng.normal(size=(16, 4)).astype("float32"))
Y = jnp.asarray(rng.integers(0, 3, 16))


def loss(p):
    scores = jnp.tanh(X @ p["w"] + p["b"])
    return optax.softmax_cross_entropy_with_integer_labels(scores, Y).mean()


NAMES = (
    "adabelief adafactor adam adamw adan fromage lamb lion nadam novograd noisy_sgd polyak_sgd "
    "radam rmsprop rprop sm3 yogi"
)
optimisers = {name: getattr(optax, name)(1e-2) for name in NAMES.split() if name != "noisy_sgd"}
optimisers |= {
    "noisy_sgd": optax.noisy_sgd(1e-2, key=jax.random.key(0)),
    "lbfgs": optax.lbfgs(),
    "chain": optax.chain(
        optax.clip_by_global_norm(0.1),
        optax.add_decayed_weights(1e-2),
        optax.scale_by_adam(),
        optax.scale_by_schedule(optax.warmup_cosine_decay_schedule(0, 1e-1, 3, 10)),
        optax.scale(-1),
    ),
    "multi_transform": optax.multi_transform(
        {"a": optax.adam(1e-2), "b": optax.sgd(1e-1)}, {"w": "a", "b": "b"}
    ),
    "multi_steps": optax.MultiSteps(optax.adam(1e-1), 3),
    "schedule_free": optax.contrib.schedule_free_adamw(1e-2),
    "muon": optax.contrib.muon(1e-2),
}


@jax.jit
def train(p):
    results = {}
    for name, optimiser in optimisers.items():
        q, state = p, optimiser.init(p)
        for _ in range(2):
            value, gradient = jax.value_and_grad(loss)(q)
            extra = {
                "lbfgs": {"value": value, "grad": gradient, "value_fn": loss},
                "polyak_sgd": {"value": value},
            }.get(name, {})
            updates, state = optimiser.update(gradient, state, q, **extra)
            q = optax.apply_updates(q, updates)
        results[name] = loss(q)
    return results


print(json.dumps({name: float(value) for name, value in train(params).items()}))
