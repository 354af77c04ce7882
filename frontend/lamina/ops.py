"""Reductions of segments: rows of an array that share an index are combined."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from lamina import lax
from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.core.array_class import Array
from lamina.numpy.out_sharding import sum_over_parts, takes_terms
from lamina.numpy.promotion import check_arraylike, concrete_or_error

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _segment(
    name: str,
    method: str,
    identity: Any,
    combine: Callable[..., Any],
    data: Any,
    segment_ids: Any,
    num_segments: int | None,
    indices_are_sorted: bool,
    unique_indices: bool,
    bucket_size: int | None,
    mode: Any,
    out_sharding: Any = None,
) -> Any:
    check_arraylike(name, data, segment_ids)
    data, ids = jnp.asarray(data), jnp.asarray(segment_ids)
    if not dtypes.is_integer(ids.dtype):
        raise TypeError(f"{name}: segment_ids must be integers, got {ids.dtype.name}")
    if num_segments is None:
        known = concrete_or_error(
            ids, f"The num_segments argument of {name} must be given where segment_ids is traced."
        )
        num_segments = int(known.max()) + 1 if known.size else 0
    count = operator.index(num_segments)
    if count < 0:
        raise ValueError("num_segments must be non-negative.")
    rows = data.shape[len(ids.shape) :]
    _check_fits(name, data.shape, ids.shape, rows)
    if out_sharding is not None:
        if method != "add":
            raise NotImplementedError(
                f"{name} does not give terms of its result (unreduced axes): those of segment_sum alone can be added up"
            )

        def of_parts(data: Any, ids: Any) -> Any:
            return _segment(name, method, identity, combine, data, ids, count, indices_are_sorted, unique_indices,
                            bucket_size, mode)  # fmt: skip

        return sum_over_parts(name, of_parts, out_sharding, data, ids)
    fill = identity(data.dtype)
    mode = lax.GatherScatterMode.from_any(mode)
    if not dtypes.is_unsigned(ids.dtype):
        # A negative index is out of bounds: it names no segment from the end.
        beyond = 0 if mode is lax.GatherScatterMode.CLIP else count
        ids = jnp.where(ids < 0, jnp.asarray(beyond).astype(ids.dtype), ids)
    keywords = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices,
                "mode": mode}  # fmt: skip
    if not count:
        return jnp.zeros((0, *rows), data.dtype)
    if bucket_size is None:
        out = jnp.full((count, *rows), fill, data.dtype)
        return getattr(out.at[ids], method)(data, **keywords)
    if bucket_size <= 0:
        raise ValueError(f"bucket_size must be None or a positive number, got {bucket_size}")
    buckets = -(-ids.shape[0] // bucket_size)
    out = jnp.full((buckets, count, *rows), fill, data.dtype)
    keywords["indices_are_sorted"] = False
    which = jnp.arange(ids.shape[0]) // bucket_size
    which = which.reshape((-1,) + (1,) * (len(ids.shape) - 1))
    out = getattr(out.at[jnp.broadcast_to(which, ids.shape), ids], method)(data, **keywords)
    return combine(out, axis=0).astype(data.dtype)


def _check_fits(
    name: str, data: tuple[int, ...], ids: tuple[int, ...], rows: tuple[int, ...]
) -> None:
    wanted = (*ids, *rows)
    sizes = zip(data[::-1], wanted[::-1])
    if len(data) > len(wanted) or any(got not in (1, want) for got, want in sizes):
        raise ValueError(
            f"{name}: segment_ids names a segment for each row of data, so its shape must be how data's "
            f"begins; got segment_ids of shape {ids} and data of shape {data}"
        )


@takes_terms
def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None, *,
                out_sharding: Any = None) -> Array:  # fmt: skip
    """The sums of the rows of data with equal index; row i of the result is that of index i.

    num_segments, by default the greatest index plus one, must be given where segment_ids is traced.
    Rows with indices outside [0, num_segments) are dropped, unless mode says otherwise. With
    bucket_size rows are first summed in groups of so many, for precision.

    data                (n, ...)
    segment_ids         integers, (n,): which row of the result.
    indices_are_sorted  segment_ids never fall.
    unique_indices      no index is there twice.
    out_sharding        how the result lies over a mesh. Along axes that are `unreduced` there each device has the
                        sums of its rows, which are terms of the result.

    >>> lamina.ops.segment_sum(jnp.array([1, 2, 5]), jnp.array([0, 0, 1])).tolist()
    [3, 5]
    """
    return _segment("segment_sum", "add", lambda d: 0, jnp.sum, data, segment_ids, num_segments,
                    indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)  # fmt: skip


@takes_terms
def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 bucket_size: int | None = None, mode: Any = None, *,
                 out_sharding: Any = None) -> Array:  # fmt: skip
    """The products of the rows of data with equal index; 1 where there is none. See segment_sum.

    data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding  as of
    segment_sum, but for unreduced axes.

    >>> lamina.ops.segment_prod(jnp.array([1, 2, 5]), jnp.array([0, 0, 1])).tolist()
    [2, 5]
    """
    return _segment("segment_prod", "mul", lambda d: 1, jnp.prod, data, segment_ids, num_segments,
                    indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)  # fmt: skip


@takes_terms
def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None, *,
                out_sharding: Any = None) -> Array:  # fmt: skip
    """The maxima of the rows of data with equal index; -inf or the least integer where there is
    none. See segment_sum.

    data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding  as of
    segment_sum, but for unreduced axes.

    >>> lamina.ops.segment_max(jnp.array([1, 2, 5]), jnp.array([0, 0, 1])).tolist()
    [2, 5]
    """
    return _segment("segment_max", "max", dtypes.least, jnp.max, data, segment_ids, num_segments,
                    indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)  # fmt: skip


@takes_terms
def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None, *,
                out_sharding: Any = None) -> Array:  # fmt: skip
    """The minima of the rows of data with equal index; inf or the greatest integer where there is
    none. See segment_sum.

    data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding  as of
    segment_sum, but for unreduced axes.

    >>> lamina.ops.segment_min(jnp.array([1, 2, 5]), jnp.array([0, 0, 1])).tolist()
    [1, 5]
    """
    return _segment("segment_min", "min", dtypes.greatest, jnp.min, data, segment_ids, num_segments,
                    indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)  # fmt: skip
