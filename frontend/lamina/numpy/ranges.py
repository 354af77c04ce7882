"""Ranges of numbers: arange linspace logspace geomspace."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any, Literal, overload

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.type_promotion import wider_type
from lamina.numpy._eager import compiled
from lamina.numpy.creation import asarray, astype_array, full, placed
from lamina.numpy.out_sharding import takes_out_sharding
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


@takes_out_sharding
def arange(start: Any, stop: Any = None, step: Any = None, dtype: DTypeLike | None = None, *,
           device: Any = None) -> Array:  # fmt: skip
    """start, start + step, ... before stop; all three concrete.

    start, stop, step  numbers; one alone is the stop
    dtype              the dtype of the result
    device             where to put it: a Device or a Sharding; None: the default device

    The dtype is the common one of the arguments. Raises ConcretizationTypeError for traced ones.

    >>> jnp.arange(2, 8, 2).tolist()
    [2, 4, 6]
    """
    message = f"It arose in the {library}.numpy.arange argument"
    given = [
        concrete_or_error(x, f"{message} '{n}'") if x is not None else None
        for x, n in ((start, "start" if stop is not None else "stop"), (stop, "stop"), (step, "step"))
    ]
    for x in given:
        if x is not None and x.ndim:
            raise ValueError(f"{library}.numpy.arange: arguments must be scalars")
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



@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
    retstep: Literal[False] = False, dtype: DTypeLike | None = None, axis: int = 0, *, device: Any = None) -> Array: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
    *, retstep: Literal[True], dtype: DTypeLike | None = None, axis: int = 0,
    device: Any = None) -> tuple[Array, Array]: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
    retstep: bool = False, dtype: DTypeLike | None = None, axis: int = 0, *, device: Any = None) -> Any: ...
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

    start, stop  the ends, numbers or arrays that broadcast together
    num          how many, a concrete int
    endpoint     whether stop is the last one
    retstep      whether the step is given too
    dtype        the dtype of the result
    axis         where the samples lie
    device       where to put it: a Device or a Sharding; None: the default device

    start and stop may be arrays; the samples then lie along `axis`. With retstep the step
    is given too.

    >>> jnp.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    num = operator.index(concrete_or_error(num, f"'num' argument of {library}.numpy.linspace")[()])
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
    work = dtypes.inexact_dtype(wider_type(common_type(start, stop)[0], dtype))
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
    """base ** linspace(start, stop, num).

    start, stop  the exponents at the ends
    num          how many, a concrete int
    endpoint     whether stop is the last one
    base         of the powers
    dtype        the dtype of the result
    axis         where the samples lie

    >>> print(jnp.logspace(0, 2, 3).round(3))
    [  1.  10. 100.]
    """
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
    spiral.

    start, stop  the ends, numbers or arrays that broadcast together
    num          how many, a concrete int
    endpoint     whether stop is the last one
    dtype        the dtype of the result
    axis         where the samples lie

    >>> print(jnp.geomspace(1, 100, 3).round(3))
    [  1.  10. 100.]
    """
    num = operator.index(concrete_or_error(num, f"'num' argument of {library}.numpy.geomspace")[()])
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
