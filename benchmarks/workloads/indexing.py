"""Moving elements: transposes, gathers, scatters."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers import by_numba
from benchmarks.suite import Library, Workload, arrays

MEGA = 1 << 20


def _indexed() -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    (x,) = arrays((MEGA,))
    return x, rng.integers(0, MEGA, MEGA).astype(np.int32)


def _with_updates() -> tuple[Any, ...]:
    return *_indexed(), arrays((MEGA,), seed=2)[0]


def _segments() -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    return arrays((MEGA,))[0], np.sort(rng.integers(0, 1 << 14, MEGA)).astype(np.int32)


def _numba_scatter(numba: Any) -> Any:
    @numba.njit
    def scatter(x: Any, i: Any, u: Any) -> Any:
        out = x.copy()
        for k in range(i.size):
            out[i[k]] += u[k]
        return out

    return scatter


def _segment_sum(m: Library) -> Any:
    return lambda x, i: m.np.zeros(1 << 14, x.dtype).at[i].add(x)


WORKLOADS = [
    Workload("transpose 2048^2", "indexing", lambda m: lambda x: x.T + 0,
             lambda: arrays((2048, 2048)), 2.0, bytes=8.0 * 2048**2),
    Workload("gather 1M", "indexing", lambda m: lambda x, i: x[i], _indexed, 1.1,
             bytes=12.0 * MEGA),
    Workload("scatter-add 1M", "indexing", lambda m: lambda x, i, u: x.at[i].add(u), _with_updates,
             1.0, bytes=16.0 * MEGA, others=by_numba(_numba_scatter)),
    Workload("segment sum 1M", "indexing", _segment_sum, _segments, 1.0, bytes=8.0 * MEGA),
]  # fmt: skip
