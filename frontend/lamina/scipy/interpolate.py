"""Interpolation on regular grids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import numpy as jnp
from lamina.core import tree
from lamina.numpy.promotion import check_arraylike, promote_inexact

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """The function that values on a grid of points define, by interpolation.

    points      increasing coordinates along each axis of the grid
    values      an array whose first axes are those of the grid
    method      "linear" or "nearest"
    fill_value  what lies outside the grid; None extrapolates
    """

    def __init__(self, points: Sequence[Any], values: Any, method: str = "linear",
                 bounds_error: bool = False, fill_value: Any = np.nan) -> None:  # fmt: skip
        self.method = _method(method)
        self.bounds_error = bounds_error
        if bounds_error:
            raise NotImplementedError("`bounds_error` takes no effect under JIT")
        check_arraylike("RegularGridInterpolator", values, *points)
        (inexact,) = promote_inexact(values)
        self.values = jnp.asarray(inexact)
        if len(points) > len(self.values.shape):
            raise ValueError(f"there are {len(points)} point arrays, but values has "
                             f"{len(self.values.shape)} dimensions")  # fmt: skip
        if fill_value is not None:
            check_arraylike("RegularGridInterpolator", fill_value)
            fill_value = jnp.asarray(fill_value)
            if fill_value.dtype.kind == "c" and self.values.dtype.kind != "c":
                raise ValueError(
                    "fill_value must be either 'None' or of a type compatible with values"
                )
        self.fill_value = fill_value
        self.grid = tuple(jnp.asarray(p) for p in points)

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """The values at points xi: their last axis (or a tuple of arrays) goes over coordinates."""
        method = self.method if method is None else _method(method)
        ndim = len(self.grid)
        x = _as_points(xi, ndim)
        if x.shape[-1] != ndim:
            raise ValueError(f"the requested sample points xi have dimension {x.shape[-1]}, but "
                             f"this RegularGridInterpolator has dimension {ndim}")  # fmt: skip
        outer, rest = x.shape[:-1], self.values.shape[ndim:]
        columns = [jnp.reshape(x[..., i], (-1,)) for i in range(ndim)]
        cells, shares, outside = [], [], jnp.zeros(columns[0].shape, bool)
        for c, grid in zip(columns, self.grid, strict=True):
            cell = jnp.clip(jnp.searchsorted(grid, c) - 1, 0, grid.shape[0] - 2)
            cells.append(cell)
            shares.append((c - grid[cell]) / (grid[cell + 1] - grid[cell]))
            outside = outside | (c < grid[0]) | (c > grid[-1])
        wide = (-1, *(1,) * len(rest))
        if method == "nearest":
            index = [jnp.where(s <= 0.5, i, i + 1) for i, s in zip(cells, shares, strict=True)]
            out = self.values[tuple(index)]
        else:
            out = jnp.zeros(())
            for corner in itertools.product((0, 1), repeat=ndim):
                weight = jnp.ones(())
                for high, s in zip(corner, shares, strict=True):
                    weight = weight * (s if high else 1 - s)
                index = [i + high for i, high in zip(cells, corner, strict=True)]
                out = out + self.values[tuple(index)] * jnp.reshape(weight, wide)
        if self.fill_value is not None:
            out = jnp.where(jnp.reshape(outside, wide), self.fill_value, out)
        return jnp.reshape(out, (*outer, *rest))


def _method(method: str) -> str:
    if method not in ("linear", "nearest"):
        raise ValueError(f"method {method!r} is not defined")
    return method


def _as_points(xi: Any, ndim: int) -> Any:
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        arrays = jnp.broadcast_arrays(*(jnp.asarray(p) for p in xi))
        return jnp.stack(arrays, -1)
    check_arraylike("RegularGridInterpolator.__call__", *tree.leaves(xi))
    x = jnp.asarray(xi)
    if len(x.shape) == 1:
        x = jnp.reshape(x, (-1, 1) if ndim == 1 else (-1, ndim))
    return x
