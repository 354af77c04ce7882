"""Array creation: from Python values and NumPy arrays, from a fill value."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import errors, guards, lax
from lamina.array import ArrayImpl, from_dlpack
from lamina.core import current_mesh, dtypes
from lamina.core.library import library
from lamina.core.placed import is_undecided
from lamina.core.trace import Tracer, get_aval, is_array_like, is_evaluating, makes_array
from lamina.cuda_exchange import is_on_gpu
from lamina.numpy.out_sharding import takes_out_sharding
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    check_arraylike,
    common_type,
    convert,
    requested_dtype,
)  # fmt: skip

_SCALARS: tuple[type[Any], ...] = (bool, int, float, complex)


# ---- from values -------------------------------------------------------------------------------
def array(object: Any, dtype: DTypeLike | None = None, copy: bool = True, order: str | None = "K",
          ndmin: int = 0, *, device: Any = None, out_sharding: Any = None) -> Array:  # fmt: skip
    """An array with these values: from scalars, arrays, or nested sequences of them.

    object  a number, an array, what has __array__ or the buffer protocol, or nested sequences of
            these
    dtype   the dtype of the elements; None: that of the values
    copy    whether an array given is copied
    order   "K" or "C": how elements lie in memory is the compiler's choice
    ndmin   axes of size 1 are put in front until there are so many
    device  where to put it: a Device or a Sharding; None: the default device
    out_sharding  how it lies on devices, a sharding or None

    Without dtype, Python scalars give weak types and sequences the common type of their items.
    Raises OverflowError for Python ints that do not fit, TypeError for what holds no numbers.

    >>> jnp.array([[1, 2], [3, 4]], dtype="float32").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if order not in ("K", "C", "A", None):
        raise NotImplementedError("Only implemented for order='K'")
    to = None if dtype is None else requested_dtype(dtype, "array")
    if copy and not is_array_like(object) and is_on_gpu(object):  # others may write there
        object = from_dlpack(object, copy=True)
    out = _made(object, to, copy)
    missing = ndmin - len(out.shape)
    out = out if missing <= 0 else lax.reshape(out, (1,) * missing + tuple(out.shape))
    return placed(out if out_sharding is None else lax.under(out, out_sharding), device)


def asarray(a: Any, dtype: DTypeLike | None = None, order: str | None = None, *,
            copy: bool | None = None, device: Any = None, out_sharding: Any = None) -> Array:  # fmt: skip
    """As `array`; an array that has the dtype already is given back as it is, and memory of other
    libraries on a GPU is shared.

    a       what `array` takes
    dtype   the dtype of the elements; None: that of the values
    order   as in `array`
    copy    True to copy an array that need not be
    device  where to put it: a Device or a Sharding; None: the default device
    out_sharding  how it lies on devices, a sharding or None

    >>> jnp.asarray([1, 2, 3])
    Array([1, 2, 3], dtype=int32)
    """
    if order not in ("K", "C", "A", None):
        raise NotImplementedError("Only implemented for order='K'")
    if type(a) is not ArrayImpl and not is_array_like(a) and is_on_gpu(a):
        a = from_dlpack(a, copy=copy)
    out = _made(a, None if dtype is None else requested_dtype(dtype, "asarray"), copy)
    if out_sharding is not None:
        out = lax.under(out, out_sharding)
    return out if device is None else placed(out, device)


def placed(x: Array, device: Any) -> Array:
    """x on a device (None: where it is)."""
    if device is None:
        return x
    from lamina.devices import device_put

    return device_put(x, device)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """An array with the values of a.

    a      an array or number
    order  as in `array`

    >>> jnp.copy(jnp.array([1, 2])).tolist()
    [1, 2]
    """
    check_arraylike("copy", a)
    return array(a, order=order)


def _made(x: Any, dtype: np.dtype | None, copy: bool | None) -> Array:
    """x as an array of this dtype (None: its own), with memory of its own where that is asked for."""
    out = _to_array(x, dtype)
    if current_mesh.of_programs() is not None and out is not x:
        return _on_current_mesh(out)
    return out.copy() if copy and out is x and isinstance(out, ArrayImpl) else out


