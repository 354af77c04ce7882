"""What a call costs when there is next to nothing to compute."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.suite import Library, Timing

Pair = tuple[list[float], list[float]]


def _interleaved(make: Callable[[Library], Callable[[], Any]], calls: int) -> Any:
    def measure(ours: Library | None, theirs: Library | None) -> Pair:
        programs = [make(library) if library else None for library in (ours, theirs)]
        times: Pair = ([], [])
        for program in programs:
            if program:
                program()
        for _ in range(15):
            for program, found in zip(programs, times, strict=True):
                if program is None:
                    continue
                start = time.perf_counter()
                for _ in range(calls):
                    program()
                found.append((time.perf_counter() - start) / calls)
        return times

    return measure


def _scalar_add(m: Library) -> Callable[[], Any]:
    f, x = m.jit(lambda x: x + 1), m.np.float32(1.0)
    return lambda: f(x)


def _dictionary(m: Library) -> Callable[[], Any]:
    tree = {f"k{i:03d}": m.np.float32(i) for i in range(100)}
    f = m.jit(lambda t: {k: v + 1 for k, v in t.items()})
    return lambda: f(tree)


def _eager_add(m: Library) -> Callable[[], Any]:
    x = m.np.ones(3)
    return lambda: x + 1


def _to_numpy(m: Library) -> Callable[[], Any]:
    x = m.np.ones(1 << 20)
    return lambda: np.asarray(x)


WORKLOADS = [
    Timing("jit(x + 1) of a scalar", "calls", _interleaved(_scalar_add, 2000), most=2e-6),
    Timing("jit of a dict of 100", "calls", _interleaved(_dictionary, 200), most=40e-6),
    Timing("eager x + 1", "calls", _interleaved(_eager_add, 1000), most=4e-6),
    Timing("np.asarray of 4 MB", "calls", _interleaved(_to_numpy, 1000), most=2e-6),
]
