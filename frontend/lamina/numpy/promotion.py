"""What the arguments of a function become before its operation runs: one dtype, one rank.

Python scalars stay scalars (they become literals in jaxprs), NumPy scalars and arrays keep their
own dtypes, and nothing is broadcast further than rank: `lax` broadcasts scalars and size-1 axes.
To type checkers what is promoted is an Array: any can be combined with arrays.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np

from lamina import config, lax
from lamina.core import dtypes
from lamina.core.array_class import Array as Array
from lamina.core.array_likes import ArrayLike as ArrayLike
from lamina.core.array_likes import DTypeLike as DTypeLike
from lamina.core.library import library
from lamina.core.source_info import is_internal
from lamina.core.trace import get_aval, is_array_like, makes_array
from lamina.core.type_promotion import promote_types
from lamina.lax import broadcast_shapes as broadcast_shapes
from lamina.lax.convert import convert as convert_weakly

Axis = int | Sequence[int] | None

_SCALARS = (bool, int, float, complex)
_KIND = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def check_arraylike(name: str, *args: Any) -> tuple[Any, ...]:
    """Raises TypeError unless each argument is an array, a NumPy or a Python scalar, or makes an array
    of itself (`__jax_array__`). Gives the arguments, with arrays in the place of the latter."""
    makers = False
    for position, x in enumerate(args):
        if not is_array_like(x):
            if makes_array(x):
                makers = True
                continue
            if isinstance(x, (np.ndarray, np.generic)):
                get_aval(x)  # raises the error that names the dtype
            hint = f" {library}.numpy.asarray makes an array of it." if isinstance(x, (list, tuple)) else ""
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(x)} at position "
                f"{position}.{hint}"
            )
    return tuple(x.__jax_array__() if makes_array(x) else x for x in args) if makers else args


def requested_dtype(dtype: DTypeLike | None, name: str, *, keep: np.dtype | None = None) -> np.dtype:
    """The dtype that `dtype=` asks for, warning where 64 bits are truncated; `keep` for None."""
    if dtype is None:
        assert keep is not None
        return keep
    if type(dtype) is type and dtype in dtypes.PYTHON_SCALARS:
        return dtypes.canonicalize(dtype)
    if isinstance(dtype, dtypes.KeyDType):
        return dtype  # type: ignore[return-value]
    if hasattr(dtype, "__array__") and not isinstance(dtype, (type, np.generic)):
        raise ValueError(f"{name}: an array is no dtype: instead of dtype=x pass dtype=x.dtype")
    asked = np.dtype(dtype)
    got = dtypes.canonicalize(asked)
    if got != asked:
        warnings.warn(
            f"Explicitly requested dtype {asked.name} requested in {name} is not available, and "
            f"will be truncated to dtype {got.name}. To enable more dtypes, set the enable_x64 "
            f"configuration option or the {library.variable('enable_x64')} environment variable.",
            stacklevel=user_depth(),
        )
    return got


# Between a function and its caller, in whichever module the function is.
_IN_BETWEEN = (
    "lamina.numpy._eager",
    "lamina.numpy.array_methods",
    "lamina.numpy.promotion",
    "lamina.numpy.ufuncs",
)
_OF_FUNCTIONS = tuple(
    f"lamina.{name}." for name in ("experimental", "image", "nn", "numpy", "random", "scipy")
)


def _called_by_user() -> bool:
    """Whether the function at work is the one that the user called, not one that it calls."""
    modules = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code):
        name = frame.f_globals.get("__name__", "") + "."
        if name.startswith(_OF_FUNCTIONS) and name[:-1] not in _IN_BETWEEN:
            modules.add(name)
        frame = frame.f_back
    return len(modules) < 2


def user_depth() -> int:
    """The stack level of the caller outside lamina, for warnings."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and (frame.f_globals.get("__name__", "") + ".").startswith("lamina."):
        depth, frame = depth + 1, frame.f_back
    return depth


def type_of(x: ArrayLike) -> tuple[np.dtype, bool]:
    """The dtype of an array-like, and whether it is weak."""
    aval = get_aval(x)
    return aval.dtype, aval.weak_type


def common_type(*args: ArrayLike) -> tuple[np.dtype, bool]:
    """The dtype (and weakness) that the arguments have together."""
    return promote_types(*[type_of(x) for x in args])


def python_kind(dtype: np.dtype) -> type:
    """The Python scalar type of a dtype's category."""
    if dtypes.is_float(dtype):
        return float
    if dtypes.is_integer(dtype):
        return int
    return _KIND[dtype.kind]


