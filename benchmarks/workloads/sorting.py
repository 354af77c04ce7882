"""Sorting and selection."""

from benchmarks.peers import by_torch
from benchmarks.suite import Workload, arrays

MEGA = 1 << 20

WORKLOADS = [
    Workload("sort 1M", "sorting", lambda m: m.np.sort, lambda: arrays((MEGA,)), 25.0,
             others=by_torch(lambda torch, x: torch.sort(x).values)),
    Workload("argsort 1M", "sorting", lambda m: m.np.argsort, lambda: arrays((MEGA,)), 10.0),
    Workload("top_k 64 of 1024, 1024 rows", "sorting", lambda m: lambda x: m.lax.top_k(x, 64),
             lambda: arrays((1024, 1024))),
]  # fmt: skip
