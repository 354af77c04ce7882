"""The figures of the spine, beside jax where it is installed: import, call, trace, compile times.

    python benchmarks/spine.py [--json FILE]

Every comparison is interleaved in this process (ours, theirs, ours, theirs) and given as medians
and their ratio. Compile times are with the disk stores off.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["LAMINA_CACHE"] = "0"

import numpy as np

import lamina
import lamina.numpy as lnp

HAVE_JAX = importlib.util.find_spec("jax") is not None


def seconds(f: Callable[[], Any]) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def import_seconds(module: str) -> float:
    """Median import time of a module in fresh interpreters."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    return statistics.median(float(r.stdout) for r in runs)


def per_call(f: Callable[[], Any], n: int) -> float:
    start = time.perf_counter()
    for _ in range(n):
        f()
    return (time.perf_counter() - start) / n


def call_times(
    ours: Callable[[], Any], theirs: Callable[[], Any] | None, n: int
) -> tuple[float, float | None]:
    a, b = [], []
    for _ in range(9):
        a.append(per_call(ours, n))
        if theirs is not None:
            b.append(per_call(theirs, n))
    return statistics.median(a), statistics.median(b) if b else None


def mlp_step(np_like: Any, nn: Any, value_and_grad: Any) -> Callable[..., Any]:
    """The demo's training step, for either library: loss, gradient, Adam."""

    def loss(params: Any, x: Any, y: Any) -> Any:
        h = nn.relu(x @ params[0] + params[1])
        h = nn.relu(h @ params[2] + params[3])
        logits = nn.log_softmax(h @ params[4] + params[5])
        return -np_like.mean(np_like.sum(logits * y, axis=1))

    def step(state: Any, x: Any, y: Any) -> Any:
        params, m, v, t = state
        value, grads = value_and_grad(loss)(params, x, y)
        t = t + 1
        m = [0.9 * a + 0.1 * g for a, g in zip(m, grads)]
        v = [0.999 * a + 0.001 * g * g for a, g in zip(v, grads)]
        scale = 1e-3 * np_like.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        params = [p - scale * a / (np_like.sqrt(b) + 1e-8) for p, a, b in zip(params, m, v)]
        return (params, m, v, t), value

    return step


def mlp_inputs() -> Any:
    rng = np.random.default_rng(0)
    sizes = [(64, 128), (128,), (128, 64), (64,), (64, 10), (10,)]
    params = [rng.standard_normal(s).astype("float32") * 0.1 for s in sizes]
    zeros = [np.zeros_like(p) for p in params]
    x = rng.standard_normal((128, 64)).astype("float32")
    y = np.eye(10, dtype="float32")[rng.integers(0, 10, 128)]
    return (params, zeros, zeros, np.float32(0)), x, y


def unrolled(sin: Any, cos: Any, np_like: Any, steps: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(steps):
            x = sin(x) * 1.1 + cos(x @ x)
        return np_like.sum(x)

    return f


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument(
        "--unrolled-jax",
        type=int,
        default=30,
        help="steps of the unrolled gradient that jax compiles (200 takes minutes)",
    )
    args = parser.parse_args(argv)
    rows: dict[str, dict[str, float | None]] = {}

    def row(name: str, ours: float, theirs: float | None = None) -> None:
        rows[name] = {"lamina": ours, "jax": theirs}
        ratio = f"{theirs / ours:8.2f}" if theirs else "       -"
        print(
            f"{name:48s} {ours * 1e3:12.4f} {theirs * 1e3 if theirs else float('nan'):12.4f} {ratio}"
        )

    print(f"{'milliseconds':48s} {'lamina':>12s} {'jax':>12s} {'jax/ours':>8s}")
    base = import_seconds("numpy")
    row(
        "import, beyond numpy's",
        import_seconds("lamina") - base,
        import_seconds("jax") - base if HAVE_JAX else None,
    )
    jax: Any = None
    if HAVE_JAX:
        import jax
        import jax.numpy as jnp

    one = lamina.jit(lambda x: x + 1)
    x = lnp.float32(1.0)
    jone, jx = (jax.jit(lambda x: x + 1), jnp.float32(1.0)) if jax else (None, None)
    row("jit(x + 1) of a scalar", *call_times(lambda: one(x), jax and (lambda: jone(jx)), 2000))
    row("eager x + 1", *call_times(lambda: x + 1, jax and (lambda: jx + 1), 1000))
    tree = {f"k{i:03d}": lnp.float32(i) for i in range(100)}
    keep = lamina.jit(lambda t: {k: v + 1 for k, v in t.items()})
    jtree = {k: jnp.float32(1) for k in tree} if jax else None
    jkeep = jax.jit(lambda t: {k: v + 1 for k, v in t.items()}) if jax else None
    row(
        "jit of a dict of 100", *call_times(lambda: keep(tree), jax and (lambda: jkeep(jtree)), 200)
    )

    def chain(sin: Any, cos: Any) -> Any:
        def f(x: Any) -> Any:
            for _ in range(250):
                x = sin(x) * 1.1 + cos(x)
            return x

        return f

    a = np.ones((8, 8), np.float32)
    row(
        "trace and lower 1,000 equations",
        seconds(lambda: lamina.jit(chain(lnp.sin, lnp.cos)).lower(a)),
        seconds(lambda: jax.jit(chain(jnp.sin, jnp.cos)).lower(a)) if jax else None,
    )

    ours, theirs = [], []
    state, bx, by = mlp_inputs()
    for _ in range(3):
        step = lamina.jit(mlp_step(lnp, lamina.nn, lamina.value_and_grad)).lower(state, bx, by)
        ours.append(seconds(step.compile))
        if jax:
            jstep = jax.jit(mlp_step(jnp, jax.nn, jax.value_and_grad)).lower(state, bx, by)
            theirs.append(seconds(jstep.compile))
    row(
        "compile the demo's step",
        statistics.median(ours),
        statistics.median(theirs) if theirs else None,
    )
    step, jstep = step.compile(), jstep.compile() if jax else None
    row(
        "run the demo's step",
        *call_times(
            lambda: lamina.block_until_ready(step(state, bx, by)),
            jax and (lambda: jax.block_until_ready(jstep(state, bx, by))),
            50,
        ),
    )

    for steps in (50, 100, 200, 400):
        g = lamina.jit(lamina.grad(unrolled(lnp.sin, lnp.cos, lnp, steps)))
        row(
            f"gradient of {steps} unrolled steps, to first result",
            seconds(lambda g=g: g(a).block_until_ready()),
        )
    if jax:
        n = args.unrolled_jax
        g = lamina.jit(lamina.grad(unrolled(lnp.sin, lnp.cos, lnp, n)))
        jg = jax.jit(jax.grad(unrolled(jnp.sin, jnp.cos, jnp, n)))
        row(
            f"gradient of {n} unrolled steps, to first result",
            seconds(lambda: g(a).block_until_ready()),
            seconds(lambda: jg(a).block_until_ready()),
        )

    if args.json:
        with open(args.json, "w") as f:
            json.dump(
                {
                    "date": time.strftime("%Y-%m-%d"),
                    "machine": platform.processor() or platform.machine(),
                    "cores": os.cpu_count(),
                    "python": platform.python_version(),
                    "jax": jax.__version__ if jax else None,
                    "seconds": rows,
                },
                f,
                indent=1,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
