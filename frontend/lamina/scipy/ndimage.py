"""Images of any number of axes: map_coordinates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import check_arraylike, promote_inexact

__all__ = ["map_coordinates"]

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def map_coordinates(input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant",
                    cval: Any = 0.0) -> Any:  # fmt: skip
    """The values of an array between its elements, interpolated.

    input        an array.
    coordinates  an array for each axis of input, all of one shape, which the result has.
    order        0 takes the nearest element, 1 interpolates linearly.
    mode         what lies outside: "constant" (cval), "nearest", "wrap", "mirror" (about the middle
                 of edge elements) or "reflect" (about their edges).
    cval         the constant.

    Raises ValueError where there is not one array for each axis; NotImplementedError for other
    orders and modes.

    >>> grid = jnp.array([[0.0, 1.0], [2.0, 3.0]])
    >>> places = [jnp.array([0.0, 0.5]), jnp.array([1.0, 0.5])]
    >>> print(lamina.scipy.ndimage.map_coordinates(grid, places, order=1))
    [1.  1.5]
    """
    check_arraylike("map_coordinates", input, cval)
    x = jnp.asarray(input)
    places = [jnp.asarray(c) for c in coordinates]
    if len(places) != len(x.shape):
        raise ValueError("coordinates must be a sequence of length input.ndim, but "
                         f"{len(places)} != {len(x.shape)}")  # fmt: skip
    if mode not in _MODES:
        raise NotImplementedError(
            f"map_coordinates does not yet support mode {mode}. "
            f"Currently supported modes are {set(_MODES)}."
        )
    if order not in (0, 1):
        raise NotImplementedError("map_coordinates currently requires order<=1")
    return _map(x, places, jnp.asarray(cval).astype(x.dtype), order=int(order), mode=mode)


def _inside(index: Any, n: int, mode: str) -> tuple[Any, Any]:
    """The element that an index means, and whether there is one."""
    if mode == "constant":
        return jnp.clip(index, 0, n - 1), (index >= 0) & (index < n)
    if mode == "nearest":
        return jnp.clip(index, 0, n - 1), True
    if mode == "wrap":
        return index % n, True
    if mode == "mirror":
        period = max(2 * (n - 1), 1)
        place = index % period
        return jnp.minimum(place, period - place) if n > 1 else jnp.zeros_like(index), True
    place = index % (2 * n)
    return jnp.minimum(place, 2 * n - 1 - place), True


def _rounded(x: Any) -> Any:
    """The nearest integer; halves go away from zero."""
    return lax.round(x) if dtypes.is_inexact(x.dtype) else x


@compiled(static=("order", "mode"))
def _map(x: Any, places: list[Any], outside: Any, *, order: int, mode: str) -> Any:
    corners: list[Any] = []
    for c, n in zip(places, x.shape, strict=True):
        if order == 0 or dtypes.is_integer(c.dtype):
            nearest = _rounded(c).astype(np.int32)
            corners.append([(*_inside(nearest, n, mode), None)])
            continue
        (c,) = promote_inexact(c)
        low = jnp.floor(c)
        share = c - low
        index = low.astype(np.int32)
        corners.append([
            (*_inside(index, n, mode), 1 - share), (*_inside(index + 1, n, mode), share)
        ])  # fmt: skip
    total: Any = None
    for corner in itertools.product(*corners):
        value = x[tuple(index for index, _, _ in corner)] if corner else x
        for _, found, _ in corner:
            value = value if found is True else jnp.where(found, value, outside)
        for _, _, weight in corner:
            value = value if weight is None else value * weight
        total = value if total is None else total + value
    if dtypes.is_integer(x.dtype) and dtypes.is_inexact(total.dtype):
        total = _rounded(total)
    return total.astype(x.dtype)
