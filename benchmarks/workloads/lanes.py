"""Batched loops whose lanes run different numbers of steps: vmap of while_loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite import Library, Workload

LANES = 4096


def _collatz(m: Library) -> Any:
    def steps(n: Any) -> Any:
        def body(state: Any) -> Any:
            n, k = state
            return m.np.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

        return m.lax.while_loop(lambda s: s[0] != 1, body, (n, m.np.int32(0)))[1]

    return m.vmap(steps)


def _repeated(step: Any) -> Any:
    """y = step(x, y), each lane its number of times."""

    def make(m: Library) -> Any:
        def f(x: Any, count: Any) -> Any:
            def body(state: Any) -> Any:
                y, k = state
                return step(x, y), k + 1

            return m.lax.while_loop(lambda s: s[1] < count, body, (x, m.np.int32(0)))[0]

        return m.vmap(f)

    return make


_newton = _repeated(lambda x, y: 0.5 * (y + x / y))
_logistic = _repeated(lambda x, y: 3.7 * y * (1 - y))


def _uniform() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return rng.uniform(0.4, 0.8, LANES).astype(np.float32), rng.integers(1, 1001, LANES, np.int32)


def _one_long() -> tuple[Any, ...]:
    counts = np.ones(LANES, np.int32)
    counts[LANES // 3] = 1000
    return _uniform()[0], counts


def _numbers() -> tuple[Any, ...]:
    return (np.random.default_rng(0).integers(1, 100_000, LANES, np.int32),)


WORKLOADS = [
    Workload("Collatz, 4096 lanes", "lanes", _collatz, _numbers, 5.0),
    Workload("Newton, lanes of 1 to 1000 steps", "lanes", _newton, _uniform, 5.0),
    Workload("logistic map, 1 to 1000 steps", "lanes", _logistic, _uniform, 5.0),
    Workload("Newton, one lane of 1000 steps", "lanes", _newton, _one_long, 5.0),
]
