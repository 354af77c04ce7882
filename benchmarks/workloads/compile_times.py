"""Compile times, with nothing cached on disk: trace, lower, compile, run once."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.suite import Library, Timing
from benchmarks.workloads.programs import transformer_inputs, transformer_step

Pair = tuple[list[float], list[float]]


def _first_call(
    make: Callable[[Library], Any],
    inputs: Callable[[], Any],
    repeats: tuple[int, int] = (3, 3),
) -> Any:
    """Times to the first result, so many of ours and of theirs; those that have fewer come last."""

    def measure(ours: Library | None, theirs: Library | None) -> Pair:
        times: Pair = ([], [])
        args = inputs()
        for turn in range(max(repeats)):
            for library, found, count in zip((ours, theirs), times, repeats, strict=True):
                if library is not None and turn >= max(repeats) - count:
                    gc.collect()  # what a compilation before left is not this one's to clear away
                    start = time.perf_counter()
                    library.block_until_ready(library.jit(make(library))(*args))
                    found.append(time.perf_counter() - start)
        return times

    return measure


def _small_functions(m: Library) -> list[Any]:
    np_, nn = m.np, m.nn
    return [
        lambda x: x + 1, lambda x: np_.sin(x) * x, lambda x: np_.sum(x), lambda x: np_.mean(x, 0),
        lambda x: x @ x, lambda x: nn.softmax(x), lambda x: np_.tanh(x @ x), lambda x: x.T * 2,
        lambda x: np_.where(x > 0, x, 0.0), lambda x: np_.exp(-x * x), lambda x: np_.cumsum(x, 0),
        lambda x: np_.max(x, 1), lambda x: np_.argmax(x, 1), lambda x: x[::2, 1:],
        lambda x: np_.concatenate([x, x]), lambda x: nn.gelu(x), lambda x: np_.var(x),
        lambda x: np_.sort(x), lambda x: m.grad(lambda v: np_.sum(np_.tanh(v)))(x),
        lambda x: m.vmap(lambda v: v / np_.sum(v))(x),
    ]  # fmt: skip


def _twenty_functions(ours: Library | None, theirs: Library | None) -> Pair:
    """The sum over twenty small functions of the time to their first results."""
    times: Pair = ([], [])
    x = np.random.default_rng(0).standard_normal((33, 33)).astype(np.float32)
    for _ in range(3):
        for library, found in zip((ours, theirs), times, strict=True):
            if library is None:
                continue
            functions = [library.jit(f) for f in _small_functions(library)]
            gc.collect()
            start = time.perf_counter()
            for f in functions:
                library.block_until_ready(f(x))
            found.append(time.perf_counter() - start)
    return times


def _unrolled(steps: int) -> Callable[[Library], Any]:
    def make(m: Library) -> Any:
        def f(x: Any) -> Any:
            for _ in range(steps):
                x = m.np.sin(x) * 1.1 + m.np.cos(x @ x)
            return m.np.sum(x)

        return m.grad(f)

    return make


def _chain(m: Library) -> Any:
    def f(x: Any) -> Any:
        for _ in range(250):
            x = m.np.sin(x) * 1.1 + m.np.cos(x)
        return x

    return f


def _lowering(ours: Library | None, theirs: Library | None) -> Pair:
    """Trace a program of 1,000 equations and lower it to StableHLO."""
    times: Pair = ([], [])
    (x,) = _square()
    for _ in range(5):
        for library, found in zip((ours, theirs), times, strict=True):
            if library is not None:
                gc.collect()
                start = time.perf_counter()
                library.jit(_chain(library)).lower(x)
                found.append(time.perf_counter() - start)
    return times


def _import_times(ours: Library | None, theirs: Library | None) -> Pair:
    def once(module: str) -> float:
        code = (
            f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter()-t)"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        return float(run.stdout)

    times: Pair = ([], [])
    for _ in range(5):
        for library, found in zip((ours, theirs), times, strict=True):
            if library is not None:
                found.append(once(library.name))
    return times


def _square() -> tuple[np.ndarray]:
    return (np.full((8, 8), 0.1, np.float32),)


WORKLOADS = [
    Timing("import", "compile", _import_times),
    Timing("trace and lower 1,000 equations", "compile", _lowering),
    Timing("20 small functions, cold", "compile", _twenty_functions, 1.5),
    Timing("gradient of 25 unrolled 8x8 steps", "compile", _first_call(_unrolled(25), _square)),
    Timing(
        "transformer step",
        "compile",
        _first_call(transformer_step, transformer_inputs, (3, 1)),
        4.0,
    ),
    # Last: what JAX leaves in the heap slows who compiles next by a third.
    Timing(
        "gradient of 200 unrolled 8x8 steps",
        "compile",
        _first_call(_unrolled(200), _square, (3, 1)),
        100.0,
    ),
]
