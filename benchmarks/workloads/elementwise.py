"""Element-wise chains: bound by memory where the functions are cheap."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers import by_numba, by_torch
from benchmarks.suite import Workload, arrays

MEGA = 1 << 20


def _row(name: str, make: Any, n: int, bar: float | None, **more: Any) -> Workload:
    return Workload(
        name, "element-wise", make, lambda: arrays((n,)), bar, bytes=8.0 * n, **more
    )  # fmt: skip


def _numba_chain(numba: Any) -> Any:
    @numba.njit(parallel=True)
    def chain(x: Any) -> Any:
        out = np.empty_like(x)
        for i in numba.prange(x.size):
            out[i] = (np.float32(2) * x[i] + np.float32(1)) ** 2
        return out

    return chain


_TORCH_CHAIN = by_torch(lambda torch, x: (2 * x + 1) ** 2)

WORKLOADS = [
    _row("(2x+1)^2 1M", lambda m: lambda x: (2 * x + 1) ** 2, MEGA, 1.4,
         others=_TORCH_CHAIN | by_numba(_numba_chain)),
    _row("(2x+1)^2 16M", lambda m: lambda x: (2 * x + 1) ** 2, 16 * MEGA, 2.5,
         others=_TORCH_CHAIN | by_numba(_numba_chain)),
    _row("exp 1M", lambda m: m.np.exp, MEGA, 1.8, others=by_torch(lambda torch, x: torch.exp(x))),
    _row("tanh 1M", lambda m: m.np.tanh, MEGA, 1.8, others=by_torch(lambda torch, x: torch.tanh(x))),
    _row("log(x*x) 1M", lambda m: lambda x: m.np.log(x * x), MEGA, 1.8,
         others=by_torch(lambda torch, x: torch.log(x * x))),
    _row("gelu 1M", lambda m: m.nn.gelu, MEGA, 1.8,
         others=by_torch(lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"))),
    _row("sin + cos 1M", lambda m: lambda x: m.np.sin(x) + m.np.cos(x), MEGA, 15.0,
         others=by_torch(lambda torch, x: torch.sin(x) + torch.cos(x))),
]  # fmt: skip
