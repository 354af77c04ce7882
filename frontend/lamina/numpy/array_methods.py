"""Operators and methods of arrays. `attach` puts them on Array and on Tracer, which know nothing of
the functions that stand above them; `attach_compiled` gives ArrayImpl faster operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.array import ArrayImpl
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import Tracer, is_array_like, makes_array
from lamina.dtypes import itemsize_bits
from lamina.numpy import (
    arithmetic,
    array_api,
    averages,
    creation,
    cumulative,
    diagonals,
    editing,
    extrema,
    indexing,
    logic,
    manipulation,
    partial_sorting,
    products,
    rearranging,
    reductions,
    rounding,
    searching,
    selection,
    sorting,
    type_functions,
)  # fmt: skip
from lamina.numpy._eager import compiled
from lamina.numpy.updating import IndexUpdateHelper

_FOREIGN = (str, bytes, type(None))
_REFUSED = (list, tuple, set, dict)
_PLAIN = frozenset((ArrayImpl, bool, int, float, complex))


def _accepts(self: Any, other: Any, symbol: str, reflected: bool = False) -> bool:
    """Whether an operator computes with `other`; else Python asks the other operand's type. Not for
    sequences: `==` and `!=` would be answered by whether the two are one object."""
    if type(other) in _REFUSED:
        kind = type(other).__name__
        names = (kind, type(self).__name__) if reflected else (type(self).__name__, kind)
        raise TypeError(
            f"unsupported operand type(s) for {symbol}: {names[0]!r} and {names[1]!r}: make an array of "
            f"the {kind} first, by jnp.asarray"
        )
    return not isinstance(other, _FOREIGN) and is_array_like(other)


def _binary(function: Callable[[Any, Any], Any], symbol: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if not _accepts(self, other, symbol):
            if not makes_array(other):
                return NotImplemented
            other = other.__jax_array__()
        return function(self, other)

    operator.__name__ = function.__name__  # compiled programs are named after it
    return operator


def _reflected(function: Callable[[Any, Any], Any], symbol: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if not _accepts(self, other, symbol, True):
            if not makes_array(other):
                return NotImplemented
            other = other.__jax_array__()
        return function(other, self)

    operator.__name__ = function.__name__
    return operator


def _quick(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator that, outside transformations, is one call of a compiled program: the runtime
    finds it by the operands' types, without promoting them in Python."""
    program = compiled(operator)

    def quick(self: Any, other: Any) -> Any:
        return (program if type(other) in _PLAIN else operator)(self, other)

    return quick


_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "divmod": "divmod", "pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^",
    "lshift": "<<", "rshift": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=",
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": arithmetic.add, "sub": arithmetic.subtract, "mul": arithmetic.multiply,
    "truediv": arithmetic.true_divide, "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder, "divmod": arithmetic.divmod, "pow": arithmetic.power,
    "matmul": products.matmul, "and": logic.bitwise_and, "or": logic.bitwise_or,
    "xor": logic.bitwise_xor, "lshift": logic.left_shift, "rshift": logic.right_shift,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": logic.equal, "ne": logic.not_equal, "lt": logic.less, "le": logic.less_equal,
    "gt": logic.greater, "ge": logic.greater_equal,
}  # fmt: skip


def _operators() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {
        "__neg__": arithmetic.negative,
        "__pos__": arithmetic.positive,
        "__abs__": arithmetic.absolute,
        "__invert__": logic.invert,
        "__getitem__": indexing.getitem,
        "__round__": _round,
    }
    for name, function in _ARITHMETIC.items():
        found[f"__{name}__"] = _binary(function, _SYMBOLS[name])
        found[f"__r{name}__"] = _reflected(function, _SYMBOLS[name])
    for name, function in _COMPARISONS.items():
        found[f"__{name}__"] = _binary(function, _SYMBOLS[name])
    return found


def _round(self: Any, ndigits: int | None = None) -> Any:
    out = rounding.round(self, ndigits or 0)
    return _astype(out, int) if ndigits is None else out  # as Python's numbers do


