"""All workloads, by group, in the order of the report."""

from benchmarks.suite import Timing, Workload
from benchmarks.workloads import (
    calls,
    compile_times,
    convolutions,
    elementwise,
    functions,
    indexing,
    lanes,
    loops,
    products,
    programs,
    random_numbers,
    reductions,
    sorting,
    transforms,
)

ALL: list[Workload | Timing] = [
    *elementwise.WORKLOADS,
    *functions.WORKLOADS,
    *reductions.WORKLOADS,
    *products.WORKLOADS,
    *convolutions.WORKLOADS,
    *sorting.WORKLOADS,
    *indexing.WORKLOADS,
    *random_numbers.WORKLOADS,
    *transforms.WORKLOADS,
    *loops.WORKLOADS,
    *lanes.WORKLOADS,
    *programs.WORKLOADS,
    *calls.WORKLOADS,
    *compile_times.WORKLOADS,
]
