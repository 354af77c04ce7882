"""experimental.rnn: LSTMs against JAX's reference of cuDNN's, and their gradients."""

import jax
import numpy as np
import pytest
from jax.experimental import rnn as jax_rnn

import lamina
import lamina.numpy as jnp
from lamina.experimental import rnn

BATCH, STEPS, INPUT, HIDDEN = 3, 5, 2, 4
LENGTHS = np.array([5, 2, 1], np.int32)


def data(layers: int, bidirectional: bool) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(layers).normal
    states = (layers * (1 + bidirectional), BATCH, HIDDEN)
    count = rnn.get_num_params_in_lstm(INPUT, HIDDEN, layers, bidirectional)
    shapes = ((BATCH, STEPS, INPUT), states, states, (count,))
    return tuple(draw(size=shape).astype(np.float32) for shape in shapes)


@pytest.mark.parametrize(("layers", "bidirectional"), [(1, False), (2, False), (1, True), (3, True)])
def test_lstm_of_ragged_sequences(layers: int, bidirectional: bool) -> None:
    x, h, c, weights = data(layers, bidirectional)
    sizes = (INPUT, HIDDEN, layers, bidirectional)
    assert jax_rnn.get_num_params_in_lstm(*sizes) == len(weights)
    of_jax = jax_rnn.unpack_lstm_weights(weights, *sizes)
    expected = jax_rnn.lstm_ref(x, h, c, *of_jax, LENGTHS, *sizes[:3], 0.0, bidirectional)
    found = rnn.lstm(x, h, c, jnp.asarray(weights), LENGTHS, *sizes[:3], 0.0, bidirectional)
    unpacked = rnn.unpack_lstm_weights(jnp.asarray(weights), *sizes)
    again = rnn.lstm_ref(x, h, c, *unpacked, LENGTHS, *sizes[:3], 0.0, bidirectional)
    for a, b, want in zip(found, again, expected, strict=True):
        np.testing.assert_allclose(a, want, atol=1e-5)
        np.testing.assert_allclose(b, want, atol=1e-5)
    np.testing.assert_array_equal(rnn.swap_lstm_gates(weights, *sizes), jax_rnn.swap_lstm_gates(weights, *sizes))


def test_gradients_of_lstm_by_weights() -> None:
    x, h, c, weights = data(2, True)
    sizes = (INPUT, HIDDEN, 2, True)

    def reference(w):
        parts = jax_rnn.unpack_lstm_weights(w, *sizes)
        return (jax_rnn.lstm_ref(x, h, c, *parts, LENGTHS, *sizes[:3], 0.0, True)[0] ** 2).sum()

    def loss(w):
        return (rnn.lstm(x, h, c, w, LENGTHS, *sizes[:3], 0.0, True)[0] ** 2).sum()

    np.testing.assert_allclose(lamina.jit(lamina.grad(loss))(weights), jax.grad(reference)(weights), atol=1e-4)


def test_what_an_lstm_is_refused() -> None:
    x, h, c, weights = data(1, False)
    w = jnp.asarray(weights)
    with pytest.raises(NotImplementedError, match="dropout must be 0"):
        rnn.lstm(x, h, c, w, LENGTHS, INPUT, HIDDEN, 1, 0.5, False)
    with pytest.raises(NotImplementedError, match="must be int32"):
        rnn.lstm(x, h, c, w, LENGTHS.astype(np.int8), INPUT, HIDDEN, 1, 0.0, False)
    with pytest.raises(ValueError, match="a vector of 128 numbers"):
        rnn.lstm(x, h, c, w[1:], LENGTHS, INPUT, HIDDEN, 1, 0.0, False)
    with pytest.raises(ValueError, match=r"h_0 must have shape \(1, 3, 4\)"):
        rnn.lstm(x, h[:, :1], c, w, LENGTHS, INPUT, HIDDEN, 1, 0.0, False)
    drawn = rnn.init_lstm_weight(lamina.random.key(0), INPUT, HIDDEN, 1, False)
    assert drawn.shape == weights.shape
    assert abs(drawn).max() <= 0.5