# ---- methods that take their arguments otherwise than the functions do ---------------------------
def _reshape(self: Any, *shape: Any, order: str = "C", out_sharding: Any = None) -> Any:
    """The elements in another shape.

    shape  a tuple, or sizes one by one; one of them may be -1, which stands for what is left.
    order  "C": the last index varies fastest; "F": the first.
    out_sharding  how the result lies on devices, a sharding or None.

    Raises TypeError where the number of elements would change.

    >>> print(jnp.arange(6).reshape(2, -1))
    [[0 1 2]
     [3 4 5]]
    """
    return manipulation.reshape(self, _only(shape), order, out_sharding=out_sharding)


def _transpose(self: Any, *axes: Any) -> Any:
    """The array with its axes in another order.

    axes  a tuple, or axes one by one; none: reversed.

    Raises TypeError where they are not each axis once.

    >>> jnp.ones((2, 3, 4)).transpose(1, 0, 2).shape
    (3, 2, 4)
    """
    return manipulation.transpose(self, None if not axes or axes == (None,) else _only(axes))


def _only(args: tuple[Any, ...]) -> Any:
    return args[0] if len(args) == 1 and not isinstance(args[0], (int, np.integer)) else args


def _flatten(self: Any, order: str = "C") -> Any:
    """The elements along one axis.

    order  "C": the last index varies fastest; "F": the first.

    >>> print(jnp.array([[1, 2], [3, 4]]).flatten())
    [1 2 3 4]
    """
    return manipulation.ravel(self, order)


