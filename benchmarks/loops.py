"""Control flow beside jax: scans, loops, their gradients, and batched loops that really branch.

    python benchmarks/loops.py [--json FILE] [--only SUBSTRING] [--rounds N]

Runs are interleaved in this process (ours, theirs, ours, theirs), two threads each, and given as
medians, best runs and ratios (jax / ours). Compile times are of the first call, disk stores off,
the compilers warmed up by another program.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["LAMINA_CACHE"] = "0"

import jax
import numpy as np

import lamina
import lamina.numpy  # noqa: F401  (the workloads name it through `lamina`)

RNG = np.random.default_rng(0)
Workload = tuple[Callable[[Any], Callable[..., Any]], tuple[Any, ...]]
"""(library -> function, arguments)."""


def _normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype("float32")


def rnn(m: Any) -> Callable[..., Any]:
    """h = tanh(h @ W + x_t @ U), all h."""

    def f(h: Any, xs: Any, w: Any, u: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = m.numpy.tanh(h @ w + x @ u)
            return h, h

        return m.lax.scan(step, h, xs)[1]

    return f


def rnn_gradient(m: Any) -> Callable[..., Any]:
    def loss(w: Any, u: Any, h: Any, xs: Any) -> Any:
        return m.numpy.sum(rnn(m)(h, xs, w, u) ** 2)

    return lambda h, xs, w, u: m.grad(loss, argnums=(0, 1))(w, u, h, xs)


def counter(m: Any) -> Callable[..., Any]:
    return lambda x: m.lax.fori_loop(0, 1_000_000, lambda i, a: a * 0.999 + 0.5, x)


def kalman(m: Any) -> Callable[..., Any]:
    """A Kalman filter of four states and two measurements; the innovation's inverse written out."""

    def f(x: Any, p: Any, zs: Any, a: Any, h: Any, q: Any, r: Any) -> Any:
        def step(carry: Any, z: Any) -> Any:
            x, p = carry
            x, p = a @ x, a @ p @ a.T + q
            s = h @ p @ h.T + r
            det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
            inverse = m.numpy.stack([s[1, 1], -s[0, 1], -s[1, 0], s[0, 0]]).reshape(2, 2) / det
            gain = p @ h.T @ inverse
            x = x + gain @ (z - h @ x)
            p = p - gain @ h @ p
            return (x, p), x

        return m.lax.scan(step, (x, p), zs)[1]

    return f


def newton(m: Any) -> Callable[..., Any]:
    """Kepler's equation by Newton's method, until it holds, for 1,000 mean anomalies in turn."""

    def solve(mean: Any) -> Any:
        def going(state: Any) -> Any:
            e, step, k = state
            return (m.numpy.abs(step) > 1e-6) & (k < 50)

        def body(state: Any) -> Any:
            e, _, k = state
            step = (e - 0.8 * m.numpy.sin(e) - mean) / (1 - 0.8 * m.numpy.cos(e))
            return e - step, step, k + 1

        return m.lax.while_loop(going, body, (mean, mean * 0 + 1, m.numpy.int32(0)))[0]

    return lambda means: m.lax.map(solve, means)