def _on_current_mesh(x: Array) -> Array:
    """A new array on the devices that run programs, unless something placed it or it is a constant of one."""
    from lamina.placement import of_programs, put

    place = of_programs()
    if place is None or not isinstance(x, ArrayImpl) or x.committed or not is_evaluating():
        return x
    return put(x, place)


def _to_array(x: Any, dtype: np.dtype | None) -> Array:
    kind = type(x)
    if kind is ArrayImpl:  # soon: most are
        return x if dtype is None else astype_array(x, dtype)
    from lamina.runtime import array_from_numpy, array_from_scalar

    if guards.watching_transfers() and is_array_like(x):
        guards.check_transfers((x,))
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
    for base in _SCALARS:
        if isinstance(x, base):  # of a derived class
            return _to_array(base(x), dtype)
    if x is None:
        raise ValueError(f"None is not a valid value for {library}.numpy.array")
    if makes_array(x):
        return _to_array(x.__jax_array__(), dtype)
    if not is_array_like(x):  # what NumPy can read: ranges, other libraries' arrays
        if is_on_gpu(x):
            return _to_array(from_dlpack(x), dtype)
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
        made = np.asarray(items, to)
        guards.check_transfers((made,))
        return array_from_numpy(made)
    from lamina.numpy.joining import stack

    return stack([asarray(item, dtype=to) for item in items])


def _collect(x: Any, leaves: list[Any]) -> None:
    if isinstance(x, (list, tuple)):
        for item in x:
            _collect(item, leaves)
    else:
        if x is None:
            raise ValueError(f"None is not a valid value for {library}.numpy.array")
        leaves.append(x.__jax_array__() if makes_array(x) else x)


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


def _refuse_size_as_dtype(name: str, shape: Any, dtype: Any) -> None:
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type. Did you accidentally write "
            f"`{library}.numpy.{name}({shape}, {dtype})` when you meant "
            f"`{library}.numpy.{name}(({shape}, {dtype}))`?"
        )


