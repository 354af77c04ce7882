"""How vmap maps over a BCOO or a BCSR: along its batch axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def lane(part: Callable[..., Any], _: Any, mat: Any, axis: int | None) -> Any:
    """What one lane of vmap sees of a sparse array, which is mapped along a batch axis."""
    if axis is None:
        return mat
    axis = axis % mat.ndim
    name = type(mat).__name__
    if axis >= mat.n_batch:
        raise ValueError(
            f"Cannot map in_axis={axis} for {name} array with n_batch={mat.n_batch}. in_axes for batched {name} "
            f"operations must correspond to a batch dimension: {name}.fromdense(..., n_batch=1) makes one."
        )
    arrays = tuple(part(x, axis) for x in mat.arrays())
    shape = (*mat.shape[:axis], *mat.shape[axis + 1 :])
    return type(mat)(arrays, shape=shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def of_lanes(whole: Callable[..., Any], size: int, mat: Any, axis: int | None) -> Any:
    """The sparse array of all lanes of vmap."""
    if axis is None:
        return mat
    name = type(mat).__name__
    if not 0 <= axis <= mat.n_batch:
        raise ValueError(
            f"{name}: cannot add out_axis={axis} for {name} array with n_batch={mat.n_batch}. {name} batch axes must "
            "be a contiguous block of leading dimensions."
        )
    arrays = tuple(whole(size, x, axis) for x in mat.arrays())
    shape = (*mat.shape[:axis], size, *mat.shape[axis:])
    return type(mat)(arrays, shape=shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)
