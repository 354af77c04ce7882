"""Loops that carry something: filters, recurrent networks and their gradients, iterations."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite import Library, Workload, arrays


def _rnn(m: Library) -> Any:
    """h = tanh(h @ W + x_t @ U) from a given h, all h; h and x_t may have a batch."""

    def f(h: Any, xs: Any, w: Any, u: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = m.np.tanh(h @ w + x @ u)
            return h, h

        return m.lax.scan(step, h, xs)[1]

    return f


def _two_directions(m: Library) -> Any:
    """An RNN and one that begins at the other end, with the same weights: two loops at the same time."""

    def f(h: Any, xs: Any, w: Any, u: Any) -> Any:
        run = _rnn(m)
        return m.np.concatenate([run(h, xs, w, u), run(h, xs[::-1], w, u)[::-1]], -1)

    return f


def _rnn_gradient(m: Library) -> Any:
    def loss(weights: Any, h: Any, xs: Any) -> Any:
        return m.np.sum(_rnn(m)(h, xs, *weights) ** 2)

    return lambda h, xs, w, u: m.grad(loss)((w, u), h, xs)


def _counter(m: Library) -> Any:
    return lambda x: m.lax.fori_loop(0, 1_000_000, lambda i, a: a * 0.999 + 0.5, x)


def _kalman(m: Library) -> Any:
    """A Kalman filter of four states and two measurements; the innovation's inverse written out."""

    def f(x: Any, p: Any, zs: Any, a: Any, h: Any, q: Any, r: Any) -> Any:
        def step(carry: Any, z: Any) -> Any:
            x, p = carry
            x, p = a @ x, a @ p @ a.T + q
            s = h @ p @ h.T + r
            det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
            inverse = m.np.stack([s[1, 1], -s[0, 1], -s[1, 0], s[0, 0]]).reshape(2, 2) / det
            gain = p @ h.T @ inverse
            x = x + gain @ (z - h @ x)
            p = p - gain @ h @ p
            return (x, p), x

        return m.lax.scan(step, (x, p), zs)[1]

    return f


def _kepler(m: Library) -> Any:
    """Kepler's equation by Newton's method, until it holds, for mean anomalies in turn."""

    def solve(mean: Any) -> Any:
        def going(state: Any) -> Any:
            _, step, k = state
            return (m.np.abs(step) > 1e-6) & (k < 50)

        def body(state: Any) -> Any:
            e, _, k = state
            step = (e - 0.8 * m.np.sin(e) - mean) / (1 - 0.8 * m.np.cos(e))
            return e - step, step, k + 1

        return m.lax.while_loop(going, body, (mean, mean * 0 + 1, m.np.int32(0)))[0]

    return lambda means: m.lax.map(solve, means)


def _lstm(m: Library) -> Any:
    def f(h: Any, c: Any, xs: Any, w: Any, u: Any, b: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = m.np.split(h @ w + x @ u + b, 4, axis=-1)
            c = m.nn.sigmoid(f) * c + m.nn.sigmoid(i) * m.np.tanh(g)
            h = m.nn.sigmoid(o) * m.np.tanh(c)
            return (h, c), h

        return m.lax.scan(step, (h, c), xs)[1]

    return f


def _rnn_inputs(*batch: int) -> tuple[Any, ...]:
    h, xs, w, u = arrays((*batch, 64), (1000, *batch, 64), (64, 64), (64, 64))
    return h * 0, xs, w * np.float32(0.12), u * np.float32(0.12)


def _kalman_inputs() -> tuple[Any, ...]:
    eye = np.eye(4, dtype=np.float32)
    dynamics = eye + np.eye(4, k=2, dtype=np.float32) * np.float32(0.1)
    tenth = np.float32(0.1)
    (zs,) = arrays((1000, 2))
    return np.zeros(4, np.float32), eye, zs, dynamics, eye[:2], eye * tenth**2, eye[:2, :2] * tenth


def _lstm_inputs() -> tuple[Any, ...]:
    xs, w, u = arrays((200, 128), (128, 512), (128, 512))
    zeros, scale = np.zeros(128, np.float32), np.float32(0.08)
    return zeros, zeros, xs, w * scale, u * scale, np.zeros(512, np.float32)


def _anomalies() -> tuple[Any, ...]:
    return (np.random.default_rng(0).uniform(0, 3, 1000).astype(np.float32),)


def _row(name: str, make: Any, inputs: Any, bar: float | None = None, flops: float = 0) -> Workload:
    return Workload(name, "loops", make, inputs, bar, flops=flops)


_STEP = 4.0 * 64 * 64
WORKLOADS = [
    _row("scan RNN 1000x64", _rnn, _rnn_inputs, 1.5, 1000 * _STEP),
    _row("scan RNN 1000x32x64", _rnn, lambda: _rnn_inputs(32), flops=32000 * _STEP),
    _row("RNN 1000x64, both directions", _two_directions, _rnn_inputs, flops=2000 * _STEP),
    _row("gradient of RNN 1000x64", _rnn_gradient, _rnn_inputs, flops=2500 * _STEP),
    _row("gradient of RNN 1000x32x64", _rnn_gradient, lambda: _rnn_inputs(32),
         flops=80000 * _STEP),
    _row("scan LSTM 200x128", _lstm, _lstm_inputs, flops=200 * 4.0 * 128 * 512),
    _row("fori_loop, 1e6 scalar steps", _counter, lambda: (np.float32(1),)),
    _row("Kalman filter, 1000 steps", _kalman, _kalman_inputs),
    _row("Kepler by Newton, 1000 in turn", _kepler, _anomalies),
]  # fmt: skip
