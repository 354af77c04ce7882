"""Nanoseconds per element of the elementary functions, beside NumPy and jax where it is installed.

    python benchmarks/math_functions.py [--dtype f32|f64|bf16] [--size N] [FUNCTION ...]

One thread, data in the cache. The three take turns; what is shown is the best of many turns, and
how many times faster than jax that is.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["LAMINA_NUM_THREADS"] = "1"
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import numpy as np  # noqa: E402

import lamina  # noqa: E402

HAVE_JAX = importlib.util.find_spec("jax") is not None
DTYPES = {"f32": "float32", "f64": "float64", "bf16": "bfloat16"}
# StableHLO op: (NumPy's function, jax.lax's name, arguments between)
FUNCTIONS: dict[str, tuple[Callable[..., Any] | None, str, float, float]] = {
    "exponential": (np.exp, "exp", -10, 10),
    "exponential_minus_one": (np.expm1, "expm1", -1, 1),
    "log": (np.log, "log", 0.01, 100),
    "log_plus_one": (np.log1p, "log1p", -0.5, 1),
    "sine": (np.sin, "sin", -100, 100),
    "cosine": (np.cos, "cos", -100, 100),
    "tan": (np.tan, "tan", -100, 100),
    "tanh": (np.tanh, "tanh", -5, 5),
    "logistic": (None, "logistic", -5, 5),
    "cbrt": (np.cbrt, "cbrt", 0.01, 100),
    "rsqrt": (None, "rsqrt", 0.01, 100),
    "power": (np.power, "pow", 0.1, 4),
    "atan2": (np.arctan2, "atan2", -4, 4),
}


def lamina_function(op: str, element: str, size: int, arity: int) -> Callable[..., Any]:
    of = f"tensor<{size}x{element}>"
    names = [f"%{i}" for i in range(arity)]
    return lamina.compile_stablehlo(
        f"func.func @main({', '.join(f'{name}: {of}' for name in names)}) -> {of} {{\n"
        f"  %r = stablehlo.{op} {', '.join(names)} : {of}\n  return %r : {of}\n}}"
    )


def best_seconds(candidates: dict[str, Callable[[], Any]], turns: int = 40) -> dict[str, float]:
    """The shortest time of each candidate's calls, taken in turns."""
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(turns):
        for name, call in candidates.items():
            call()
            start = time.perf_counter()
            for _ in range(4):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / 4)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS), metavar="FUNCTION")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--size", type=int, default=1 << 16)
    options = parser.parse_args()
    lamina.config.update("enable_x64", True)
    if HAVE_JAX:
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_platforms", "cpu")
    print(f"{options.dtype}, {options.size} elements, ns per element")
    print(f"{'':24}{'lamina':>10}{'numpy':>10}{'jax':>10}{'jax / lamina':>14}")
    for op in options.functions:
        in_numpy, in_lax, low, high = FUNCTIONS[op]
        arity = 2 if op in ("power", "atan2") else 1
        rng = np.random.default_rng(0)
        drawn = [rng.uniform(low, high, options.size) for _ in range(arity)]
        if options.dtype == "bf16":
            import ml_dtypes

            arrays = [x.astype(ml_dtypes.bfloat16) for x in drawn]
        else:
            arrays = [x.astype(DTYPES[options.dtype]) for x in drawn]
        ours = lamina_function(op, options.dtype, options.size, arity)
        given = [lamina.numpy.asarray(x) for x in arrays]
        calls: dict[str, Callable[[], Any]] = {
            "lamina": lambda ours=ours, given=given: ours(*given)[0].block_until_ready()
        }
        if in_numpy is not None and options.dtype != "bf16":
            calls["numpy"] = lambda f=in_numpy, arrays=arrays: f(*arrays)
        if HAVE_JAX:
            jitted, on_device = (
                jax.jit(getattr(jax.lax, in_lax)),
                [jax.numpy.asarray(x) for x in arrays],
            )
            calls["jax"] = lambda f=jitted, xs=on_device: f(*xs).block_until_ready()
        best = {name: 1e9 * t / options.size for name, t in best_seconds(calls).items()}
        shown = "".join(
            f"{best[n]:10.2f}" if n in best else f"{'':10}" for n in ("lamina", "numpy", "jax")
        )
        ratio = f"{best['jax'] / best['lamina']:14.1f}" if "jax" in best else ""
        print(f"{op:24}{shown}{ratio}", flush=True)


if __name__ == "__main__":
    main()
