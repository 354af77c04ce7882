"""Array creation: from Python values and NumPy arrays, from a fill value, by formula."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import errors, lax
from lamina.core import dtypes
from lamina.core.trace import Tracer, get_aval, is_array_like
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    canonical_axis,
    check_arraylike,
    common_type,
    concrete_or_error,
    convert,
    requested_dtype,
)  # fmt: skip

_SCALARS = (bool, int, float, complex)


# ---- from values -------------------------------------------------------------------------------
def array(object: Any, dtype: DTypeLike | None = None, copy: bool = True, order: str | None = "K",
          ndmin: int = 0, *, device: Any = None) -> Array:  # fmt: skip
    """An array with these values: from scalars, arrays, or nested sequences of them.

    Without dtype, Python scalars give weak types and sequences the common type of their items.
    Raises OverflowError for Python ints that do not fit, TypeError for what holds no numbers.
    """
    if order not in ("K", "C", "A", None):
        raise NotImplementedError("Only implemented for order='K'")
    to = None if dtype is None else requested_dtype(dtype, "array")
    out = _to_array(object, to)
    missing = ndmin - len(out.shape)
    out = out if missing <= 0 else lax.reshape(out, (1,) * missing + tuple(out.shape))
    return placed(out, device)


def asarray(a: Any, dtype: DTypeLike | None = None, order: str | None = None, *,
            copy: bool | None = None, device: Any = None) -> Array:  # fmt: skip
    """As `array`; an array that has the dtype already is given back as it is."""
    if order not in ("K", "C", "A", None):
        raise NotImplementedError("Only implemented for order='K'")
    out = _to_array(a, None if dtype is None else requested_dtype(dtype, "asarray"))
    return out if device is None else placed(out, device)


def placed(x: Array, device: Any) -> Array:
    """x on a device (None: where it is)."""
    if device is None:
        return x
    from lamina.devices import device_put

    return device_put(x, device)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """An array with the values of a."""
    check_arraylike("copy", a)
    return array(a, order=order)


def _to_array(x: Any, dtype: np.dtype | None) -> Array:
    from lamina.runtime import array_from_numpy, array_from_scalar

    kind = type(x)
    if kind in _SCALARS:
        if dtype is None:
            get_aval(x)  # raises for ints out of range
            return array_from_scalar(x)
        return array_from_numpy(np.asarray(x, dtype))
    if kind is np.ndarray or isinstance(x, (np.ndarray, np.generic)):
        aval = get_aval(x)
        values = np.asarray(x).astype(aval.dtype, copy=False)
        return astype_array(array_from_numpy(values), dtype or aval.dtype)
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype)
    if x is None:
        raise ValueError("None is not a valid value for lamina.numpy.array")
    if not is_array_like(x):  # what NumPy can read: ranges, other libraries' arrays
        return _to_array(np.asarray(x), dtype)
    return x if dtype is None else astype_array(x, dtype)


def _from_sequence(items: Sequence[Any], dtype: np.dtype | None) -> Array:
    from lamina.runtime import array_from_numpy

    leaves: list[Any] = []
    _collect(items, leaves)
    if dtype is None:
        to = common_type(*leaves)[0] if leaves else dtypes.canonicalize(float)
    else:
        to = dtype
    if builtins.all(type(leaf) in _SCALARS or isinstance(leaf, (np.ndarray, np.generic))
                    for leaf in leaves):  # fmt: skip
        return array_from_numpy(np.asarray(items, to))
    from lamina.numpy.joining import stack

    return stack([asarray(item, dtype=to) for item in items])


def _collect(x: Any, leaves: list[Any]) -> None:
    if isinstance(x, (list, tuple)):
        for item in x:
            _collect(item, leaves)
    else:
        if x is None:
            raise ValueError("None is not a valid value for lamina.numpy.array")
        leaves.append(x)


def astype_array(x: Any, dtype: DTypeLike) -> Array:
    """An array converted by lamina's rules: floats saturate, NaN becomes 0, complex loses its
    imaginary part."""
    to = requested_dtype(dtype, "astype")
    aval = get_aval(x)
    if aval.dtype == to and not aval.weak_type:
        return x
    if aval.dtype.kind == "c" and not dtypes.is_complex(to):
        if to == np.bool_:
            return lax.ne(x, np.zeros((), aval.dtype)[()])
        x = lax.real(x)
    return lax.convert_element_type(x, to)


# ---- filled ------------------------------------------------------------------------------------
def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape argument as a tuple: an int or a sequence of concrete ints."""
    if isinstance(shape, (int, np.integer)) and not isinstance(shape, bool):
        return (operator.index(shape),)
    if hasattr(shape, "shape") and not isinstance(shape, Tracer) and shape.shape == ():
        try:
            return (operator.index(shape),)
        except TypeError:
            pass
    try:
        return tuple(operator.index(d) for d in shape)
    except TypeError:
        shown = shape if isinstance(shape, (tuple, list)) or hasattr(shape, "shape") else (shape,)
        hint = (
            "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller "
            "subfunctions." + errors.origin_of((shape,) if isinstance(shape, Tracer) else shown)
            if isinstance(shape, Tracer) or builtins.any(isinstance(d, Tracer) for d in shown)
            else ""
        )
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {shown}.{hint}"
        ) from None


