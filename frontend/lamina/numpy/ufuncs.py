"""Universal functions: ufunc with reduce, accumulate, at, outer and reduceat; frompyfunc.

The functions of NumPy's chapters stay plain functions; a ufunc holds one beside its methods. Where
a reduction, cumulative function or update of its own exists the method is that one, else a scan.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina import lax
from lamina.core.library import library
from lamina.core.trace import get_aval
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    canonical_axis,
    check_arraylike,
    convert,
    requested_dtype,
)  # fmt: skip

Method = Callable[..., Any] | None


class ufunc:
    """A function of scalars that applies to arrays, elementwise and broadcasting.

    func      the scalar function, called with arrays of one shape unless `call` is given
    nin, nout numbers of arguments and results; identity is what reduce starts from, or None.
    """

    def __init__(self, func: Callable[..., Any], /, nin: int, nout: int, *, name: str | None = None,
                 nargs: int | None = None, identity: Any = None, call: Method = None,
                 reduce: Method = None, accumulate: Method = None, at: Method = None,
                 reduceat: Method = None) -> None:  # fmt: skip
        self.__name__ = name or func.__name__
        self.__doc__ = func.__doc__
        self.__wrapped__ = func
        self._signature = operator.index(nin), operator.index(nout), operator.index(nargs or nin)
        self._identity = identity
        self._call = call if call is not None else _vectorized(func)
        self._own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}

    # Read-only, as NumPy's: functions that were given a ufunc rely on them.
    nin = property(lambda self: self._signature[0])
    nout = property(lambda self: self._signature[1])
    nargs = property(lambda self: self._signature[2])
    identity = property(lambda self: self._identity)
    _func = property(lambda self: self.__wrapped__)

    def __repr__(self) -> str:
        return f"<{library}.numpy.ufunc {self.__name__!r}>"

    def __hash__(self) -> int:
        return hash((self._func, self.__name__, self.nin, self.nout, self.identity))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and (
            (self._func, self.__name__, self.nin, self.nout, self.identity)
            == (other._func, other.__name__, other.nin, other.nout, other.identity)
        )

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Array:
        """The function of each element."""
        if out is not None or where is not None:
            word = "out" if out is not None else "where"
            advice = "use what it returns" if word == "out" else f"use {library}.numpy.where"
            raise NotImplementedError(f"{word} argument of {self}: arrays are immutable, {advice}")
        return self._call(*args)

    def _binary(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")

    def reduce(self, a: ArrayLike, axis: Any = 0, dtype: DTypeLike | None = None, out: None = None,
               keepdims: bool = False, initial: ArrayLike | None = None,
               where: ArrayLike | None = None) -> Array:  # fmt: skip
        """The function applied along an axis (None: all), from the first element to the last."""
        self._binary("reduce")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduce()")
        if initial is not None:
            check_arraylike(f"{self.__name__}.reduce", a, initial)
        else:
            check_arraylike(f"{self.__name__}.reduce", a)
        if where is not None and self.identity is None and initial is None:
            raise ValueError(f"reduction operation {self.__name__!r} does not have an identity, so "
                             "to use a where mask one has to specify 'initial'.")  # fmt: skip
        own = self._own["reduce"]
        if own is not None:
            given = {"initial": initial, "where": where, "dtype": dtype}
            return own(a, axis=axis, keepdims=keepdims,
                       **{k: v for k, v in given.items() if v is not None})  # fmt: skip
        return self._reduce(asarray(a), axis, dtype, keepdims, initial, where)

    def _reduce(self, x: Array, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any
                ) -> Array:  # fmt: skip
        if isinstance(axis, tuple):
            if len(axis) != 1:
                raise NotImplementedError(f"reduce over several axes with {self}: one axis, or None")
            axis = axis[0]
        shape, given = x.shape, axis
        mask = None if where is None else broadcast_to_shape(asarray(where), shape)
        if axis is None:
            x, axis = lax.reshape(x, (x.size,)), 0
            mask = None if mask is None else lax.reshape(mask, x.shape)
        at = canonical_axis(axis, len(x.shape))
        to = requested_dtype(dtype, "reduce", keep=self._result_dtype(x))
        n = x.shape[at]
        rows = lax.convert_element_type(_first(x, at), to)
        masks = None if mask is None else _first(mask, at)
        start = self.identity if initial is None else initial
        if start is None:
            if n == 0:
                raise ValueError(f"zero-size array to reduction operation {self.__name__} which has "
                                 "no identity")  # fmt: skip
            carry = lax.index_in_dim(rows, 0, keepdims=False)
            rows = lax.slice_in_dim(rows, 1, n)
        else:
            carry = broadcast_to_shape(convert(asarray(start), to), rows.shape[1:])

        def step(total: Any, xs: Any) -> tuple[Any, None]:
            row, keep = xs
            new = convert(self._call(total, row), to)
            return (new if keep is None else lax.select(keep, new, total)), None

        total = lax.scan(step, carry, (rows, masks))[0]
        if keepdims:
            kept = (1,) * len(shape) if given is None else (
                tuple(1 if i == at else s for i, s in enumerate(shape))
            )  # fmt: skip
            total = lax.reshape(total, kept)
        return total

    def _result_dtype(self, x: Array) -> np.dtype:
        from lamina.api import ShapeDtypeStruct, eval_shape

        cell = ShapeDtypeStruct((), x.dtype)
        return eval_shape(self._call, cell, cell).dtype

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None,
                   out: None = None) -> Array:  # fmt: skip
        """As reduce, with every result on the way."""
        self._binary("accumulate")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.accumulate()")
        check_arraylike(f"{self.__name__}.accumulate", a)
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError("accumulate does not allow multiple axes")
        own = self._own["accumulate"]
        if own is not None:
            return own(a, axis=axis, **({} if dtype is None else {"dtype": dtype}))
        x = asarray(a)
        at = canonical_axis(axis, len(x.shape))
        to = requested_dtype(dtype, "accumulate", keep=self._result_dtype(x))
        rows = lax.convert_element_type(_first(x, at), to)
        if rows.shape[0] == 0:
            return lax.convert_element_type(x, to)

        def step(total: Any, row: Any) -> tuple[Any, Any]:
            new = convert(self._call(total, row), to)
            return new, new

        first = lax.index_in_dim(rows, 0, keepdims=True)
        rest = lax.scan(step, lax.index_in_dim(rows, 0, keepdims=False),
                        lax.slice_in_dim(rows, 1, rows.shape[0]))[1]  # fmt: skip
        out_rows = lax.concatenate([first, rest], 0)
        return lax.transpose(out_rows, [*range(1, at + 1), 0, *range(at + 1, len(x.shape))])

    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *,
           inplace: bool = True) -> Array:  # fmt: skip
        """a with the elements named replaced by the function of them (and b), one after another
        where an element is named more than once."""
        if inplace:
            raise NotImplementedError(
                f"Because {library.name}'s arrays are immutable, {library}.numpy.ufunc.at() cannot operate "
                "inplace like numpy.ufunc.at(). Instead, pass inplace=False and capture the "
                f"result:\n>>> arr = {library}.numpy.add.at(arr, ind, val, inplace=False)"
            )
        own = self._own["at"]
        if own is not None:
            return own(a, indices, b)
        check_arraylike(f"{self.__name__}.at", a, *([] if b is None else [b]))
        x = asarray(a)
        picked = lax.reshape(lax.iota(np.int32, max(x.size, 1))[: x.size], x.shape)[indices]
        places = lax.reshape(picked, (math.prod(picked.shape),))
        values = None
        if b is not None:
            values = lax.reshape(broadcast_to_shape(asarray(b), picked.shape), places.shape)

        def step(flat: Any, xs: Any) -> tuple[Any, None]:
            i, v = xs
            old = lax.dynamic_index_in_dim(flat, i, 0, keepdims=False)
            new = self._call(old) if v is None else self._call(old, v)
            new = lax.reshape(convert(new, flat.dtype), (1,))
            return lax.dynamic_update_slice(flat, new, (i,)), None

        flat = lax.reshape(x, (x.size,))
        return lax.reshape(lax.scan(step, flat, (places, values))[0], x.shape)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of every pair of an element of A and one of B."""
        if self.nin != 2:
            raise ValueError("outer only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError("outer only supported for functions returning a single value")
        check_arraylike(f"{self.__name__}.outer", A, B)
        ndim = len(get_aval(B).shape)
        wide = (*(1,) * len(get_aval(A).shape), *get_aval(B).shape)
        return self(lax.reshape(asarray(A), (*get_aval(A).shape, *(1,) * ndim)),
                    lax.reshape(asarray(B), wide))  # fmt: skip

    def reduceat(self, a: ArrayLike, indices: Any, axis: int = 0, dtype: DTypeLike | None = None,
                 out: None = None) -> Array:  # fmt: skip
        """The reductions of a[i:j] for neighbours i, j among indices; a[i] where i >= j."""
        self._binary("reduceat")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduceat()")
        check_arraylike(f"{self.__name__}.reduceat", a, indices)
        x, starts = asarray(a), asarray(indices)
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError("reduceat requires a single integer axis.")
        at = canonical_axis(axis, len(x.shape))
        to = requested_dtype(dtype, "reduceat", keep=self._result_dtype(x))
        rows = lax.convert_element_type(_first(x, at), to)
        n = rows.shape[0]
        starts = lax.convert_element_type(starts, np.int32)
        if starts.shape == (0,):
            return lax.full(tuple(0 if i == at else k for i, k in enumerate(x.shape)), 0, to)
        ends = lax.concatenate([lax.slice(starts, (1,), starts.shape), lax.full((1,), n, np.int32)], 0)
        starts = lax.select(lax.lt(starts, np.int32(0)), lax.add(starts, np.int32(n)), starts)
        wide = (starts.shape[0], *(1,) * (len(rows.shape) - 1))
        first, last = lax.reshape(starts, wide), lax.reshape(ends, wide)
        carry = rows[starts]

        def step(total: Any, xs: Any) -> tuple[Any, None]:
            i, row = xs
            inside = lax.bitwise_and(lax.gt(i, first), lax.lt(i, last))
            new = convert(self._call(total, lax.expand_dims(row, (0,))), to)
            return lax.select(broadcast_to_shape(inside, total.shape), new, total), None

        out_rows = lax.scan(step, carry, (lax.iota(np.int32, n), rows))[0]
        return lax.transpose(out_rows, [*range(1, at + 1), 0, *range(at + 1, len(x.shape))])


def _first(x: Array, axis: int) -> Array:
    return lax.transpose(x, [axis, *(i for i in range(len(x.shape)) if i != axis)])


def _vectorized(func: Callable[..., Any]) -> Callable[..., Any]:
    from lamina.numpy.functional import vectorize

    return vectorize(func)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A ufunc of a Python function of nin scalars that gives nout scalars.

    func       a function of scalars, which may be traced
    nin, nout  the numbers of arguments and results
    identity   what a reduction of nothing gives

    >>> longer = jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1)
    >>> longer(jnp.array([1, 2]), 10).tolist()
    [21, 22]
    """
    return ufunc(func, nin, nout, identity=identity)


def _at(method: str, a: Any, indices: Any, b: Any) -> Array:
    return getattr(asarray(a).at[indices], method)(b)


def named(func: Callable[..., Any], nin: int = 2, identity: Any = None, **methods: Any) -> ufunc:
    """The ufunc of one of lamina.numpy's functions. at="add" names a method of x.at[...]."""
    if isinstance(methods.get("at"), str):
        methods["at"] = functools.partial(_at, methods["at"])
    return ufunc(func, nin, 1, identity=identity, call=func, **methods)
