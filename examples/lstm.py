"""An LSTM learns to add: a sequence of numbers, two of them marked, and their sum as the answer.

    python examples/lstm.py

The adding problem of Hochreiter and Schmidhuber (1997): what was marked early must be remembered
to the end. The cell runs in a scan, training in a scan around it.
"""

import functools

import lamina
import lamina.numpy as jnp
from lamina import lax, nn, random

HIDDEN = 24


def make_batch(key, count, length):
    """Sequences [count, length, 2] of numbers and marks, and the sums of the marked."""
    k1, k2, k3 = random.split(key, 3)
    numbers = random.uniform(k1, (count, length))
    half = length // 2
    first = random.randint(k2, (count,), 0, half)
    second = random.randint(k3, (count,), half, length)
    marks = nn.one_hot(first, length) + nn.one_hot(second, length)
    return jnp.stack([numbers, marks], axis=-1), jnp.sum(numbers * marks, axis=1)


def init_params(key):
    """Orthogonal recurrent weights; the forget gate starts open."""
    k1, k2, k3 = random.split(key, 3)
    glorot, orthogonal = nn.initializers.glorot_normal(), nn.initializers.orthogonal()
    return {"in": glorot(k1, (2, 4 * HIDDEN)), "again": orthogonal(k2, (HIDDEN, 4 * HIDDEN)),
            "bias": jnp.zeros(4 * HIDDEN).at[HIDDEN : 2 * HIDDEN].set(1.0),
            "out": glorot(k3, (HIDDEN, 1))}  # fmt: skip


def cell(params, state, x):
    """One step of the LSTM for a batch."""
    h, c = state
    gates = x @ params["in"] + h @ params["again"] + params["bias"]
    take, keep, new, show = jnp.split(gates, 4, axis=-1)
    c = nn.sigmoid(keep) * c + nn.sigmoid(take) * jnp.tanh(new)
    return nn.sigmoid(show) * jnp.tanh(c), c


def answer(params, sequences):
    """The sum that the net believes in, for each sequence."""
    zeros = jnp.zeros((len(sequences), HIDDEN))
    (h, _), _ = lax.scan(
        lambda s, x: (cell(params, s, x), None), (zeros, zeros), jnp.swapaxes(sequences, 0, 1)
    )
    return (h @ params["out"])[:, 0] + 1.0


def loss(params, sequences, sums):
    return jnp.mean((answer(params, sequences) - sums) ** 2)


def clip(grads, largest):
    """Gradients scaled down where their norm together is larger than allowed."""
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in lamina.tree.leaves(grads)))
    return lamina.tree.map(lambda g: g * jnp.minimum(1, largest / norm), grads)


@functools.partial(lamina.jit, static_argnums=(1, 2, 3))
def run(key, length, steps, batch):
    """Trains by Adam on fresh sequences; losses, and answers to a few unseen questions."""
    k1, k2, k3 = random.split(key, 3)
    params = init_params(k1)
    zeros = lamina.tree.map(jnp.zeros_like, params)

    def step(state, t):
        p, m, v = state
        value, g = lamina.value_and_grad(loss)(
            p, *make_batch(random.fold_in(k2, t), batch, length)
        )
        g = clip(g, 1.0)
        m = lamina.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = lamina.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        scale = 0.01 * jnp.sqrt(1 - 0.99 ** (t + 1.0)) / (1 - 0.9 ** (t + 1.0))
        p = lamina.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), p, m, v)
        return (p, m, v), value

    (params, _, _), losses = lax.scan(step, (params, zeros, zeros), jnp.arange(steps))
    sequences, sums = make_batch(k3, 256, length)
    answers = answer(params, sequences)
    error = jnp.sqrt(jnp.mean((answers - sums) ** 2))
    return {"losses": losses, "error": error, "sums": sums[:5], "answers": answers[:5]}


def main(length=12, steps=250, batch=32, seed=0):
    return run(random.key(seed), length, steps, batch)


if __name__ == "__main__":
    result = lamina.device_get(main())
    losses = result["losses"]
    print(f"mean loss of the first 20 steps {losses[:20].mean():.4f}, of the last "
          f"{losses[-20:].mean():.4f} (0.167 without memory)")  # fmt: skip
    for true, answer_ in zip(result["sums"], result["answers"]):
        print(f"sum {true:.3f}, answer {answer_:.3f}")
    print(f"error on 256 unseen sequences {result['error']:.3f}")