def zeros(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """An array of zeros; float32 unless dtype says otherwise."""
    to = requested_dtype(dtype, "zeros", keep=_default_float())
    return placed(lax.full(as_shape(shape), 0, to), device)


def ones(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """An array of ones; float32 unless dtype says otherwise."""
    to = requested_dtype(dtype, "ones", keep=_default_float())
    return placed(lax.full(as_shape(shape), 1, to), device)


def empty(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """An array of zeros: lamina has no uninitialised memory."""
    to = requested_dtype(dtype, "empty", keep=_default_float())
    return placed(lax.full(as_shape(shape), 0, to), device)


def full(shape: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, *,
         device: Any = None) -> Array:  # fmt: skip
    """An array in which fill_value, a scalar or an array that broadcasts to shape, is repeated."""
    check_arraylike("full", fill_value)
    dims = as_shape(shape)
    have, weak = common_type(fill_value)
    to = requested_dtype(dtype, "full", keep=have)
    _refuse_complex_number("full", fill_value, to)
    value = convert(fill_value, to, weak and dtype is None)
    if type(value) in _SCALARS:  # stays weak
        return placed(lax.broadcast_in_dim(value, dims, ()), device)
    return placed(asarray(broadcast_to_shape(value, dims)), device)


def _refuse_complex_number(name: str, value: Any, to: np.dtype) -> None:
    if type(value) is complex and to.kind != "c" and to != np.bool_:
        raise TypeError(f"{name}: a complex number, {value}, is no {to.name}")


def zeros_like(a: Any, dtype: DTypeLike | None = None, shape: Any = None, *,
               device: Any = None) -> Array:  # fmt: skip
    """Zeros of a's shape and dtype, where not given."""
    return full_like(a, 0, dtype, shape, device=device)


def ones_like(a: Any, dtype: DTypeLike | None = None, shape: Any = None, *,
              device: Any = None) -> Array:  # fmt: skip
    """Ones of a's shape and dtype, where not given."""
    return full_like(a, 1, dtype, shape, device=device)


def empty_like(prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *,
               device: Any = None) -> Array:  # fmt: skip
    """Zeros of the prototype's shape and dtype, where not given."""
    return full_like(prototype, 0, dtype, shape, device=device)


def full_like(a: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *,
              device: Any = None) -> Array:  # fmt: skip
    """fill_value repeated in a's shape and dtype, where not given. `a` needs no values."""
    if type(a) not in _SCALARS and not (hasattr(a, "shape") and hasattr(a, "dtype")):
        check_arraylike("full_like", a)
    check_arraylike("full_like", fill_value)
    dims = (
        tuple(np.shape(a) if type(a) in _SCALARS else a.shape) if shape is None else as_shape(shape)
    )
    if dtype is not None:
        return full(dims, fill_value, dtype, device=device)
    have = get_aval(a).dtype if type(a) in _SCALARS else dtypes.canonicalize(a.dtype)
    weak = type(a) in _SCALARS[1:] or builtins.bool(getattr(a, "weak_type", False))
    if dtypes.is_key(have):
        return placed(lax.full(dims, fill_value, have), device)
    _refuse_complex_number("full_like", fill_value, have)
    value = convert(fill_value, have, weak)
    if type(value) in _SCALARS:
        return placed(lax.broadcast_in_dim(value, dims, ()), device)
    return placed(asarray(broadcast_to_shape(value, dims)), device)


def _default_float() -> np.dtype:
    return dtypes.canonicalize(float)


# ---- by formula --------------------------------------------------------------------------------
def arange(start: Any, stop: Any = None, step: Any = None, dtype: DTypeLike | None = None, *,
           device: Any = None) -> Array:  # fmt: skip
    """start, start + step, ... before stop; all three concrete.

    The dtype is the common one of the arguments. Raises ConcretizationTypeError for traced ones.
    """
    message = "It arose in the lamina.numpy.arange argument '{}'"
    given = [
        concrete_or_error(x, message.format(n)) if x is not None else None
        for x, n in ((start, "start"), (stop, "stop"), (step, "step"))
    ]
    for x in given:
        if x is not None and x.ndim:
            raise ValueError("lamina.numpy.arange: arguments must be scalars")
    named = [x for x in (start, stop, step) if x is not None]
    check_arraylike("arange", *named)
    if common_type(*named)[0].kind == "c":
        raise ValueError("arange: start, stop and step must be real numbers")
    to = requested_dtype(dtype, "arange", keep=common_type(*named)[0])
    if to == np.bool_:
        raise TypeError("arange does not make arrays of dtype bool")
    first: Any
    last: Any
    by: Any
    first, last, by = (x[()] if x is not None else None for x in given)
    if last is None:
        first, last = first.dtype.type(0), first
    by = 1 if by is None else by
    if by == 0:
        raise ValueError("arange: step must not be zero")
    count = max(0, math.ceil(_ratio(first, last, by)))
    out = lax.iota(to, count)
    if by != 1:
        out = lax.mul(np.asarray(by).astype(to)[()], out)
    out = out if first == 0 else lax.add(np.asarray(first).astype(to)[()], out)
    return placed(out, device)


def _ratio(first: Any, last: Any, by: Any) -> float:
    if builtins.all(np.asarray(x).dtype.kind in "iub" for x in (first, last, by)):
        return -((int(first) - int(last)) // int(by))
    return float((last - first) / by)


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """num numbers evenly spaced from start to stop, which is the last of them if endpoint.

    start and stop may be arrays; the samples then lie along `axis`. With retstep the step
    is given too.
    """
    num = operator.index(concrete_or_error(num, "'num' argument of lamina.numpy.linspace")[()])
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    check_arraylike("linspace", start, stop)
    to = requested_dtype(dtype, "linspace",
                         keep=dtypes.inexact_dtype(common_type(start, stop)[0]))  # fmt: skip
    out, step = _linspace(start, stop, num=num, endpoint=builtins.bool(endpoint), dtype=to,
                          axis=operator.index(axis))  # fmt: skip
    out = placed(out, device)
    return (out, step) if retstep else out


@compiled(static=("num", "endpoint", "dtype", "axis"))
def _linspace(start: Any, stop: Any, *, num: int, endpoint: bool, dtype: np.dtype, axis: int
              ) -> tuple[Array, Array]:  # fmt: skip
    work = dtypes.inexact_dtype(dtypes.promote_types((common_type(start, stop)[0], False),
                                                     (dtype, False))[0])  # fmt: skip
    shape = np.broadcast_shapes(np.shape(start), np.shape(stop))
    start, stop = (broadcast_to_shape(convert(x, work), shape) for x in (start, stop))
    steps = num - 1 if endpoint else num
    if num > 1:
        step = lax.div(lax.sub(stop, start), np.asarray(steps).astype(work)[()])
        real = dtypes.real_dtype(work)
        part = lax.div(lax.iota(real, steps), np.asarray(steps).astype(real)[()])
        part = lax.convert_element_type(part, work)
        part = lax.reshape(part, (steps,) + (1,) * len(shape))
        low, high = (lax.expand_dims(x, (0,)) for x in (start, stop))
        one = np.ones((), work)[()]
        out = lax.add(lax.mul(low, lax.sub(one, part)), lax.mul(high, part))
        if endpoint:
            out = lax.concatenate([out, high], 0)
    elif num == 1:
        step = full(shape, np.nan, work) if endpoint else lax.sub(stop, start)
        out = lax.expand_dims(start, (0,))
    else:
        step = full(shape, np.nan, work)
        out = lax.full((0, *shape), 0, work)
    if dtypes.is_integer(dtype) and not dtypes.is_integer(work):
        out = lax.floor(out)
    at = canonical_axis(axis, len(shape) + 1)
    order = [*range(1, at + 1), 0, *range(at + 1, len(shape) + 1)]
    if at:
        out = lax.transpose(out, order)
    return astype_array(out, dtype), step


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """base ** linspace(start, stop, num)."""
    from lamina.numpy.arithmetic import power

    check_arraylike("logspace", start, stop)
    to = requested_dtype(dtype, "logspace",
                         keep=dtypes.inexact_dtype(common_type(start, stop)[0]))  # fmt: skip
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    return astype_array(power(base, exponents), to)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """num numbers with equal ratios from start to stop, which have one sign; complex ones lie on a
    spiral."""
    num = operator.index(concrete_or_error(num, "'num' argument of lamina.numpy.geomspace")[()])
    check_arraylike("geomspace", start, stop)
    work = dtypes.inexact_dtype(common_type(start, stop)[0])
    to = requested_dtype(dtype, "geomspace", keep=work)
    work = to if to.kind == "c" else work
    first, last = (convert(x, work) for x in (start, stop))
    return _geomspace(first, last, num=num, endpoint=builtins.bool(endpoint), dtype=to,
                      axis=operator.index(axis))  # fmt: skip


@compiled(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: Any, stop: Any, *, num: int, endpoint: bool, dtype: np.dtype, axis: int
               ) -> Array:  # fmt: skip
    shape = np.broadcast_shapes(np.shape(start), np.shape(stop))
    start, stop = (broadcast_to_shape(asarray(x), shape) for x in (start, stop))
    work = start.dtype
    # Divided by the direction of start, its logarithm is real.
    if work.kind == "c":
        size = lax.convert_element_type(lax.abs(start), work)
        turn = lax.div(start, size)
        first, last = lax.real(lax.log(size)), lax.log(lax.div(stop, turn))
        first = lax.convert_element_type(first, work)
    else:
        # Of different signs there is no sequence.
        turn = lax.sign(start)
        if num > 1:
            turn = lax.select(lax.eq(turn, lax.sign(stop)), turn, lax.full_like(start, np.nan))
        first, last = lax.log(lax.mul(start, turn)), lax.log(lax.mul(stop, turn))
    out = lax.exp(_linspace(first, last, num=num, endpoint=endpoint, dtype=work, axis=0)[0])
    # The ends are what was asked for, not their rounded powers.
    if num > 0:
        ends = [lax.expand_dims(lax.div(start, turn), (0,)), lax.slice_in_dim(out, 1, num)]
        if endpoint and num > 1:
            last = lax.expand_dims(lax.div(stop, turn), (0,))
            ends = [ends[0], lax.slice_in_dim(out, 1, num - 1), last]
        out = lax.concatenate(ends, 0)
    out = lax.mul(out, lax.broadcast_in_dim(turn, out.shape, tuple(range(1, len(out.shape)))))
    at = canonical_axis(axis, len(out.shape))
    if at:
        out = lax.transpose(out, [*range(1, at + 1), 0, *range(at + 1, len(out.shape))])
    return astype_array(out, dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, *,
        device: Any = None) -> Array:  # fmt: skip
    """An N x M array with ones on the k-th diagonal."""
    rows, columns = _sizes("eye", N, M)
    to = requested_dtype(dtype, "eye", keep=_default_float())
    row = lax.broadcasted_iota(np.dtype(np.int32), (rows, columns), 0)
    if type(k) is not int or k != 0:
        row = lax.add(row, _offset("eye", k))
    column = lax.broadcasted_iota(np.dtype(np.int32), (rows, columns), 1)
    mask = lax.eq(row, column)
    return placed(mask if to == np.bool_ else lax.convert_element_type(mask, to), device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The n x n identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """An N x M array with ones at and below the k-th diagonal."""
    rows, columns = _sizes("tri", N, M)
    to = requested_dtype(dtype, "tri", keep=_default_float())
    row = lax.broadcasted_iota(np.dtype(np.int32), (rows, columns), 0)
    if type(k) is not int or k != 0:
        row = lax.add(row, _offset("tri", k))
    mask = lax.ge(row, lax.broadcasted_iota(np.dtype(np.int32), (rows, columns), 1))
    return mask if to == np.bool_ else lax.convert_element_type(mask, to)


def _sizes(name: str, n: Any, m: Any) -> tuple[int, int]:
    rows, columns = as_shape((n, n if m is None else m))
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {rows} and {columns}")
    return rows, columns


def _offset(name: str, k: Any) -> Any:
    if not dtypes.is_integer(get_aval(k).dtype):
        raise TypeError(f"lamina.numpy.{name}: `k` must be an integer, got {k!r}")
    return convert(k, np.dtype(np.int32))


def tril(m: ArrayLike, k: int = 0) -> Array:
    """m with zeros above the k-th diagonal of its last two axes."""
    return _triangle("tril", m, k, keep_lower=True)


def triu(m: ArrayLike, k: int = 0) -> Array:
    """m with zeros below the k-th diagonal of its last two axes."""
    return _triangle("triu", m, k, keep_lower=False)


def _triangle(name: str, m: ArrayLike, k: int, keep_lower: bool) -> Array:
    check_arraylike(name, m)
    m = asarray(m)
    if len(m.shape) < 2:
        raise ValueError(f"Argument to lamina.numpy.{name} must be at least 2D")
    rows, columns = m.shape[-2:]
    lower = tri(rows, columns, k if keep_lower else k - 1, bool)
    mask = broadcast_to_shape(lower, m.shape)
    zero = zeros_like(m)
    return lax.select(mask, m, zero) if keep_lower else lax.select(mask, zero, m)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Of a vector: the matrix with it on the k-th diagonal. Of a matrix: its k-th diagonal."""
    check_arraylike("diag", v)
    v = asarray(v)
    k = operator.index(k)
    if len(v.shape) == 2:
        return diagonal(v, offset=k)
    if len(v.shape) != 1:
        raise ValueError("diag input must be 1d or 2d")
    n = v.shape[0] + abs(k)
    row = lax.pad(v, np.zeros((), v.dtype)[()], [(max(0, k), max(0, -k), 0)])
    rows = lax.broadcast_in_dim(row, (n, n), (1,))
    return lax.select(eye(n, k=k, dtype=bool), rows, zeros_like(rows))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the flattened v on its k-th diagonal."""
    check_arraylike("diagflat", v)
    v = asarray(v)
    return diag(lax.reshape(v, (v.size,)), k)


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The entries with index (i, i + offset) in two axes, along a new last axis."""
    check_arraylike("diagonal", a)
    a = asarray(a)
    ndim = len(a.shape)
    if ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    first, second = canonical_axis(axis1, ndim), canonical_axis(axis2, ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    offset = operator.index(offset)
    rest = [i for i in range(ndim) if i not in (first, second)]
    a = lax.transpose(a, [*rest, first, second]) if [*rest, first, second] != [*range(ndim)] else a
    *outer, m, n = a.shape
    count = max(0, min(m + min(offset, 0), n - max(offset, 0)))
    if count == 0:
        return lax.full((*outer, 0), 0, a.dtype)
    # In the flattened matrix the diagonal is a slice with stride n + 1.
    start = offset if offset >= 0 else -offset * n
    flat = lax.reshape(a, (*outer, m * n))
    return lax.slice(flat, (*(0 for _ in outer), start),
                     (*outer, start + (count - 1) * (n + 1) + 1),
                     (*(1 for _ in outer), n + 1))  # fmt: skip


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
             ) -> list[Array]:  # fmt: skip
    """Coordinate arrays of the grid spanned by vectors, in "xy" or matrix ("ij") order."""
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
    return out


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The index grids of a shape: one array, or with sparse a tuple of broadcastable ones."""
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


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The row and column indices of the lower triangle of an n x m array."""
    rows, columns = np.tril_indices(n, k, m)
    return _index_arrays(rows, columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The row and column indices of the upper triangle of an n x m array."""
    rows, columns = np.triu_indices(n, k, m)
    return _index_arrays(rows, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with ndim axes of size n."""
    return (arange(operator.index(n)),) * operator.index(ndim)


def _index_arrays(*arrays: np.ndarray) -> tuple[Array, ...]:
    return tuple(asarray(x) for x in arrays)
