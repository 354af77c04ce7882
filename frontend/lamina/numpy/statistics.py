"""Statistics that are more than a reduction: histogram bincount cov corrcoef convolve correlate."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.numpy import averages, products, reductions
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray
from lamina.numpy.out_sharding import sum_over_parts, takes_terms
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    check_arraylike,
    concrete_or_error,
    convert,
    literal,
    promote_args_inexact,
    promote_dtypes,
    promote_inexact,
    requested_dtype,
)  # fmt: skip


@takes_terms
def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *,
             length: int | None = None, out_sharding: Any = None) -> Array:  # fmt: skip
    """How often each of 0, 1, 2, ... occurs in a vector of integers, or the sum of its weights.

    x          a vector of integers
    weights    a vector of as many numbers
    minlength  the least number of entries
    length     the number of entries, needed where x is traced
    out_sharding  how the result lies over a mesh: whole, or as terms (`unreduced`), the counts of each device's part

    The result has as many entries as `length` says; without it, as the greatest value needs.

    >>> jnp.bincount(jnp.array([0, 2, 2])).tolist()
    [1, 0, 2]
    """
    check_arraylike("bincount", x)
    x = asarray(x)
    if x.dtype == np.bool_:
        x = lax.convert_element_type(x, np.int32)
    if not dtypes.is_integer(x.dtype):
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype.name}")
    if len(x.shape) != 1:
        raise ValueError("only 1-dimensional input supported.")
    least = operator.index(concrete_or_error(minlength, "'minlength' argument of bincount")[()])
    if length is None:
        known = concrete_or_error(
            x,
            "The error occurred because argument 'x' of bincount is traced. To "
            "avoid this error, pass a static `length` argument.",
        )
        length = max(least, int(known.max()) + 1 if known.size else 0)
    if weights is None:
        counted: Any = np.ones((), dtypes.canonicalize(np.int64))[()]
    else:
        counted = asarray(weights)
        if counted.shape != x.shape:
            raise ValueError("shape of weights must match shape of x.")
        if not dtypes.is_inexact(counted.dtype):
            counted = convert(counted, dtypes.canonicalize(np.int64))
    x = lax.max(x, literal(x, 0)) if dtypes.is_signed(x.dtype) else x

    def of_parts(x: Any, *given: Any) -> Any:
        zero = lax.full((int(length),), 0, counted.dtype)
        return zero.at[x].add(given[0] if given else counted, mode="drop")

    given = () if weights is None else (counted,)
    if out_sharding is not None:
        return sum_over_parts("bincount", of_parts, out_sharding, x, *given)
    return of_parts(x, *given)


def _inexact(dtype: DTypeLike, name: str) -> np.dtype:
    to = requested_dtype(dtype, name)
    if not dtypes.is_inexact(to):
        raise ValueError(f"{name}: dtype must be a subclass of float or complex; got {dtype=}")
    return to


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance matrix of variables, one a row (a column without rowvar), computed in dtype.

    m, y                vectors or matrices of observations
    rowvar              whether variables are rows
    bias                whether to divide by the number of observations rather than one less
    ddof                what the number is lessened by; None: as bias says
    fweights, aweights  how often each observation counts, and how much
    dtype               the dtype to compute in

    >>> jnp.cov(jnp.array([[0.0, 2.0], [2.0, 0.0]])).tolist()
    [[2.0, -2.0], [-2.0, 2.0]]
    """
    if dtype is not None:
        to = _inexact(dtype, "cov")
        m, y = convert(m, to), None if y is None else convert(y, to)
    x = _variables(m, y, rowvar)
    if ddof is None:
        ddof = 0 if bias else 1
    weights = _weights_of_observations(x, fweights, aweights)
    if 0 in x.shape:
        return lax.full([n for n in (x.shape[0],) * 2 if n != 1], np.nan, x.dtype)
    return _covariance(x, weights, None if aweights is None else asarray(aweights), ddof)


@compiled(static=("ddof",))
def _covariance(x: Array, weights: Array | None, aweights: Array | None, ddof: int) -> Array:
    """That of variables, one a row, whose observations have these weights."""
    from lamina.numpy.arithmetic import conj

    middle, total = averages.average(x, axis=1, weights=weights, returned=True)
    total = lax.index_in_dim(total, 0, keepdims=False)
    if ddof == 0 and weights is not None:
        freedom = total
    elif aweights is None:
        freedom = lax.sub(total, literal(total, ddof))
    else:
        assert weights is not None
        squares = reductions.sum(lax.mul(weights, convert(aweights, weights.dtype)))
        freedom = lax.sub(total, lax.div(lax.mul(literal(squares, ddof), squares), total))
    x = lax.sub(x, lax.expand_dims(middle, (1,)))
    weighted = (
        x if weights is None else lax.mul(x, convert(lax.expand_dims(weights, (0,)), x.dtype))
    )
    out = lax.div(products.dot(x, conj(lax.transpose(weighted, (1, 0)))), convert(freedom, x.dtype))
    return lax.squeeze(out, tuple(i for i, n in enumerate(out.shape) if n == 1))


