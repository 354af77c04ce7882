"""Grids: meshgrid indices ix_, and objects that are indexed to make arrays, mgrid ogrid r_ c_ s_ index_exp."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from lamina import lax
from lamina.config import numpy_dtype_promotion
from lamina.core import dtypes
from lamina.core.library import library
from lamina.numpy.creation import array, as_shape, asarray
from lamina.numpy.joining import concatenate, stack
from lamina.numpy.manipulation import moveaxis
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    check_arraylike,
    concrete_or_error,
    promote_dtypes,
    requested_dtype,
)
from lamina.numpy.ranges import arange, linspace


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
             ) -> tuple[Array, ...]:  # fmt: skip
    """Coordinate arrays of the grid spanned by vectors, in "xy" or matrix ("ij") order.

    xi        vectors or numbers
    copy      without effect
    sparse    whether each array varies along its own axis only
    indexing  "xy" (the first vector along the second axis) or "ij"; ValueError of others

    >>> [grid.tolist() for grid in jnp.meshgrid(jnp.array([1, 2]), jnp.array([3, 4]))]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    check_arraylike("meshgrid", *xi)
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    args = [asarray(x) for x in xi]
    if builtins.any(len(a.shape) > 1 for a in args):
        raise ValueError(
            f"Arguments to meshgrid must be 0 or 1-dimensional, got {[a.shape for a in args]}"
        )
    args = [lax.reshape(a, (a.size,)) for a in args]
    swap = indexing == "xy" and len(args) >= 2
    order = [1, 0, *range(2, len(args))] if swap else [*range(len(args))]
    full_shape = tuple(args[i].shape[0] for i in order)
    out = []
    for i, a in enumerate(args):
        at = order.index(i)
        shape = (
            tuple(s if j == at else 1 for j, s in enumerate(full_shape)) if sparse else full_shape
        )
        out.append(lax.broadcast_in_dim(a, shape, (at,)))
    return tuple(out)



@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: Literal[False] = False
) -> Array: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, *, sparse: Literal[True]
) -> tuple[Array, ...]: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Any: ...
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The index grids of a shape: one array, or with sparse a tuple of broadcastable ones.

    dimensions  the shape
    dtype       the dtype of the indices
    sparse      whether each grid varies along its own axis only

    >>> jnp.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    to = requested_dtype(dtype, "indices", keep=dtypes.canonicalize(int))
    dims = as_shape(tuple(dimensions))
    out = [
        lax.broadcasted_iota(
            to, tuple(d if i == j else 1 for j, d in enumerate(dims)) if sparse else dims, i
        )
        for i in range(len(dims))
    ]
    if sparse:
        return tuple(out)
    if not out:
        return lax.full((0,), 0, to)
    return lax.concatenate([lax.expand_dims(x, (0,)) for x in out], 0)


def _range(s: slice, name: str) -> Array:
    """start:stop:step as arange; an imaginary step is the number of points from start to stop."""
    given = (
        None if part is None else concrete_or_error(part, f"slice {word} of {library}.numpy.{name}")[()]
        for part, word in ((s.start, "start"), (s.stop, "stop"), (s.step, "step"))
    )
    start, stop, step = (_plain(part) for part in given)
    step = 1 if step is None else step
    if stop is None:  # one number is where to stop, as of arange
        start, stop = 0, 0 if start is None else start
    start = 0 if start is None else start
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


def _plain(x: Any) -> Any:
    return x.item() if isinstance(x, (np.ndarray, np.generic)) else x


class _Grid:
    def __init__(self, name: str, sparse: bool) -> None:
        self._name, self._sparse = name, sparse

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        """The grid of these ranges: start:stop:step, or start:stop:nj for n points."""
        if isinstance(key, slice):
            return _range(key, self._name)
        axes = [_range(k, self._name) for k in key]
        if axes:
            with numpy_dtype_promotion("standard"):  # the ranges' dtypes are not the caller's choice
                axes = [asarray(a) for a in promote_dtypes(*axes)]
        grid = meshgrid(*axes, indexing="ij", sparse=self._sparse)
        if self._sparse:
            return list(grid)
        return stack(grid) if grid else lax.full((0,), 0, dtypes.canonicalize(int))

    def __repr__(self) -> str:
        return f"{library}.numpy.{self._name}"


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


