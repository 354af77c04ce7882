"""Long loops that do not need each other run at the same time, and give what they give alone."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

STEPS, WIDTH = 400, 48


def recurrent(weights, rows):
    def step(state, row):
        state = jnp.tanh(row @ weights + state @ weights.T)
        return state, state.sum(-1)

    return lamina.lax.scan(step, jnp.zeros(rows.shape[1:]), rows)


def two_directions(first, second, rows):
    end, ahead = recurrent(first, rows)
    other_end, back = recurrent(second, rows[::-1])
    return end + other_end, ahead, back[::-1]


def arguments(shape):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(2, WIDTH, WIDTH)).astype(np.float32) / WIDTH
    return *weights, rng.normal(size=(STEPS, *shape, WIDTH)).astype(np.float32)


def expected(weights, rows):
    state, sums = np.zeros(rows.shape[1:]), []
    for row in rows:
        state = np.tanh(row @ weights.astype(float) + state @ weights.T)
        sums.append(state.sum(-1))
    return state, np.array(sums)


def teams(f, *args):
    text = lamina.jit(f).lower(*args).compile().as_text("planned")
    return text.count("lamina.team")


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(), (40,)])  # on the stack, and in scratch memory of its own
def test_two_directions(shape, threads):
    first, second, rows = arguments(shape)
    assert teams(two_directions, first, second, rows) == 2
    with lamina.num_threads(threads):
        found = [lamina.jit(two_directions)(first, second, rows) for _ in range(5)]
    end, ahead = expected(first, rows)
    other_end, back = expected(second, rows[::-1])
    for end_found, ahead_found, back_found in found:
        np.testing.assert_allclose(end_found, end + other_end, atol=1e-4)
        np.testing.assert_allclose(ahead_found, ahead, atol=1e-4)
        np.testing.assert_allclose(back_found, back[::-1], atol=1e-4)


def test_loops_in_a_loop():
    """What the outer loop carries is overwritten by one and read by both."""
    first, second, rows = arguments((40,))

    def both(rows):
        def body(_, rows):
            end, ahead, back = two_directions(first, second, rows)
            return rows + 0.01 * (ahead + back)[..., None] + end

        return lamina.lax.fori_loop(0, 3, body, rows)

    want = rows.astype(float)
    for _ in range(3):
        (end, ahead), (other_end, back) = (expected(first, want), expected(second, want[::-1]))
        want = want + 0.01 * (ahead + back[::-1])[..., None] + end + other_end
    np.testing.assert_allclose(lamina.jit(both)(rows), want, rtol=1e-3, atol=1e-3)


def test_one_after_the_other_is_no_team():
    first, second, rows = arguments(())

    def chain(rows):
        _, sums = recurrent(first, rows)
        return recurrent(second, rows * sums[:, None])

    assert teams(chain, rows) == 0


def test_gradients_of_both_directions():
    first, second, rows = arguments(())
    loss = partial(lambda rows, first, second: two_directions(first, second, rows)[0].sum(), rows)
    given = lamina.jit(lamina.grad(loss, (0, 1)))(first, second)
    for number, weights in enumerate((first, second)):
        alone = lamina.grad(
            lambda w, n=number: recurrent(w, rows[:: 1 - 2 * n])[0].sum()
        )(weights)
        np.testing.assert_allclose(given[number], alone, rtol=1e-4, atol=1e-5)
