"""pad: arrays with elements added at the ends of their axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_to_shape,
    check_arraylike,
    concrete_or_error,
    convert,
)  # fmt: skip
from lamina.numpy.ranges import linspace

_OPTIONS: dict[str, set[str]] = {
    "constant": {"constant_values"}, "edge": set(), "wrap": set(), "empty": set(),
    "reflect": {"reflect_type"}, "symmetric": {"reflect_type"}, "linear_ramp": {"end_values"},
    "maximum": {"stat_length"}, "minimum": {"stat_length"}, "mean": {"stat_length"},
    "median": {"stat_length"},
}  # fmt: skip
Widths = list[tuple[int, int]]


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any
        ) -> Array:  # fmt: skip
    """array with elements added at the ends of its axes.

    array  an array
    mode   a name or a function

    pad_width: one number, (before, after), or a pair for each axis. Modes: constant
    (constant_values), edge, wrap, reflect and symmetric (reflect_type), linear_ramp (end_values),
    maximum, mean, median and minimum (stat_length), empty; or a function (vector, (before, after),
    axis, keyword arguments) that gives the vector with its ends filled in, one axis after another.

    >>> jnp.pad(jnp.array([1, 2]), (1, 2)).tolist()
    [0, 1, 2, 0, 0]
    >>> jnp.pad(jnp.array([1, 2]), (1, 2), mode="edge").tolist()
    [1, 1, 2, 2, 2]
    """
    check_arraylike("pad", array)
    array = asarray(array)
    if callable(mode):
        return _pad_by(mode, array, _widths(pad_width, len(array.shape)), kwargs)
    if mode not in _OPTIONS:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for {library}.numpy.pad.")
    unknown = set(kwargs) - _OPTIONS[mode]
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {sorted(unknown)}")
    widths = _widths(pad_width, len(array.shape))
    if mode in ("constant", "empty"):
        return _pad_constant(array, widths, kwargs.get("constant_values", 0))
    if mode == "linear_ramp":
        return _pad_ramp(array, widths, kwargs.get("end_values", 0))
    if mode in ("maximum", "minimum", "mean", "median"):
        return _pad_statistic(array, widths, mode, kwargs.get("stat_length"))
    reflect_type = kwargs.get("reflect_type", "even")
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"unsupported reflect_type {reflect_type!r}")
    for axis, (before, after) in enumerate(widths):
        if before or after:
            if array.shape[axis] == 0:
                raise ValueError(f"can't extend empty axis {axis} using modes other than "
                                 "'constant' or 'empty'")  # fmt: skip
            extend = _pad_odd if reflect_type == "odd" else _pad_repeating
            array = extend(array, axis, before, after, mode)
    return array


def _pad_by(
    fill: Callable[..., Array], array: Array, widths: Widths, options: dict[str, Any]
) -> Array:
    from lamina.numpy.functional import apply_along_axis

    array = _pad_constant(array, widths, 0)
    for axis, width in enumerate(widths):
        array = apply_along_axis(fill, axis, array, width, axis, options)
    return array


def _widths(pad_width: Any, ndim: int) -> Widths:
    if isinstance(pad_width, dict):
        table = np.zeros((ndim, 2), int)
        for axis, width in pad_width.items():
            table[axis] = width
        pad_width = table
    if isinstance(pad_width, (tuple, list)) and len({np.shape(width) for width in pad_width}) > 1:
        raise TypeError(f"`pad_width` entries must have the same shape, got {pad_width}")
    given = concrete_or_error(pad_width, f"pad_width of {library}.numpy.pad must be known.")
    if given.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if given.size and given.min() < 0:
        raise ValueError(
            f"{library}.numpy.pad: index can't contain negative values, got pad_width {pad_width}; "
            "slices make arrays smaller"
        )
    return [(int(a), int(b)) for a, b in _pairs(given, ndim, "pad_width")]


def _pairs(values: np.ndarray, ndim: int, name: str) -> np.ndarray:
    try:
        return np.broadcast_to(values, (ndim, 2))
    except ValueError:
        raise ValueError(
            f"{library}.numpy.pad: {name} with shape {values.shape} cannot be broadcast to {(ndim, 2)}"
        ) from None


def _pad_constant(array: Array, widths: Widths, values: Any) -> Array:
    if not isinstance(values, (tuple, list)) and np.ndim(values) == 0:
        value = convert(values, array.dtype)
        return lax.pad(array, value, [(a, b, 0) for a, b in widths])
    each = broadcast_to_shape(convert(asarray(values), array.dtype), (len(widths), 2))
    for axis, width in enumerate(widths):
        for side in (0, 1):
            config = [(0, 0, 0)] * len(widths)
            config[axis] = (width[0], 0, 0) if side == 0 else (0, width[1], 0)
            value = lax.reshape(lax.slice(each, (axis, side), (axis + 1, side + 1)), ())
            array = lax.pad(array, value, config) if width[side] else array
    return array


def _pad_repeating(array: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """edge, wrap, reflect, symmetric: NumPy says which element goes where; here each run of
    neighbours among them becomes one slice."""
    index = np.pad(np.arange(array.shape[axis]), (before, after), mode)  # type: ignore[call-overload]
    return lax.concatenate([_run(array, axis, r) for r in _runs(index)], axis)


def _runs(index: np.ndarray) -> list[np.ndarray]:
    runs, start = [], 0
    while start < len(index):
        stop = start + 1
        if stop < len(index) and (step := index[stop] - index[start]) in (-1, 0, 1):
            while stop < len(index) and index[stop] - index[stop - 1] == step:
                stop += 1
        runs.append(index[start:stop])
        start = stop
    return runs


def _run(array: Array, axis: int, index: np.ndarray) -> Array:
    low, high = int(index.min()), int(index.max())
    part = lax.slice_in_dim(array, low, high + 1, axis=axis)
    if low == high:
        shape = (*array.shape[:axis], len(index), *array.shape[axis + 1 :])
        return broadcast_to_shape(part, shape)
    return part if index[0] < index[-1] else lax.rev(part, (axis,))


def _pad_odd(array: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """Reflection through the edge's value: 2 * edge - the mirrored element, as often as needed."""
    least = 1 if mode == "reflect" else 0
    if array.shape[axis] == 1 and mode == "reflect":
        return _pad_repeating(array, axis, before, after, "edge")
    while before or after:
        n = array.shape[axis]
        left, right = min(before, n - least), min(after, n - least)
        even = _pad_repeating(array, axis, left, right, mode)
        total = even.shape[axis]

        def mirrored(part: Array, edge: int) -> Array:
            at = lax.slice_in_dim(array, edge, edge + 1, axis=axis)  # noqa: B023
            return lax.sub(lax.mul(at, np.asarray(2).astype(at.dtype)[()]), part)

        parts = [array]
        if left:
            parts.insert(0, mirrored(lax.slice_in_dim(even, 0, left, axis=axis), 0))
        if right:
            parts.append(mirrored(lax.slice_in_dim(even, total - right, total, axis=axis), n - 1))
        array = lax.concatenate(parts, axis)
        before, after = before - left, after - right
    return array