class _IndexExpression:
    """Gives back how it is indexed: s_[1:2, ...] is (slice(1, 2), Ellipsis)."""

    def __init__(self, always_tuple: bool) -> None:
        self._always_tuple = always_tuple

    def __getitem__(self, item: Any) -> Any:
        return (item,) if self._always_tuple and not isinstance(item, tuple) else item


s_ = _IndexExpression(always_tuple=False)
index_exp = _IndexExpression(always_tuple=True)


class _Concatenation:
    """r_ and c_: concatenation by indexing.

    A string in front directs: "axis,ndim,trans" names the axis to join along, the least number of
    axes of each item, and where the axes of items with fewer begin; "r" and "c" make matrices.
    """

    def __init__(self, name: str, axis: int, ndim: int, trans: int) -> None:
        self._name, self._default = name, (axis, ndim, trans)

    def __getitem__(self, key: Any) -> Array:
        items = key if isinstance(key, tuple) else (key,)
        axis, ndim, trans = self._default
        as_matrix = ""
        if items and isinstance(items[0], str):
            directive, items = items[0], items[1:]
            if directive in ("r", "c"):
                as_matrix = directive
            else:
                axis, ndim, trans = self._directed(directive)
        parts = [self._item(item, ndim, trans) for item in items]
        out = concatenate(parts, axis)
        if as_matrix and len(out.shape) < 2:
            out = lax.expand_dims(out, (0,) if as_matrix == "r" else (1,))
        return out

    def _directed(self, directive: str) -> tuple[int, int, int]:
        given = directive.split(",")
        axis, ndim, trans = self._default
        try:
            numbers = [int(g) for g in given]
            if not 1 <= len(numbers) <= 3:
                raise ValueError
        except ValueError:
            raise ValueError(f"could not understand directive {directive!r}") from None
        rest = (axis, ndim, trans)[len(numbers) :]
        return (*numbers, *rest)  # type: ignore[return-value]

    def _item(self, item: Any, ndim: int, trans: int) -> Array:
        if isinstance(item, str):
            raise ValueError("string directive must be placed at the beginning")
        x = _range(item, self._name) if isinstance(item, slice) else asarray(item)
        own = len(x.shape) if not isinstance(item, slice) else 1
        x = array(x, ndmin=max(ndim, 1))
        missing = ndim - own
        if trans != -1 and missing > 0:
            # The item's own axes, which array(ndmin=) put last, begin at `trans`.
            at = trans if trans >= 0 else max(missing + trans + 1, 0)
            ends = range(missing, missing + own)
            x = moveaxis(x, tuple(ends), tuple(range(at, at + own)))
        return x


r_ = _Concatenation("r_", 0, 1, -1)
c_ = _Concatenation("c_", -1, 2, 0)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors as arrays that broadcast to a grid: x[ix_(rows, columns)] takes the sub-matrix.

    args  vectors; ValueError of others

    >>> [x.shape for x in jnp.ix_(jnp.array([0, 1]), jnp.array([2, 3, 4]))]
    [(2, 1), (1, 3)]
    """
    check_arraylike("ix_", *args)
    out = []
    for i, a in enumerate(args):
        x = asarray(a)
        if len(x.shape) != 1:
            raise ValueError(f"Arguments to {library}.numpy.ix_ must be 1-dimensional, got shape "
                             f"{tuple(x.shape)}")  # fmt: skip
        if x.dtype == np.bool_:
            raise NotImplementedError(f"Boolean arguments to {library}.numpy.ix_ are not implemented")
        if x.shape[0] == 0:
            x = lax.convert_element_type(x, dtypes.canonicalize(int))
        out.append(lax.expand_dims(x, tuple(j for j in range(len(args)) if j != i)))
    return tuple(out)
