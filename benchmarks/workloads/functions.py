"""Elementary functions on arrays that stay in the cache: bound by arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite import Workload

SIZE = 1 << 15
# name in lax: where its arguments are drawn from
_DOMAINS = {
    "exp": (-10, 10), "expm1": (-1, 1), "log": (0.01, 100), "log1p": (-0.5, 1), "sin": (-100, 100),
    "cos": (-100, 100), "tan": (-100, 100), "tanh": (-5, 5), "logistic": (-5, 5),
    "cbrt": (0.01, 100), "rsqrt": (0.01, 100), "pow": (0.1, 4), "atan2": (-4, 4), "erf": (-3, 3),
    "lgamma": (0.1, 20), "igamma": (0.1, 4),
}  # fmt: skip


def _row(name: str, low: float, high: float) -> Workload:
    def inputs() -> tuple[Any, ...]:
        rng = np.random.default_rng(0)
        return tuple(
            rng.uniform(low, high, SIZE).astype(np.float32)
            for _ in range(2 if name in ("pow", "atan2", "igamma") else 1)
        )

    return Workload(f"{name} 32K", "functions", lambda m: getattr(m.lax, name), inputs)


WORKLOADS = [_row(name, *domain) for name, domain in _DOMAINS.items()]