def convert(x: Any, dtype: np.dtype, weak_type: bool = False) -> Any:
    """x with this dtype. Scalars stay scalars; an array that has the dtype is given back as is,
    unless it is weak and the result must not be."""
    kind = type(x)
    if kind in _SCALARS:
        if weak_type:
            to = python_kind(dtype)
            if dtype == dtypes.canonicalize(dtypes.PYTHON_SCALARS[to]):
                return to(x)
        return np.asarray(x).astype(dtype)[()]
    if kind is np.ndarray or isinstance(x, np.generic):
        if weak_type and np.ndim(x) == 0:
            return convert(x.item(), dtype, True)
        if x.dtype == dtype and not weak_type:
            return x
        source = dtypes.canonicalize(x.dtype)
        if not weak_type and not (dtypes.is_inexact(source) and not dtypes.is_inexact(dtype)):
            out = np.asarray(x).astype(source, copy=False).astype(dtype, copy=False)
            return out[()] if out.ndim == 0 else out
    aval = get_aval(x)
    if aval.dtype == dtype and (weak_type or not aval.weak_type):
        return x
    return convert_weakly(x, dtype, weak_type)


def promote_dtypes(*args: ArrayLike) -> list[Array]:
    """The arguments in their common dtype."""
    dtype, weak = common_type(*args)
    return [_to_common(x, dtype, weak) for x in args]


def promote_inexact(*args: ArrayLike) -> list[Array]:
    """The arguments in their common dtype, at least a floating one."""
    dtype, weak = common_type(*args)
    to = dtypes.inexact_dtype(dtype)
    return [_to_common(x, to, weak) for x in args]


def promote_numeric(*args: ArrayLike) -> list[Array]:
    """The arguments in their common dtype, booleans as integers."""
    dtype, weak = common_type(*args)
    if dtype == np.bool_:
        dtype = np.dtype(np.int32)
    return [_to_common(x, dtype, weak) for x in args]


def _to_common(x: ArrayLike, dtype: np.dtype, weak: bool) -> Any:
    # A weak array among strong ones of its dtype needs no conversion: the operation's result is
    # strong as soon as one operand is.
    if type(x) not in _SCALARS and get_aval(x).dtype == dtype:
        return x
    return convert(x, dtype, weak)


def promote_shapes(name: str, *args: Any) -> list[Array]:
    """The arguments in one rank, apart from scalars, which lax broadcasts."""
    shapes = [shape_of(x) for x in args]
    ranks = {len(s) for s in shapes if s}
    if len(ranks) < 2:
        return list(args)
    check_ranks(name, shapes)
    rank = max(ranks)
    broadcast_shapes(*shapes)  # raises where they do not fit
    return [
        x if len(s) in (0, rank) else raise_rank(x, rank) for x, s in zip(args, shapes, strict=True)
    ]


def shape_of(x: ArrayLike) -> tuple[int, ...]:
    """The shape of an array-like; () of scalars, whose classes may be derived from Python's."""
    return () if type(x) in _SCALARS else tuple(getattr(x, "shape", ()))


def raise_rank(x: Any, rank: int) -> Array:
    """x with axes of size 1 put in front."""
    missing = rank - len(x.shape)
    if missing == 0:
        return x
    return lax.broadcast_in_dim(x, (1,) * missing + tuple(x.shape), tuple(range(missing, rank)))


def check_ranks(name: str, shapes: list[tuple[int, ...]]) -> None:
    """Warns or raises ValueError, as the setting numpy_rank_promotion says, of shapes whose ranks
    differ. Of the shapes that the user combines: functions of ours may broadcast as they like."""
    if config.numpy_rank_promotion.value == "allow" or not _called_by_user():
        return
    shown = " ".join(map(str, shapes))
    if config.numpy_rank_promotion.value == "raise":
        raise ValueError(
            f"Operands could not be broadcast together for {name} on shapes {shown} and with the "
            "config option jax_numpy_rank_promotion='raise'."
        )
    warnings.warn(
        f"Following NumPy automatic rank promotion for {name} on shapes {shown}. Set the "
        "jax_numpy_rank_promotion config option to 'allow' to disable this warning.",
        stacklevel=user_depth(),
    )


def promote_args(name: str, *args: ArrayLike) -> list[Array]:
    """Checked arguments in one dtype and one rank."""
    args = check_arraylike(name, *args)
    return promote_shapes(name, *_promoted(name, promote_dtypes, args))


def promote_args_inexact(name: str, *args: ArrayLike) -> list[Array]:
    args = check_arraylike(name, *args)
    return promote_shapes(name, *_promoted(name, promote_inexact, args))


