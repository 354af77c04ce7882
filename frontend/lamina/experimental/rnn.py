"""LSTMs of several layers, by the interface of JAX's cuDNN-backed module, as plain programs on any device.

Weights are one vector, in cuDNN's order: W_ih and W_hh of each pseudo-layer, then b_ih and b_hh of each. A
pseudo-layer is one direction of one layer; in a bidirectional network, forward and backward take turns. Each
of the four is of the gates i, f, g, o, one below the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import lamina.numpy as jnp
from lamina import lax, random
from lamina.core.array_class import Array
from lamina.nn import sigmoid
from lamina.vmap import vmap

__all__ = ["get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates", "unpack_lstm_weights"]

Weights = dict[int, Array]
"""What belongs to each pseudo-layer, by its number."""


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[tuple[int, ...]]:
    """Those of the parts of a vector of weights, in its order."""
    directions = 2 if bidirectional else 1
    gates = 4 * hidden_size
    shapes: list[tuple[int, ...]] = []
    for i in range(num_layers * directions):
        width = input_size if i < directions else directions * hidden_size
        shapes += [(gates, width), (gates, hidden_size)]
    return shapes + [(gates,)] * (2 * num_layers * directions)


def _parts(weights: Array, *sizes: Any) -> Iterator[Array]:
    """The matrices and biases that a vector of weights consists of."""
    shapes = _shapes(*sizes)
    expected = sum(map(math.prod, shapes))
    if weights.shape != (expected,):
        raise ValueError(
            f"lstm: weights for input_size={sizes[0]}, hidden_size={sizes[1]}, num_layers={sizes[2]}, "
            f"bidirectional={sizes[3]} are a vector of {expected} numbers (get_num_params_in_lstm), "
            f"got shape {weights.shape}"
        )
    start = 0
    for shape in shapes:
        size = math.prod(shape)
        yield weights[start : start + size].reshape(shape)
        start += size


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """How many numbers the weights of an LSTM are.

    input_size, hidden_size  of the inputs and of the state.
    num_layers               how many layers there are.
    bidirectional            whether each has a direction backwards, too.

    >>> rnn = lamina.experimental.rnn
    >>> rnn.get_num_params_in_lstm(3, 4, num_layers=1, bidirectional=False)
    144
    """
    return sum(map(math.prod, _shapes(input_size, hidden_size, num_layers, bidirectional)))


def init_lstm_weight(
    rng: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Random weights, uniform between -1/sqrt(hidden_size) and 1/sqrt(hidden_size), as a vector.

    rng                      a random key.
    input_size, hidden_size  of the inputs and of the state.
    num_layers               how many layers there are.
    bidirectional            whether each has a direction backwards, too.

    >>> rnn = lamina.experimental.rnn
    >>> rnn.init_lstm_weight(lamina.random.key(0), 3, 4, num_layers=1, bidirectional=False).shape
    (144,)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = float(np.sqrt(1.0 / hidden_size))
    return random.uniform(rng, (count,), jnp.float32, minval=-bound, maxval=bound)


def swap_lstm_gates(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """The same weights with the gates g and o exchanged, in which order other libraries have them.

    weights                  a vector of `get_num_params_in_lstm` numbers.
    input_size, hidden_size  of the inputs and of the state.
    num_layers               how many layers there are.
    bidirectional            whether each has a direction backwards, too.

    >>> print(lamina.experimental.rnn.swap_lstm_gates(jnp.arange(16.0), 1, 1, 1, False))
    [ 0.  1.  3.  2.  4.  5.  7.  6.  8.  9. 11. 10. 12. 13. 15. 14.]
    """

    def swapped(part: Array) -> Array:
        i, f, g, o = jnp.split(part, 4)
        return jnp.concatenate([i, f, o, g]).reshape(-1)

    parts = _parts(jnp.asarray(weights), input_size, hidden_size, num_layers, bidirectional)
    return jnp.concatenate([swapped(part) for part in parts])


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """W_ih, W_hh, b_ih and b_hh of each pseudo-layer, by its number, from a vector of weights.

    weights                  a vector of `get_num_params_in_lstm` numbers; ValueError for another length.
    input_size, hidden_size  of the inputs and of the state.
    num_layers               how many layers there are.
    bidirectional            whether each has a direction backwards, too.

    >>> rnn = lamina.experimental.rnn
    >>> w = jnp.zeros(rnn.get_num_params_in_lstm(3, 4, 1, False))
    >>> [part[0].shape for part in rnn.unpack_lstm_weights(w, 3, 4, 1, False)]
    [(16, 3), (16, 4), (16,), (16,)]
    """
    parts = list(_parts(weights, input_size, hidden_size, num_layers, bidirectional))
    matrices, biases = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    of_each = [dict(enumerate(p)) for p in (matrices[::2], matrices[1::2], biases[::2], biases[1::2])]
    return of_each[0], of_each[1], of_each[2], of_each[3]


def lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    weights: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """An LSTM over sequences: the last layer's outputs, and the last h and c of each pseudo-layer.

    x            sequences, of shape (batch, steps, input_size)
    h_0, c_0     the states to begin with, of shape (layers * directions, batch, hidden_size)
    weights      a vector of `get_num_params_in_lstm` numbers
    seq_lengths  int32: how many steps of each sequence count; outputs of the others are 0
    input_size, hidden_size  of the inputs and of the state
    num_layers               how many layers there are
    dropout      0: others raise NotImplementedError, since no random key is given
    bidirectional            whether each layer has a direction backwards, too
    precision    that of the products

    >>> rnn = lamina.experimental.rnn
    >>> x, state = jnp.ones((2, 5, 3)), jnp.zeros((1, 2, 4))
    >>> w, lengths = rnn.init_lstm_weight(lamina.random.key(0), 3, 4, 1, False), jnp.array([5, 3])
    >>> y, h, c = rnn.lstm(x, state, state, w, lengths, 3, 4, 1, 0.0, False)
    >>> y.shape, h.shape
    ((2, 5, 4), (1, 2, 4))
    """
    sizes = (input_size, hidden_size, num_layers, bidirectional)
    unpacked = unpack_lstm_weights(weights, *sizes)
    return _lstm(x, h_0, c_0, *unpacked, seq_lengths, *sizes[1:3], dropout, bidirectional, precision)


def lstm_ref(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: Weights,
    W_hh: Weights,
    b_ih: Weights,
    b_hh: Weights,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """`lstm` with weights as `unpack_lstm_weights` gives them.

    x, h_0, c_0, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional  as for lstm
    W_ih, W_hh, b_ih, b_hh  those of each pseudo-layer, by its number

    >>> rnn = lamina.experimental.rnn
    >>> x, state, w = jnp.ones((2, 5, 3)), jnp.zeros((1, 2, 4)), jnp.zeros(144)
    >>> weights = rnn.unpack_lstm_weights(w, 3, 4, 1, False)
    >>> print(rnn.lstm_ref(x, state, state, *weights, jnp.array([5, 3]), 3, 4, 1, 0.0, False)[0].shape)
    (2, 5, 4)
    """
    return _lstm(x, h_0, c_0, W_ih, W_hh, b_ih, b_hh, seq_lengths, hidden_size, num_layers, dropout,
                 bidirectional, None)  # fmt: skip


def _lstm(x: Array, h_0: Array, c_0: Array, W_ih: Weights, W_hh: Weights, b_ih: Weights, b_hh: Weights,
          seq_lengths: Array, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
          precision: Any) -> tuple[Array, Array, Array]:  # fmt: skip
    if seq_lengths.dtype != np.int32:
        raise NotImplementedError(f"lstm: seq_lengths must be int32, got {seq_lengths.dtype}")
    if dropout != 0.0:
        raise NotImplementedError(f"lstm: dropout must be 0, got {dropout}: there is no random key to draw by")
    directions = 2 if bidirectional else 1
    state = (num_layers * directions, x.shape[0], hidden_size)
    for name, given in (("h_0", h_0), ("c_0", c_0)):
        if given.shape != state:
            raise ValueError(
                f"lstm: {name} must have shape {state} (layers * directions, batch, hidden_size), got {given.shape}"
            )
    rows = x.transpose(1, 0, 2)  # the steps first
    last_h, last_c = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            given = _backwards(rows, seq_lengths) if direction else rows
            bias = b_ih[i] + b_hh[i]
            hs, cs = _layer(given, h_0[i], c_0[i], W_ih[i], W_hh[i], bias, precision)
            last_h.append(_at_end(hs, seq_lengths))
            last_c.append(_at_end(cs, seq_lengths))
            there = jnp.arange(hs.shape[0], dtype=np.int32)[:, None] < seq_lengths
            hs = jnp.where(there[..., None], hs, 0)
            outputs.append(_backwards(hs, seq_lengths) if direction else hs)
        rows = jnp.concatenate(outputs, -1)
    return rows.transpose(1, 0, 2), jnp.stack(last_h), jnp.stack(last_c)


def _layer(rows: Array, h: Array, c: Array, W_ih: Array, W_hh: Array, bias: Array, precision: Any
           ) -> tuple[Array, Array]:  # fmt: skip
    """h and c after each step of one pseudo-layer. What depends on the inputs alone is one product."""

    def step(state: tuple[Array, Array], row: Array) -> Any:
        h, c = state
        i, f, g, o = jnp.split(row + jnp.matmul(h, W_hh.T, precision=precision), 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        h = sigmoid(o) * jnp.tanh(c)
        return (h, c), (h, c)

    return lax.scan(step, (h, c), jnp.matmul(rows, W_ih.T, precision=precision) + bias)[1]


def _at_end(states: Array, seq_lengths: Array) -> Array:
    """The state of each sequence after its last step that counts."""
    return states[seq_lengths - 1, jnp.arange(states.shape[1])]


def _backwards(rows: Array, seq_lengths: Array) -> Array:
    """Each sequence in reverse, what is behind its end still behind it."""
    ahead = rows.shape[0] - seq_lengths
    return vmap(lambda sequence, n: jnp.roll(sequence, n, axis=0)[::-1], in_axes=(1, 0), out_axes=1)(rows, ahead)
