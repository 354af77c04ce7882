"""Taking times: libraries by turns, in bursts, so that what disturbs the machine disturbs both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_BURST = 0.02  # seconds


@dataclass(frozen=True)
class Times:
    """Seconds of a call: the median over bursts, the quartiles around it, and the least."""

    median: float
    low: float
    high: float
    least: float
    bursts: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Times:
        ordered = sorted(samples)
        quartiles = (
            statistics.quantiles(ordered, n=4) if len(ordered) > 1 else [ordered[0]] * 3
        )
        return cls(quartiles[1], quartiles[0], quartiles[2], ordered[0], len(ordered))


def interleave(
    calls: Sequence[Callable[[], Any] | None],
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Times | None]:
    """The times of each call, measured by turns for about so long in all; None for None."""
    samples: list[list[float]] = [[] for _ in calls]
    counts = [repeats(call) if call else 0 for call in calls]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(len(s) for s, r in zip(samples, counts) if r) < 5:
        for call, count, found in zip(calls, counts, samples, strict=True):
            if call is None:
                continue
            start = clock()
            for _ in range(count):
                call()
            found.append((clock() - start) / count)
    return [Times.of(found) if found else None for found in samples]


def repeats(call: Callable[[], Any]) -> int:
    """How many calls make a burst; warms up on the way."""
    call()
    start = time.perf_counter()
    call()
    return max(1, int(_BURST / max(time.perf_counter() - start, 1e-7)))