def promote_strong(name: str, *args: ArrayLike) -> list[Array]:
    """promote_args_inexact for functions whose results are not weak, whatever they are of."""
    return [convert(x, get_aval(x).dtype) for x in promote_args_inexact(name, *args)]


def promote_strong_arrays(name: str, *args: ArrayLike) -> list[Array]:
    """promote_args_inexact for functions whose results are weak of Python numbers alone, and of weak arrays
    are not."""
    if all(type(x) in _SCALARS for x in args):
        return promote_args_inexact(name, *args)
    return promote_strong(name, *args)


def promote_args_numeric(name: str, *args: ArrayLike) -> list[Array]:
    args = check_arraylike(name, *args)
    return promote_shapes(name, *_promoted(name, promote_numeric, args))


def _promoted(
    name: str, promote: Callable[..., list[Array]], args: tuple[ArrayLike, ...]
) -> list[Array]:
    try:
        return promote(*args)
    except dtypes.KeyPromotionError:
        names = ", ".join(type_of(x)[0].name for x in args)
        raise TypeError(f"{name} does not accept dtypes {names}.") from None


def broadcast_to_shape(x: Any, shape: tuple[int, ...]) -> Array:
    """x broadcast to a shape by NumPy's rules. Raises ValueError where it does not fit."""
    have = shape_of(x)
    if have == shape:
        return x if type(x) not in _SCALARS else lax.full((), x)
    extra = len(shape) - len(have)
    if extra < 0 or any(h not in (1, s) for h, s in zip(have, shape[extra:], strict=True)):
        short = get_aval(x)
        raise ValueError(
            f"Incompatible types for broadcasting: input type={short.str_long().lstrip('~')} and "
            f"requested type={short.dtype.name}[{','.join(map(str, shape))}]"
        )
    return lax.broadcast_in_dim(x, shape, tuple(range(extra, len(shape))))


def literal(like: ArrayLike, value: Any) -> Any:
    """A scalar of the dtype of `like`, weak if that is, which jaxprs write as a literal."""
    aval = get_aval(like)
    scalar = np.asarray(value).astype(aval.dtype)[()]
    if aval.weak_type and dtypes.canonicalize(type(scalar.item())) == aval.dtype:
        return scalar.item()
    return scalar


def pick(which: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """lax.select of operands of one dtype that broadcast."""
    cases = broadcast_shapes(shape_of(on_true), shape_of(on_false))
    shape = broadcast_shapes(cases, shape_of(which))
    if shape_of(which) or shape != cases:
        which = broadcast_to_shape(which, shape)
    return lax.select(
        which, broadcast_to_shape(on_true, shape), broadcast_to_shape(on_false, shape)
    )


def canonical_axis(axis: Any, ndim: int) -> int:
    """A nonnegative axis. ValueError if it is out of range, TypeError if it is no integer."""
    try:
        index = axis.__index__()
    except AttributeError:
        raise TypeError(f"axis must be an integer, got {axis!r} of type {type(axis)}") from None
    if not -ndim <= index < ndim:
        raise ValueError(f"axis {index} is out of bounds for array of dimension {ndim}")
    return index + ndim if index < 0 else index


def canonical_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Nonnegative, distinct axes; None means all of them."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, str | float):
        raise TypeError(f"axis must be None, an integer or some integers, got {axis!r}")
    if not isinstance(axis, (int, tuple, list)):
        axis = concrete_or_error(axis, "The axis argument must be known statically.")
    if isinstance(axis, (tuple, list)) or (isinstance(axis, np.ndarray) and axis.ndim == 1):
        axes = tuple(canonical_axis(a, ndim) for a in axis)
        if len(set(axes)) != len(axes):
            raise ValueError(f"repeated axis: duplicate value in 'axis': {tuple(axis)}")
        return axes
    return (canonical_axis(axis, ndim),)


def refuse_out(name: str, out: Any) -> None:
    """Arrays are immutable: the `out` argument must be None."""
    if out is not None:
        raise NotImplementedError(
            f"The 'out' argument to {library}.numpy.{name} is not supported. Arrays are immutable: use "
            "what the function returns."
        )


def concrete_or_error(x: Any, message: str) -> np.ndarray:
    """The value of x; ConcretizationTypeError with this message where it is traced."""
    from lamina.core.trace import Tracer
    from lamina.errors import ConcretizationTypeError

    if isinstance(x, Tracer):
        value = x.asked()
        if value is None:
            raise ConcretizationTypeError(x, message)
        x = value
    return np.asarray(x)