def _edges(array: Array, axis: int) -> tuple[Array, Array]:
    n = array.shape[axis]
    if n == 0:
        raise ValueError(
            f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
        )
    return lax.slice_in_dim(array, 0, 1, axis=axis), lax.slice_in_dim(array, n - 1, n, axis=axis)


def _pad_ramp(array: Array, widths: Widths, end_values: Any) -> Array:
    ends = _pairs(
        concrete_or_error(end_values, "end_values must be known."), len(widths), "end_values"
    )
    for axis, (before, after) in enumerate(widths):
        first, last = (lax.squeeze(e, (axis,)) for e in _edges(array, axis))
        low, high = (convert(e, array.dtype) for e in ends[axis])
        ramps = [
            linspace(low, first, before, endpoint=False, dtype=array.dtype, axis=axis),
            lax.rev(
                linspace(high, last, after, endpoint=False, dtype=array.dtype, axis=axis), (axis,)
            ),
        ]
        shape = list(array.shape)
        parts = []
        for ramp, width in zip(ramps, (before, after), strict=True):
            shape[axis] = width
            parts.append(broadcast_to_shape(ramp, tuple(shape)))
        array = lax.concatenate([parts[0], array, parts[1]], axis)
    return array


def _pad_statistic(array: Array, widths: Widths, mode: str, length: Any) -> Array:
    from lamina.numpy import averages, quantiles, reductions
    from lamina.numpy.rounding import round as round_

    operations: dict[str, Callable[..., Array]] = {
        "maximum": reductions.max, "minimum": reductions.min, "mean": averages.mean,
        "median": quantiles.median,
    }  # fmt: skip
    lengths = None if length is None else _pairs(np.asarray(length), len(widths), "stat_length")
    for axis, (before, after) in enumerate(widths):
        n = array.shape[axis]
        if before or after:
            _edges(array, axis)
        counts = (n, n) if lengths is None else [min(int(k), n) for k in lengths[axis]]
        if any(width and not count for width, count in zip((before, after), counts, strict=True)):
            raise ValueError(f"pad: stat_length of 0 yields no value for padding axis {axis} by its {mode}")
        parts = [array]
        for width, part, at in (
            (before, lax.slice_in_dim(array, 0, counts[0], axis=axis), 0),
            (after, lax.slice_in_dim(array, n - counts[1], n, axis=axis), len(parts) + 1),
        ):
            value = operations[mode](part, axis=axis, keepdims=True)
            if mode in ("mean", "median") and dtypes.is_integer(array.dtype):
                value = round_(value)
            shape = (*array.shape[:axis], width, *array.shape[axis + 1 :])
            parts.insert(at, broadcast_to_shape(convert(value, array.dtype), shape))
        array = lax.concatenate(parts, axis)
    return array