def lstm(m: Any) -> Callable[..., Any]:
    def f(h: Any, c: Any, xs: Any, w: Any, u: Any, b: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = m.numpy.split(h @ w + x @ u + b, 4, axis=-1)
            c = m.nn.sigmoid(f) * c + m.nn.sigmoid(i) * m.numpy.tanh(g)
            h = m.nn.sigmoid(o) * m.numpy.tanh(c)
            return (h, c), h

        return m.lax.scan(step, (h, c), xs)[1]

    return f


def collatz(m: Any) -> Callable[..., Any]:
    def steps(n: Any) -> Any:
        def body(state: Any) -> Any:
            n, k = state
            return m.numpy.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

        return m.lax.while_loop(lambda s: s[0] != 1, body, (n, m.numpy.int32(0)))[1]

    return m.vmap(steps)


def newton_lanes(m: Any) -> Callable[..., Any]:
    """y = (y + x / y) / 2, each lane its number of times."""

    def f(x: Any, count: Any) -> Any:
        def body(state: Any) -> Any:
            y, k = state
            return 0.5 * (y + x / y), k + 1

        return m.lax.while_loop(lambda s: s[1] < count, body, (x, m.numpy.int32(0)))[0]

    return m.vmap(f)


def logistic_lanes(m: Any) -> Callable[..., Any]:
    """x = r x (1 - x), each lane its number of times."""

    def f(x: Any, count: Any) -> Any:
        def body(state: Any) -> Any:
            y, k = state
            return 3.7 * y * (1 - y), k + 1

        return m.lax.while_loop(lambda s: s[1] < count, body, (x, m.numpy.int32(0)))[0]

    return m.vmap(f)


def workloads() -> dict[str, Workload]:
    lanes = 4096
    uniform = RNG.integers(1, 1001, lanes).astype("int32")
    one_long = np.ones(lanes, "int32")
    one_long[lanes // 3] = 1000
    starts = RNG.uniform(1, 2, lanes).astype("float32")
    w, u = _normal(64, 64, scale=0.12), _normal(64, 64, scale=0.12)
    rnn_1 = (np.zeros(64, "float32"), _normal(1000, 64), w, u)
    rnn_32 = (np.zeros((32, 64), "float32"), _normal(1000, 32, 64), w, u)
    dynamics = np.eye(4, dtype="float32") + np.eye(4, k=2, dtype="float32") * 0.1
    filtered = (
        np.zeros(4, "float32"), np.eye(4, dtype="float32"), _normal(1000, 2), dynamics,
        np.eye(2, 4, dtype="float32"), np.eye(4, dtype="float32") * 0.01,
        np.eye(2, dtype="float32") * 0.1,
    )  # fmt: skip
    lstm_128 = (
        np.zeros(128, "float32"), np.zeros(128, "float32"), _normal(200, 128),
        _normal(128, 512, scale=0.08), _normal(128, 512, scale=0.08), np.zeros(512, "float32"),
    )  # fmt: skip
    return {
        "scan RNN 1000x64": (rnn, rnn_1),
        "scan RNN 1000x32x64": (rnn, rnn_32),
        "gradient of scan RNN 1000x64": (rnn_gradient, rnn_1),
        "gradient of scan RNN 1000x32x64": (rnn_gradient, rnn_32),
        "fori_loop of 1e6 scalar steps": (counter, (np.float32(1),)),
        "Kalman filter 1000 steps of 4x4": (kalman, filtered),
        "Newton's method, 1000 in turn": (newton, (RNG.uniform(0, 3, 1000).astype("float32"),)),
        "scan LSTM 200x128": (lstm, lstm_128),
        "lanes: Collatz, 4096": (collatz, (RNG.integers(1, 100_000, lanes).astype("int32"),)),
        "lanes: Newton, 1 to 1000 steps": (newton_lanes, (starts, uniform)),
        "lanes: logistic map, 1 to 1000": (logistic_lanes, (starts / 2.5, uniform)),
        "lanes: Newton, one of 1000 steps": (newton_lanes, (starts, one_long)),
    }


def seconds(f: Callable[[], Any]) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def check(ours: Any, theirs: Any) -> None:
    """Both libraries must have computed the same, or the times say nothing."""
    for a, b in zip(jax.tree_util.tree_leaves(ours), jax.tree_util.tree_leaves(theirs)):
        b = np.asarray(b)
        scale = np.abs(b).max() + 1e-9
        np.testing.assert_allclose(np.asarray(a) / scale, b / scale, atol=2e-3)


def measure(make: Any, args: Any, rounds: int) -> dict[str, float]:
    ours, theirs = lamina.jit(make(lamina)), jax.jit(make(jax))
    made: list[Any] = []
    compile_ours = seconds(lambda: made.append(lamina.block_until_ready(ours(*args))))
    compile_theirs = seconds(lambda: made.append(jax.block_until_ready(theirs(*args))))
    if make is not logistic_lanes:  # chaotic: the last bits decide
        check(*made)
    a, b = [], []
    for _ in range(rounds):
        a.append(seconds(lambda: lamina.block_until_ready(ours(*args))))
        b.append(seconds(lambda: jax.block_until_ready(theirs(*args))))
    return {
        "lamina": statistics.median(a),
        "jax": statistics.median(b),
        "ratio": statistics.median(b) / statistics.median(a),
        "lamina best": min(a),
        "jax best": min(b),
        "ratio of best": min(b) / min(a),
        "lamina first call": compile_ours,
        "jax first call": compile_theirs,
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    parser.add_argument("--rounds", type=int, default=31)
    args = parser.parse_args(argv)
    x = np.ones((3, 5), "float32")
    for m in (lamina, jax):  # what each compiler sets up once
        m.block_until_ready(m.jit(lambda x, m=m: m.numpy.tanh(x @ x.T).sum())(x))
    rows: dict[str, dict[str, float]] = {}
    print(
        f"{'milliseconds':34s} {'lamina':>9s} {'jax':>9s} {'ratio':>6s} {'of best':>8s}   first call"
    )
    for name, (make, given) in workloads().items():
        if args.only not in name:
            continue
        row = rows[name] = measure(make, given, args.rounds)
        print(
            f"{name:34s} {row['lamina'] * 1e3:9.3f} {row['jax'] * 1e3:9.3f} {row['ratio']:6.2f} "
            f"{row['ratio of best']:8.2f}   {row['lamina first call'] * 1e3:.0f} / "
            f"{row['jax first call'] * 1e3:.0f}",
            flush=True,
        )
    if args.json:
        with open(args.json, "w") as f:
            json.dump(
                {
                    "date": time.strftime("%Y-%m-%d"),
                    "machine": platform.processor() or platform.machine(),
                    "cores": os.cpu_count(),
                    "load": os.getloadavg()[0],
                    "python": platform.python_version(),
                    "jax": jax.__version__,
                    "seconds": rows,
                },
                f,
                indent=1,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
