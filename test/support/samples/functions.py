"""Samples as functions, and arrays to differentiate them with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

import lamina
from lamina import lax
from lamina.core import NOT_DIFFERENTIABLE, OWED, dtypes, tree
from support.samples.sample import Sample


@contextlib.contextmanager
def x64(wide: bool) -> Iterator[None]:
    with lamina.enable_x64(wide), jax.enable_x64(wide):
        yield


def mine(sample: Sample) -> Any:
    """The sample on flat arrays, as a list of results."""
    return lambda *args: tree.leaves(sample.function(lax, *args))


def has_derivative(sample: Sample) -> bool:
    return (
        sample.derivatives
        and sample.primitive.jvp is not NOT_DIFFERENTIABLE
        and sample.primitive.jvp is not OWED
        and any(dtypes.is_inexact(s.dtype) for s in sample.specs)
        # JAX 0.12 has none of the larger of two complex numbers
        and not (sample.primitive.name in ("max", "min") and any(s.dtype.kind == "c" for s in sample.specs))
    )


def direction(rng: np.random.Generator, x: Any) -> np.ndarray:
    """A random tangent or cotangent for a value of x's type."""
    if not dtypes.is_inexact(x.dtype):
        return np.zeros(x.shape, dtypes.float0)
    drawn = rng.uniform(-1, 1, x.shape)
    if x.dtype.kind == "c":
        drawn = drawn + 1j * rng.uniform(-1, 1, x.shape)
    return np.asarray(drawn).astype(x.dtype)


def inexact(xs: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(xs) if dtypes.is_inexact(np.asarray(x).dtype)]