def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The values in another dtype, converted as lax.convert_element_type does.

    dtype   the dtype or its name; None: the default float.
    copy    whether an array that has the dtype already is copied.
    device  a Device or Sharding to put the result on; None: where it comes to be.

    >>> print(jnp.array([1.7, -1.7]).astype(int))
    [ 1 -1]
    """
    return type_functions.astype(self, dtype, copy=copy, device=device)


_NOT_DIVISIBLE = (
    "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last "
    "axis of the array."
)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The bits as another dtype.

    dtype  the dtype; of another width it makes the last axis longer or shorter. None: the array
           itself.
    type   None.

    Raises ValueError where the last axis has not a multiple of the elements needed;
    NotImplementedError for a type.

    >>> jnp.array([1.0, 2.0]).view("uint16").shape
    (4,)
    """
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    if dtype is None:
        return self
    to = dtypes.canonicalize(dtype)
    if self.dtype == to:
        return self
    if self.dtype == np.bool_:
        self = lax.convert_element_type(self, np.uint8)
    if self.dtype.kind == "c" and self.shape:
        parts = lax.concatenate([lax.expand_dims(p, (self.ndim,)) for p in (self.real, self.imag)], self.ndim)
        return _view(lax.reshape(parts, (*self.shape[:-1], 2 * self.shape[-1])), to)
    if to.kind == "c" and self.shape:
        parts = _view(self, dtypes.real_dtype(to))
        if parts.shape[-1] % 2:
            raise ValueError(_NOT_DIVISIBLE)
        return lax.complex(parts[..., ::2], parts[..., 1::2])
    wide, narrow = itemsize_bits(to), itemsize_bits(self.dtype)
    target = np.dtype(np.uint8) if to == np.bool_ else to
    if wide == narrow:
        out = lax.bitcast_convert_type(self, target)
    elif wide > narrow:
        ratio = wide // narrow
        if not self.shape or self.shape[-1] % ratio:
            raise ValueError(_NOT_DIVISIBLE)
        grouped = lax.reshape(self, (*self.shape[:-1], self.shape[-1] // ratio, ratio))
        out = lax.bitcast_convert_type(grouped, target)
    else:
        parts = lax.bitcast_convert_type(self, target)
        out = lax.reshape(parts, (*self.shape[:-1], self.shape[-1] * (narrow // wide))) if (
            self.shape) else parts  # fmt: skip
    return lax.ne(out, np.uint8(0)) if to == np.bool_ else out


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    """The values kept between min and max.

    min, max  numbers or arrays that broadcast; None: no bound.

    >>> print(jnp.array([-1, 5, 20]).clip(0, 10))
    [ 0  5 10]
    """
    return extrema.clip(self, min, max)


def _sort(self: Any, axis: int | None = -1, *, kind: None = None, order: None = None,
          stable: bool = True, descending: bool = False) -> Any:  # fmt: skip
    """The elements in order along an axis.

    axis        an int; None: all elements in one row.
    kind        None, and
    order       None: NumPy's choices are not there.
    stable      whether equal elements keep their order.
    descending  from the greatest to the least.

    >>> print(jnp.array([3, 1, 2]).sort(descending=True))
    [3 2 1]
    """
    return sorting.sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def _argsort(self: Any, axis: int | None = -1, *, kind: None = None, order: None = None,
             stable: bool = True, descending: bool = False) -> Any:  # fmt: skip
    """The indices that put the elements in order along an axis.

    axis        an int; None: of all elements in one row.
    kind        None, and
    order       None: NumPy's choices are not there.
    stable      whether equal elements keep their order.
    descending  from the greatest to the least.

    >>> print(jnp.array([3, 1, 2]).argsort())
    [1 2 0]
    """
    return sorting.argsort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def _searchsorted(
    self: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Any:
    """Where in this sorted vector to put values, so that it stays sorted.

    v       the values.
    side    "left": before equal elements, "right": after them.
    sorter  the indices that sort the vector, where it is not sorted; None: it is.
    method  how to search, as in numpy.searchsorted.

    >>> print(jnp.array([1, 2, 2, 3]).searchsorted(jnp.array([2, 5])))
    [1 4]
    """
    return searching.searchsorted(self, v, side, sorter, method=method)


def _argpartition(self: Any, kth: int, axis: int = -1) -> Any:
    """The indices that partition the elements along an axis: the first kth are of the least
    elements, in any order.

    kth   a Python int.
    axis  counted from the end where negative.

    >>> x = jnp.array([4, 1, 3, 2])
    >>> print(jnp.sort(x[x.argpartition(2)[:2]]))
    [1 2]
    """
    return partial_sorting.argpartition(self, kth, axis)


def _choose(self: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """Elements of the choices, as this array of integers says.

    choices  a sequence of arrays, which broadcast with this one.
    out      None.
    mode     what is done with integers out of range: "raise", "wrap" or "clip".

    >>> print(jnp.array([1, 0]).choose([jnp.array([1, 2]), jnp.array([10, 20])]))
    [10  2]
    """
    return selection.choose(self, choices, out, mode)


def _compress(self: Any, condition: Any, axis: int | None = None, *, out: None = None,
              size: int | None = None, fill_value: Any = 0) -> Any:  # fmt: skip
    """The slices along an axis where the condition holds.

    condition   a vector of booleans.
    axis        an int; None: of all elements in one row.
    out         None.
    size        how many slices the result has, needed within jit; None: as many as there are.
    fill_value  what fills it up.

    >>> print(jnp.array([1, 2, 3]).compress(jnp.array([True, False, True])))
    [1 3]
    """
    return editing.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _byteswap(self: Any) -> Any:
    """The elements with their bytes in reverse order.

    >>> print(jnp.array([1], "int16").byteswap())
    [256]
    """
    if self.dtype.kind == "c":
        return lax.complex(_byteswap(lax.real(self)), _byteswap(lax.imag(self)))
    if self.dtype.itemsize == 1:
        return self
    parts = lax.bitcast_convert_type(self, np.uint8)
    return lax.bitcast_convert_type(lax.rev(parts, (parts.ndim - 1,)), self.dtype)


def _contains(self: Any, item: Any) -> Any:
    """Whether an item is equal to an element of this vector."""
    if self.ndim != 1:
        raise ValueError(
            f"Array.__contains__: search array must be one-dimensional, got arr.shape={self.shape}. "
            "To test whether a row of an array is in another: (arr == row).all(-1).any()."
        )
    if not is_array_like(item):
        raise TypeError(f"Array.__contains__: unsupported operand type {type(item)}.")
    if np.shape(item):
        raise ValueError(
            f"Array.__contains__: query value must be a scalar, got query.shape={np.shape(item)}. To test "
            "several values: jnp.isin(values, arr)."
        )
    return reductions.any(logic.equal(self, item))


def _to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
    """The array on a device.

    device  a Device, or a Sharding.
    stream  None.

    Raises NotImplementedError for a stream.

    >>> print(jnp.arange(3).to_device(lamina.devices()[0]))
    [0 1 2]
    """
    if stream is not None:
        raise NotImplementedError("to_device takes no stream")
    from lamina.devices import device_put

    return device_put(self, device)


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """lamina.numpy: the array API's functions of such arrays."""
    import lamina.numpy

    if api_version not in (None, *array_api.VERSIONS):
        known = ", ".join(array_api.VERSIONS)
        raise ValueError(f"array API version {api_version!r} is none of {known}")
    return lamina.numpy


def _no_flat(self: Any) -> Any:
    """Arrays have no iterator of elements that could be written to."""
    raise NotImplementedError(
        f"{library.name} arrays do not implement the arr.flat property: consider arr.ravel() instead."
    )


_METHODS: dict[str, Callable[..., Any]] = {
    "argpartition": _argpartition, "byteswap": _byteswap, "choose": _choose,
    "compress": _compress, "to_device": _to_device, "__contains__": _contains,
    "__array_namespace__": _array_namespace,
    "all": reductions.all, "any": reductions.any, "argmax": reductions.argmax,
    "argmin": reductions.argmin, "argsort": _argsort, "astype": _astype, "clip": _clip,
    "conj": arithmetic.conj, "conjugate": arithmetic.conj, "cumprod": cumulative.cumprod,
    "cumsum": cumulative.cumsum, "diagonal": diagonals.diagonal, "dot": products.dot,
    "flatten": _flatten, "max": reductions.max, "mean": averages.mean, "min": reductions.min,
    "nonzero": searching.nonzero, "prod": reductions.prod, "ptp": reductions.ptp,
    "ravel": manipulation.ravel, "repeat": rearranging.repeat, "reshape": _reshape,
    "round": rounding.round, "searchsorted": _searchsorted, "sort": _sort,
    "squeeze": manipulation.squeeze, "std": averages.std, "sum": reductions.sum,
    "swapaxes": manipulation.swapaxes, "take": indexing.take, "trace": products.trace,
    "transpose": _transpose, "var": averages.var, "view": _view,
}  # fmt: skip
_PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "at": IndexUpdateHelper,
    "T": manipulation.transpose,
    "mT": manipulation.matrix_transpose,
    "real": arithmetic.real,
    "imag": arithmetic.imag,
    "flat": _no_flat,
}


# Not pow: a Python number is an exponent by its value.
_QUICK = frozenset(
    name
    for function in (*_ARITHMETIC, *_COMPARISONS)
    if function != "pow"
    for name in (f"__{function}__", f"__r{function}__")
)


def attach(cls: type) -> None:
    """Gives a class of arrays the operators, methods and properties of NumPy's arrays."""
    for name, function in _operators().items():
        setattr(cls, name, function)
    for name, function in _METHODS.items():
        setattr(cls, name, function)
    for name, function in _PROPERTIES.items():
        setattr(cls, name, property(function))
    if issubclass(cls, Tracer):
        cls.copy = creation.copy  # type: ignore[attr-defined]


def attach_compiled(cls: type) -> None:
    """Gives a class of arrays that compiled programs take the operators that are one such program."""
    for name, function in _operators().items():
        if name in _QUICK:
            setattr(cls, name, _quick(function))