def _variables(m: Any, y: Any, rowvar: bool) -> Array:
    """The variables of both, one a row."""
    from lamina.numpy.joining import concatenate
    from lamina.numpy.manipulation import atleast_2d

    given = promote_args_inexact("cov", m) if y is None else promote_args_inexact("cov", m, y)
    for x, name in reversed(list(zip(given, "my", strict=False))):
        if np.ndim(x) > 2:
            raise ValueError(f"{name} has more than 2 dimensions")
    rows = [
        atleast_2d(x) if rowvar or np.ndim(x) == 1 else lax.transpose(atleast_2d(x), (1, 0)) for x in given
    ]
    return rows[0] if len(rows) == 1 else concatenate(rows, 0)


def _weights_of_observations(x: Array, fweights: Any, aweights: Any) -> Any:
    """The product of the weights that are given; None without any."""
    weights: Any = None
    for w, name in ((fweights, "fweights"), (aweights, "aweights")):
        if w is None:
            continue
        check_arraylike("cov", w)
        w = asarray(w)
        if len(w.shape) != 1 or w.shape[0] != x.shape[1]:
            raise RuntimeError(f"cov: {name} must be a vector of one entry for each observation")
        if name == "fweights" and not dtypes.is_integer(w.dtype):
            raise TypeError(f"cov: fweights must be integers, got {w.dtype}: pass others as aweights")
        w = convert(w, dtypes.real_dtype(x.dtype))
        weights = w if weights is None else lax.mul(weights, w)
    return weights


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True,
             dtype: DTypeLike | None = None) -> Array:  # fmt: skip
    """The correlation matrix of variables, one a row (a column without rowvar), computed in dtype.

    x, y    vectors or matrices of observations
    rowvar  whether variables are rows
    dtype   the dtype to compute in

    >>> print(jnp.corrcoef(jnp.array([[0.0, 2.0], [2.0, 0.0]])).round(3))
    [[ 1. -1.]
     [-1.  1.]]
    """
    from lamina.numpy.extrema import clip

    c = cov(x, y, rowvar, dtype=None if dtype is None else _inexact(dtype, "corrcoef"))
    if not c.shape:
        return lax.div(c, c)
    from lamina.numpy.diagonals import diagonal

    spread = lax.sqrt(lax.real(diagonal(c)) if c.dtype.kind == "c" else diagonal(c))
    spread = convert(spread, c.dtype)
    c = lax.div(lax.div(c, lax.expand_dims(spread, (1,))), lax.expand_dims(spread, (0,)))
    return c if c.dtype.kind == "c" else clip(c, -1, 1)


def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: Any = None,
             preferred_element_type: DTypeLike | None = None) -> Array:  # fmt: skip
    """The convolution of two vectors; mode "full", "same" or "valid" as in NumPy.

    a, v                    vectors that are not empty; ValueError of others
    mode                    "full", "same" or "valid": the part of the result to give
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give

    >>> jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 1])).tolist()
    [1.0, 3.0, 5.0, 3.0]
    """
    return _slide("convolve", a, v, mode, precision, preferred_element_type)


def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: Any = None,
              preferred_element_type: DTypeLike | None = None) -> Array:  # fmt: skip
    """The cross-correlation of two vectors; mode "full", "same" or "valid" as in NumPy.

    a, v                    vectors that are not empty; ValueError of others
    mode                    "full", "same" or "valid": the part of the result to give
    precision               how exact products of floats are, as in lax.dot_general
    preferred_element_type  the dtype to sum in and to give

    >>> jnp.correlate(jnp.array([1, 2, 3]), jnp.array([1, 1])).tolist()
    [3.0, 5.0]
    """
    from lamina.numpy.arithmetic import conj

    check_arraylike("correlate", a, v)
    v = asarray(v)
    if len(v.shape) != 1:
        raise ValueError("correlate() only support 1-dimensional inputs.")
    return _slide("correlate", a, lax.rev(conj(v), (0,)), mode, precision, preferred_element_type,
                  correlation=True)  # fmt: skip


def _slide(name: str, a: ArrayLike, v: ArrayLike, mode: str, precision: Any, element_type: Any,
           correlation: bool = False) -> Array:  # fmt: skip
    """A convolution of one channel, over the longer vector."""
    check_arraylike(name, a, v)
    promote = promote_inexact if element_type is None else promote_dtypes
    x, kernel = (asarray(t) for t in promote(a, v))
    if len(x.shape) != 1 or len(kernel.shape) != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs.")
    if x.size == 0 or kernel.size == 0:
        raise ValueError(
            f"{name}: inputs cannot be empty, got shapes {x.shape} and {kernel.shape}."
        )
    if mode not in ("full", "same", "valid"):
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    return _slid(x, kernel, mode, precision, element_type, correlation)


@compiled(static=("mode", "precision", "element_type", "correlation"))
def _slid(
    x: Array, kernel: Array, mode: str, precision: Any, element_type: Any, correlation: bool
) -> Array:
    n, k = x.shape[0], kernel.shape[0]
    long, short = (x, kernel) if n >= k else (kernel, x)
    m, w = max(n, k), min(n, k)
    start, size = 0, m + w - 1
    if mode == "same":
        start, size = (w - 1) // 2, m
        start += correlation and n < k and w % 2 == 0
    elif mode == "valid":
        start, size = w - 1, m - w + 1
    # Windows begin w - 1 elements before the vector, and the result `start` windows after those.
    padding = (w - 1 - start, start + size - m)
    out = lax.conv_general_dilated(
        lax.expand_dims(long, (0, 1)), lax.expand_dims(lax.rev(short, (0,)), (0, 1)), (1,),
        [padding], precision=precision, preferred_element_type=element_type,
    )  # fmt: skip
    return lax.squeeze(out, (0, 1))
