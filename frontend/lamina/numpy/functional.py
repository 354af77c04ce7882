"""Functions applied along axes: vectorize apply_along_axis apply_over_axes piecewise."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core.library import library
from lamina.core.wrapping import wraps
from lamina.numpy.creation import asarray
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_shapes,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    check_ranks,
    convert,
    pick,
    shape_of,
)  # fmt: skip

_DIMS = r"\(\s*(?:\w+(?:\s*,\s*\w+)*)?\s*\)"
_SIGNATURE = re.compile(
    rf"^\s*({_DIMS}(?:\s*,\s*{_DIMS})*)?\s*->\s*({_DIMS}(?:\s*,\s*{_DIMS})*)\s*$"
)
Dims = tuple[str, ...]


def _parse(signature: str) -> tuple[list[Dims], list[Dims]]:
    match = _SIGNATURE.match(signature)
    if match is None:
        raise ValueError(f"not a valid gufunc signature: {signature}")
    return tuple(  # type: ignore[return-value]
        [tuple(re.findall(r"\w+", d)) for d in re.findall(_DIMS, side or "")]
        for side in match.groups()
    )


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Any = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """A function that applies pyfunc to all elements, or with a signature like "(n,m),(m)->(n)" to
    all slices of that many axes, broadcasting the others. `excluded` names arguments left alone.

    pyfunc     a function of arrays
    excluded   positions or names
    signature  axes of arguments and results

    The result composes with jit, grad and vmap: it is nested vmap.

    >>> mean = jnp.vectorize(jnp.mean, signature="(n)->()")
    >>> mean(jnp.array([[1.0, 3.0], [5.0, 7.0]])).tolist()
    [2.0, 6.0]
    """
    if any(not isinstance(i, (str, int)) for i in excluded):
        raise TypeError(f"{library}.numpy.vectorize can only exclude integer or string arguments, but "
                        f"excluded={excluded!r}")  # fmt: skip
    if any(isinstance(i, int) and i < 0 for i in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")

    where = f"on vectorized function with {excluded=} and {signature=}"

    @wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if signature is not None:
            nothing = {i for i, a in enumerate(args) if a is None and i not in excluded}
            if any(i < len(_parse(signature)[0]) for i in nothing):
                raise ValueError(f"Cannot pass None at locations {nothing} with {signature=}")
        kept = {i: a for i, a in enumerate(args) if i in excluded or a is None}
        mapped = [i for i in range(len(args)) if i not in kept]
        named = {k: v for k, v in kwargs.items() if k not in excluded}

        def core(*values: Any) -> Any:
            full = dict(kept) | dict(zip(mapped, values, strict=False))
            extra = dict(zip(named, values[len(mapped) :], strict=True))
            return pyfunc(*(full[i] for i in range(len(args))), **{**kwargs, **extra})

        values = [asarray(args[i]) for i in mapped] + [asarray(v) for v in named.values()]
        return _broadcasting(core, values, signature, where)

    return wrapped


def _broadcasting(
    core: Callable[..., Any], values: list[Array], signature: str | None, where: str
) -> Any:
    from lamina.api import vmap

    inputs: list[Dims] = [()] * len(values)
    outputs: list[Dims] | None = None
    if signature is not None:
        inputs, outputs = _parse(signature)
        if len(inputs) != len(values):
            raise TypeError(
                f"wrong number of positional arguments: expected {len(inputs)}, got {len(values)} "
                f"{where}"
            )
    sizes: dict[str, int] = {}
    outer = []
    for x, dims in zip(values, inputs, strict=True):
        if len(x.shape) < len(dims):
            raise ValueError(
                f"input with shape {x.shape} does not have enough dimensions for all core "
                f"dimensions {dims} {where}"
            )
        split = len(x.shape) - len(dims)
        for name, n in zip(dims, x.shape[split:], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(
                    f"inconsistent size for core dimension {name!r}: {n} vs {sizes[name]} {where}"
                )
        outer.append(tuple(x.shape[:split]))
    full = broadcast_shapes(*outer) if outer else ()
    if len({len(shape) for x, shape in zip(values, outer, strict=True) if x.shape}) > 1:
        check_ranks("vectorize", [tuple(x.shape) for x in values])
    f = _checked(core, outputs, sizes, where) if outputs is not None else core
    # Axes of size 1 are not mapped but dropped: vmap repeats what it does not map.
    squeezed = []
    for x, shape in zip(values, outer, strict=True):
        ones = [i for i, n in enumerate(shape) if n == 1 and full[i - len(shape)] != 1]
        squeezed.append(lax.squeeze(x, ones) if ones else x)
    for level in range(-1, -len(full) - 1, -1):
        in_axes = tuple(
            0 if len(s) >= -level and not (s[level] == 1 and full[level] != 1) else None
            for s in outer
        )
        f = vmap(f, in_axes=in_axes) if any(a == 0 for a in in_axes) else f
    return f(*squeezed)


def _checked(
    core: Callable[..., Any], outputs: list[Dims], sizes: dict[str, int], where: str
) -> Callable[..., Any]:
    """core, whose results must be as a signature has them."""

    def f(*values: Any) -> Any:
        out = core(*values)
        if len(outputs) > 1 and not isinstance(out, tuple):
            raise TypeError(
                f"output must be a tuple when multiple outputs are expected, got: {out!r} {where}"
            )
        results = out if isinstance(out, tuple) else (out,)
        if len(results) != len(outputs):
            raise TypeError(
                f"wrong number of output arguments: expected {len(outputs)}, got {len(results)} "
                f"{where}"
            )
        known = dict(sizes)
        for r, dims in zip(results, outputs, strict=True):
            shape = np.shape(r)
            if len(shape) != len(dims):
                raise ValueError(
                    f"output shape {shape} does not match core dimensions {dims} {where}"
                )
            for name, n in zip(dims, shape, strict=True):
                if known.setdefault(name, n) != n:
                    raise ValueError(
                        f"inconsistent size for core dimension {name!r}: {n} vs {known[name]} {where}"
                    )
        return out

    return f


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """func1d(slice, *args, **kwargs) of all one-dimensional slices along an axis.

    func1d  a function of vectors
    axis    the axis
    arr     an array
    args    passed on

    >>> jnp.apply_along_axis(jnp.sum, 0, jnp.array([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    from lamina.api import vmap

    check_arraylike("apply_along_axis", arr)
    x = asarray(arr)
    at = canonical_axis(axis, len(x.shape))
    f: Callable[..., Any] = lambda s: func1d(s, *args, **kwargs)  # noqa: E731
    for i in range(1, len(x.shape) - at):
        f = vmap(f, in_axes=i, out_axes=-1)
    for _ in range(at):
        f = vmap(f, in_axes=0, out_axes=0)
    return f(x)


def apply_over_axes(func: Callable[..., Array], a: ArrayLike, axes: int | Sequence[int]) -> Array:
    """func(a, axis) for one axis after another, each kept with size 1.

    func  called with an array and an axis
    a     an array
    axes  an axis or several

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1]).tolist()
    [[6.0]]
    """
    x = asarray(a)
    for axis in canonical_axes(axes, len(x.shape)):
        y = asarray(func(x, axis))
        if len(y.shape) == len(x.shape) - 1:
            y = lax.expand_dims(y, (axis,))
        if len(y.shape) != len(x.shape):
            raise ValueError("function is not returning an array of the correct shape")
        x = y
    return x


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """funclist[i] (a function or a value) where condlist[i] holds; the last one that holds wins.
    One more function than conditions: it applies where none holds.

    x         an array
    condlist  booleans of its shape, or a list of such arrays
    funclist  functions of arrays, or values
    args      passed on to the functions

    >>> x = jnp.array([-2, 3])
    >>> jnp.piecewise(x, [x < 0], [0, lambda x: x * 10]).tolist()
    [0, 30]
    """
    from lamina.numpy.logic import truth

    check_arraylike("piecewise", x)
    x = asarray(x)
    conditions = (
        list(condlist)
        if isinstance(condlist, (list, tuple)) or np.ndim(condlist) > len(x.shape)
        else [condlist]
    )
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected; got {len(funclist)}"
        )

    def value(f: Any) -> Any:
        return convert(f(x, *args, **kw) if callable(f) else f, x.dtype)

    default = value(funclist[-1]) if len(funclist) > len(conditions) else np.zeros((), x.dtype)[()]
    out = pick(lax.full(x.shape, True), default, lax.full(shape_of(x), 0, x.dtype))
    for condition, f in zip(conditions, funclist, strict=False):
        out = pick(truth(asarray(condition)), value(f), out)
    return out
