"""Set operations: unique isin union1d intersect1d setdiff1d setxor1d.

Results have as many elements as the values say, so the arrays must be concrete, or `size=` says
how many to give; what is missing is filled up with fill_value, by default the least element.
"""

from __future__ import annotations

import operator
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.indexing import take
from lamina.numpy.joining import concatenate
from lamina.numpy.logic import greater, logical_and
from lamina.numpy.manipulation import moveaxis, ravel
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_to_shape,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    convert,
    literal,
    pick,
    promote_dtypes,
)  # fmt: skip
from lamina.numpy.searching import nonzero, searchsorted
from lamina.numpy.sorting import sort


@overload
def unique(ar: ArrayLike, return_index: Literal[False] = False, return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False, axis: int | None = None, *, equal_nan: bool = True,
    size: int | None = None, fill_value: Any = None, sorted: bool = True) -> Array: ...
@overload
def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
    size: int | None = None, fill_value: Any = None, sorted: bool = True) -> Any: ...
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """The distinct elements in order (or slices along an axis), and if asked for: where each first
    occurs, which of them each element is, how often each occurs.

    ar                                           an array
    return_index, return_inverse, return_counts  what else is wanted
    axis                                         the axis of the slices; None: elements
    equal_nan                                    whether all NaNs are one
    size                                         how many results there are; needed where the
                                                 values are traced
    fill_value                                   what fills the results up to size
    sorted                                       without effect, the results always are

    >>> jnp.unique(jnp.array([3, 1, 3])).tolist()
    [1, 3]
    """
    check_arraylike("unique", ar)
    x = asarray(ar)
    if size is None:
        concrete_or_error(
            x, f"The error arose for the first argument of {library}.numpy.unique(). To make it "
               "compatible with JIT and other transforms, you can specify a concrete value for the "
               "size argument, which will determine the output size.",
        )  # fmt: skip
    else:
        size = operator.index(concrete_or_error(size, "the size of unique must be known")[()])
    if axis is None:
        rows, at, shape = lax.reshape(x, (x.size, 1)), 0, x.shape
    else:
        at = canonical_axis(axis, len(x.shape))
        front = moveaxis(x, at, 0)
        rows, shape = lax.reshape(front, (front.shape[0], _rest(front))), front.shape
    if size and not rows.shape[0] and fill_value is None:
        raise ValueError(f"unique: an empty input has no element to fill size={size} with: pass fill_value")
    if dtypes.is_complex(rows.dtype):  # those with a NaN in one part are NaN, and are sorted as that
        rows = pick(lax.ne(rows, rows), literal(rows, np.nan), rows)
    order, first = _groups(rows, equal_nan=bool(equal_nan))
    count = int(np.asarray(first).sum()) if size is None else size
    n = rows.shape[0]
    bounds = nonzero(first, size=count + 1, fill_value=n)[
        0
    ]  # where groups start, and the last ends
    starts = lax.slice(bounds, (0,), (count,))
    values, index = _representatives(rows, order, starts, sized=size is not None, fill=fill_value)
    out = lax.reshape(values, (count,)) if axis is None else (
        moveaxis(lax.reshape(values, (count, *shape[1:])), 0, at)
    )  # fmt: skip
    results: list[Any] = [out]
    to = dtypes.canonicalize(np.int64)
    if return_index:
        results.append(lax.convert_element_type(index, to))
    if return_inverse:
        number = lax.sub(lax.cumsum(lax.convert_element_type(first, to), 0), np.ones((), to)[()])
        inverse = lax.sort((order, number), 0)[1] if rows.shape[0] else number
        results.append(lax.reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        counts = lax.sub(lax.slice(bounds, (1,), (count + 1,)), starts)
        results.append(lax.convert_element_type(counts, to))
    return results[0] if len(results) == 1 else tuple(results)


def _rest(x: Array) -> int:
    return int(np.prod(x.shape[1:], dtype=np.int64))


def _representatives(rows: Array, order: Array, starts: Array, *, sized: bool, fill: Any
                     ) -> tuple[Array, Array]:  # fmt: skip
    """The first row of each group and its index; beyond the groups fill, or the first row again."""
    n = rows.shape[0]
    if n == 0:
        value = literal(rows, 0) if fill is None else convert(fill, rows.dtype)
        return broadcast_to_shape(value, (starts.shape[0], rows.shape[1])), lax.full_like(starts, 0)
    index = take(order, starts, mode="clip")
    values = take(rows, index, axis=0, mode="clip")
    if not sized or not starts.shape[0]:
        return values, index
    there = lax.lt(starts, literal(starts, n))
    spare = lax.slice_in_dim(values, 0, 1) if fill is None else convert(asarray(fill), values.dtype)
    first = lax.index_in_dim(index, 0, keepdims=False)
    return pick(lax.expand_dims(there, (1,)), values, spare), pick(there, index, first)


@compiled(static=("equal_nan",))
def _groups(rows: Any, *, equal_nan: bool) -> tuple[Array, Array]:
    """The stable sorting order of rows, and which of the sorted rows differ from the one before."""
    n, width = rows.shape
    index = lax.iota(dtypes.canonicalize(np.int64), n)
    columns = [lax.index_in_dim(rows, k, 1, keepdims=False) for k in range(width)]
    if not columns or not n:
        return index, lax.eq(index, literal(index, 0))
    *columns, order = lax.sort((*columns, index), 0, num_keys=width)
    differs = None
    for c in columns:
        now, before = lax.slice(c, (1,), (n,)), lax.slice(c, (0,), (n - 1,))
        new = lax.ne(now, before)
        if equal_nan and dtypes.is_inexact(c.dtype):
            both = lax.bitwise_and(lax.ne(now, now), lax.ne(before, before))
            new = lax.bitwise_and(new, lax.bitwise_not(both))
        differs = new if differs is None else lax.bitwise_or(differs, new)
    return order, lax.concatenate([lax.full((1,), True), differs], 0)


class UniqueAll(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """unique with everything it knows.

    x           an array
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size

    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    return UniqueAll(
        *unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueCounts:
    """unique with counts.

    x           an array
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    return UniqueCounts(
        *unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueInverse:
    """unique with the inverse.

    x           an array
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    return UniqueInverse(
        *unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """unique without more.

    x           an array
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size

    >>> jnp.unique_values(jnp.array([3, 1, 3])).tolist()
    [1, 3]
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# ---- of two arrays -----------------------------------------------------------------------------
_ISIN_METHODS = ("auto", "compare_all", "binary_search", "sort")


def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False,
         invert: bool = False, *, method: str = "auto") -> Array:  # fmt: skip
    """For each element whether it is among test_elements.

    element        an array
    test_elements  an array
    assume_unique  without effect on the result
    invert         whether to tell which are not
    method         "auto", "compare_all", "binary_search" or "sort", without effect on the result

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 5])).tolist()
    [False, True, False]
    """
    check_arraylike("isin", element, test_elements)
    if method not in _ISIN_METHODS:
        raise ValueError(f"isin: method={method!r} is not one of {', '.join(map(repr, _ISIN_METHODS))}")
    x, tests = (asarray(a) for a in promote_dtypes(element, test_elements))
    out = convert(_isin(x, ravel(tests)), np.dtype(bool))
    return lax.bitwise_not(out) if invert else out


@compiled
def _isin(x: Any, tests: Any) -> Array:
    n = tests.shape[0]
    if n == 0:
        return lax.full(x.shape, False)
    ordered = lax.sort(tests, 0)
    at = lax.min(lax.convert_element_type(searchsorted(ordered, x), np.int32), np.int32(n - 1))
    return lax.eq(take(ordered, at, mode="clip"), x)


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """The distinct elements of both arrays, in order.

    ar1, ar2    arrays, which are flattened
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size

    >>> jnp.union1d(jnp.array([1, 3]), jnp.array([2, 3])).tolist()
    [1, 2, 3]
    """
    check_arraylike("union1d", ar1, ar2)
    return unique(concatenate([ar1, ar2], None), size=size, fill_value=fill_value)


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """The distinct elements of ar1 that are not in ar2.

    ar1, ar2       arrays, which are flattened
    assume_unique  a promise that neither has an element twice
    size           how many results there are; needed where the values are traced
    fill_value     what fills the results up to size

    >>> jnp.setdiff1d(jnp.array([1, 3]), jnp.array([2, 3])).tolist()
    [1]
    """
    check_arraylike("setdiff1d", ar1, ar2)
    values, there = (ravel(ar1), True) if assume_unique else _distinct(ar1, size)
    chosen = logical_and(isin(values, ar2, invert=True), there)
    return _chosen(values, chosen, size, 0 if fill_value is None else fill_value)


@overload
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False,
    return_indices: Literal[False] = False, *, size: int | None = None, fill_value: Any = None) -> Array: ...
@overload
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
    return_indices: Literal[True], size: int | None = None, fill_value: Any = None) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False,
    return_indices: bool = False, *, size: int | None = None, fill_value: Any = None) -> Any: ...
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements that both arrays have, and if asked for where each first has them.

    ar1, ar2        arrays, which are flattened
    assume_unique   a promise that neither has an element twice
    return_indices  whether the indices are wanted
    size            how many results there are; needed where the values are traced
    fill_value      what fills the results up to size

    >>> jnp.intersect1d(jnp.array([1, 3]), jnp.array([2, 3])).tolist()
    [3]
    """
    check_arraylike("intersect1d", ar1, ar2)
    a, b = (ravel(x) for x in promote_dtypes(asarray(ar1), asarray(ar2)))
    values, where, counts = unique(a, True, False, True, size=None if size is None else a.size)
    common = logical_and(isin(values, b), greater(counts, 0))
    out = _chosen(values, common, size, fill_value)
    if not return_indices:
        return out
    order = lax.sort((b, lax.iota(dtypes.canonicalize(np.int64), b.shape[0])), 0)
    at_b = take(order[1], searchsorted(order[0], out), mode="clip")
    at_a = _chosen(where, common, size, a.size)
    return out, at_a, pick(greater(a.size, at_a), at_b, literal(at_b, b.size))


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """The distinct elements that exactly one of the arrays has.

    ar1, ar2       arrays, which are flattened
    assume_unique  a promise that neither has an element twice
    size           how many results there are; needed where the values are traced
    fill_value     what fills the results up to size

    >>> jnp.setxor1d(jnp.array([1, 3]), jnp.array([2, 3])).tolist()
    [1, 2]
    """
    check_arraylike("setxor1d", ar1, ar2)
    arrays = promote_dtypes(asarray(ar1), asarray(ar2))
    if assume_unique:
        values = sort(concatenate([ravel(x) for x in arrays]))
        n = values.shape[0]
        new = lax.ne(lax.slice(values, (min(n, 1),), (n,)), lax.slice(values, (0,), (max(n - 1, 0),)))
        end = lax.full((min(n, 1),), True)
        alone = logical_and(concatenate([end, new]), concatenate([new, end]))
        return _chosen(values, alone, size, fill_value)
    if size is None:
        return sort(concatenate([setdiff1d(ar1, ar2), setdiff1d(ar2, ar1)]))
    (a, there_a), (b, there_b) = (_distinct(x, size) for x in arrays)
    alone = concatenate([logical_and(isin(a, b, invert=True), there_a),
                         logical_and(isin(b, a, invert=True), there_b)])  # fmt: skip
    others, values = lax.sort((lax.bitwise_not(alone), concatenate([a, b])), 0, num_keys=2)
    return _chosen(values, lax.bitwise_not(others), size, fill_value)


def _distinct(x: ArrayLike, size: int | None) -> tuple[Array, Array]:
    """The distinct elements, as many as x has where a size is asked for, and which of them are no
    filling."""
    values, counts = unique(x, return_counts=True, size=None if size is None else asarray(x).size)
    return values, greater(counts, 0)


def _chosen(values: Array, mask: Array, size: int | None, fill_value: Any) -> Array:
    n = values.shape[0]
    at = nonzero(mask, size=size, fill_value=n)[0]
    if not n:
        fill = 0 if fill_value is None else convert(asarray(fill_value), values.dtype)
        return lax.full((size or 0,), fill, values.dtype)
    out = take(values, at, mode="clip")
    if size is None:
        return out
    there = lax.lt(at, literal(at, n))
    if fill_value is None:  # the first, or 0 where there is none
        fill = lax.slice_in_dim(pick(there, out, literal(out, 0)), 0, min(size, 1))
    else:
        fill = convert(asarray(fill_value), out.dtype)
    return pick(there, out, fill)