@takes_out_sharding
def zeros(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """An array of zeros; float32 unless dtype says otherwise.

    shape   an int or a tuple of ints
    dtype   the dtype of the elements; None: float32
    device  where to put it: a Device or a Sharding; None: the default device

    Raises TypeError for a shape that is no int or sequence of concrete ints.

    >>> jnp.zeros((2, 3)).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    _refuse_size_as_dtype("zeros", shape, dtype)
    to = requested_dtype(dtype, "zeros", keep=default_float())
    return placed(lax.full(as_shape(shape), 0, to), device)


@takes_out_sharding
def ones(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """An array of ones; float32 unless dtype says otherwise.

    shape   an int or a tuple of ints
    dtype   the dtype of the elements; None: float32
    device  where to put it: a Device or a Sharding; None: the default device

    Raises TypeError for a shape that is no int or sequence of concrete ints.

    >>> jnp.ones(3, dtype="int32")
    Array([1, 1, 1], dtype=int32)
    """
    _refuse_size_as_dtype("ones", shape, dtype)
    to = requested_dtype(dtype, "ones", keep=default_float())
    return placed(lax.full(as_shape(shape), 1, to), device)


@takes_out_sharding
def empty(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """An array of zeros: lamina has no uninitialised memory.

    shape   an int or a tuple of ints
    dtype   the dtype of the elements; None: float32
    device  where to put it: a Device or a Sharding; None: the default device

    >>> jnp.empty(2).shape
    (2,)
    """
    _refuse_size_as_dtype("empty", shape, dtype)
    to = requested_dtype(dtype, "empty", keep=default_float())
    return placed(lax.full(as_shape(shape), 0, to), device)


@takes_out_sharding
def full(shape: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, *,
         device: Any = None) -> Array:  # fmt: skip
    """An array in which fill_value, a scalar or an array that broadcasts to shape, is repeated.

    shape       an int or a tuple of ints
    fill_value  the value, or values that broadcast to shape
    dtype       the dtype of the elements; None: that of fill_value
    device      where to put it: a Device or a Sharding; None: the default device

    Raises ValueError where fill_value does not broadcast.

    >>> jnp.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """
    (fill_value,) = check_arraylike("full", fill_value)
    dims = as_shape(shape)
    have, weak = common_type(fill_value)
    to = requested_dtype(dtype, "full", keep=have)
    if to == dtypes.float0:
        return lax.full(dims, 0, to)
    if dtypes.is_key(to) and not dtypes.is_key(have):  # the words of each key
        return placed(lax.full(dims, fill_value, to), device)
    _refuse_complex_number("full", fill_value, to)
    value = convert(fill_value, to, weak and dtype is None)
    if type(value) in _SCALARS:  # stays weak
        return placed(lax.broadcast_in_dim(value, dims, ()), device)
    return placed(asarray(broadcast_to_shape(value, dims)), device)


def _refuse_complex_number(name: str, value: Any, to: np.dtype) -> None:
    if type(value) is complex and to.kind != "c" and to != np.bool_:
        raise TypeError(f"{name}: a complex number, {value}, is no {to.name}")


@takes_out_sharding
def zeros_like(a: Any, dtype: DTypeLike | None = None, shape: Any = None, *,
               device: Any = None) -> Array:  # fmt: skip
    """Zeros of a's shape and dtype, where not given.

    a       an array, or anything with a shape and a dtype
    dtype   the dtype of the result; None: a's
    shape   the shape of the result; None: a's
    device  where to put it: a Device or a Sharding; None: where `a` was put, if it has this shape

    >>> jnp.zeros_like(jnp.array([1, 2, 3])).tolist()
    [0, 0, 0]
    """
    return full_like(a, 0, dtype, shape, device=device)


@takes_out_sharding
def ones_like(a: Any, dtype: DTypeLike | None = None, shape: Any = None, *,
              device: Any = None) -> Array:  # fmt: skip
    """Ones of a's shape and dtype, where not given.

    a       an array, or anything with a shape and a dtype
    dtype   the dtype of the result; None: a's
    shape   the shape of the result; None: a's
    device  where to put it: a Device or a Sharding; None: where `a` was put, if it has this shape

    >>> jnp.ones_like(jnp.array([1.5, 2.5])).tolist()
    [1.0, 1.0]
    """
    return full_like(a, 1, dtype, shape, device=device)


def empty_like(prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *,
               device: Any = None) -> Array:  # fmt: skip
    """Zeros of the prototype's shape and dtype, where not given.

    prototype  an array, or anything with a shape and a dtype
    dtype      the dtype of the result; None: the prototype's
    shape      the shape of the result; None: the prototype's
    device     where to put it: a Device or a Sharding; None: the default device

    >>> jnp.empty_like(jnp.array([[1, 2]])).shape
    (1, 2)
    """
    return full_like(prototype, 0, dtype, shape, device=device)


@takes_out_sharding
def full_like(a: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *,
              device: Any = None) -> Array:  # fmt: skip
    """fill_value repeated in a's shape and dtype, where not given. `a` needs no values.

    a           an array, or anything with a shape and a dtype
    fill_value  the value, or values that broadcast to the shape
    dtype       the dtype of the result; None: a's
    shape       the shape of the result; None: a's
    device      where to put it: a Device or a Sharding; None: where `a` was put, if it has this shape

    >>> jnp.full_like(jnp.array([1, 2]), 9).tolist()
    [9, 9]
    """
    if type(a) not in _SCALARS and not (hasattr(a, "shape") and hasattr(a, "dtype")):
        (a,) = check_arraylike("full_like", a)
    (fill_value,) = check_arraylike("full_like", fill_value)
    dims = (
        tuple(np.shape(a) if type(a) in _SCALARS else a.shape) if shape is None else as_shape(shape)
    )
    if device is None and not is_undecided():
        device = lax.place_like(a, dims)
    if dtype is not None:
        return full(dims, fill_value, dtype, device=device)
    have = get_aval(a).dtype if type(a) in _SCALARS else dtypes.canonicalize(a.dtype)
    weak = type(a) in _SCALARS[1:] or builtins.bool(getattr(a, "weak_type", False))
    if have == dtypes.float0:
        return lax.full_like(a, fill_value, shape=dims)
    if dtypes.is_key(have):
        return placed(lax.full(dims, fill_value, have), device)
    _refuse_complex_number("full_like", fill_value, have)
    value = convert(fill_value, have, weak)
    if type(value) in _SCALARS:
        return placed(lax.broadcast_in_dim(value, dims, ()), device)
    return placed(asarray(broadcast_to_shape(value, dims)), device)


def default_float() -> np.dtype:
    """What numbers are of whose dtype nobody says."""
    return dtypes.canonicalize(float)
