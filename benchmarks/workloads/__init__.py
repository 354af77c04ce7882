"""All workloads, by group, in the order of the report."""

from benchmarks.suite import Timing, Workload
from benchmarks.workloads import (
    calls,
    compile_times,
    convolutions,
    elementwise,
    indexing,
    products,
    programs,
    random_numbers,
    reductions,
    sorting,
    transforms,
)

ALL: list[Workload | Timing] = [
    *elementwise.WORKLOADS,
    *reductions.WORKLOADS,
    *products.WORKLOADS,
    *convolutions.WORKLOADS,
    *sorting.WORKLOADS,
    *indexing.WORKLOADS,
    *random_numbers.WORKLOADS,
    *transforms.WORKLOADS,
    *programs.WORKLOADS,
    *calls.WORKLOADS,
    *compile_times.WORKLOADS,
]
