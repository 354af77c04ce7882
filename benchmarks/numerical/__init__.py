"""Numerical programs as people write them, by theme: loops over arrays, of f64 mostly.

They are beside the suite, whose rows were tuned one by one: `python -m benchmarks --family numerical`.
"""

from benchmarks.numerical import (
    dynamic_programming,
    images_and_signals,
    linear_algebra,
    products,
    simulation,
    stencils,
)
from benchmarks.suite import Timing, Workload

ALL: list[Workload | Timing] = [
    *linear_algebra.PROGRAMS,
    *products.PROGRAMS,
    *stencils.PROGRAMS,
    *dynamic_programming.PROGRAMS,
    *images_and_signals.PROGRAMS,
    *simulation.PROGRAMS,
]
