"""What batching rules share: moving the batch dimension, and giving one to an operand without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import axes


def batch_size(args: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The number of examples."""
    return next(x.shape[d] for x, d in zip(args, dims) if d is not None)


def move_axis(x: Any, source: int, destination: int) -> Any:
    """x with one axis moved and the others in order."""
    if source == destination:
        return x
    order = [i for i in range(len(x.shape)) if i != source]
    order.insert(destination, source)
    return lax.transpose(x, order)


def at_front(x: Any, dim: int | None, size: int) -> Any:
    """x with the batch dimension first; an operand that has none is repeated."""
    if dim is None:
        shape = np.shape(x)
        return lax.broadcast_in_dim(x, (size, *shape), tuple(range(1, len(shape) + 1)))
    return move_axis(x, dim, 0)


def all_at_front(args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Every operand with the batch dimension first."""
    size = batch_size(args, dims)
    return [at_front(x, d, size) for x, d in zip(args, dims)]


def all_spread(args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """The same for operands that are to lie alike: what is repeated is spread over a mesh as the batch is."""
    size = batch_size(args, dims)
    return [spread_at_front(x, d, size) for x, d in zip(args, dims, strict=True)]


def spread_at_front(x: Any, dim: int | None, size: int) -> Any:
    """x with the batch dimension first; an operand that has none is repeated, spread over a mesh as the batch is."""
    out = at_front(x, dim, size)
    return out if dim is not None else lax.spread_batch(out, 0, axes.batching().spmd_name)


def past(dim: int, axes: Sequence[int]) -> tuple[int, ...]:
    """Axes of one example as axes of the batch whose batch dimension is `dim`."""
    return tuple(a + (a >= dim) for a in axes)


def insert(values: Sequence[Any], dim: int, value: Any) -> tuple[Any, ...]:
    """A per-dimension parameter with an entry for the batch dimension."""
    return (*values[:dim], value, *values[dim:])
