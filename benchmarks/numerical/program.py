"""A row of the family: a numerical program of f64 mostly, and its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.suite import Library, Workload

BAR = 0.95


def program(
    name: str,
    theme: str,
    make: Callable[[Library], Callable[..., Any]],
    inputs: Callable[[], tuple[Any, ...]],
) -> Workload:
    return Workload(name, theme, make, inputs, BAR, numerical=True)


def rng() -> np.random.Generator:
    """The same numbers in every run."""
    return np.random.default_rng(0)
