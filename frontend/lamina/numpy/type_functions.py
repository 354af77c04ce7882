"""Questions about dtypes and types: finfo, result_type, issubdtype, isscalar ..."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import config
from lamina.core import dtypes, type_promotion
from lamina.core.array_class import Array
from lamina.core.library import library
from lamina.core.trace import Tracer, get_aval, is_array_like, makes_array
from lamina.numpy.promotion import DTypeLike, canonical_axes, check_arraylike, user_depth
from lamina.numpy.scalar_types import extended, prng_key

dtype = np.dtype


def finfo(dtype: DTypeLike) -> Any:
    """Machine limits of a floating dtype (bfloat16 and float8 among them), or of an array's.

    dtype  a dtype or an array

    >>> jnp.finfo("float16").bits
    16
    """
    return dtypes.finfo(_dtype_of(dtype))


def iinfo(dtype: DTypeLike) -> Any:
    """Machine limits of an integer dtype, or of an array's.

    dtype  a dtype or an array

    >>> int(jnp.iinfo("int8").max)
    127
    """
    return dtypes.iinfo(_dtype_of(dtype))


def _dtype_of(x: Any) -> np.dtype:
    if type(x) is type and x in dtypes.PYTHON_SCALARS:
        return dtypes.default_dtype(x)
    found = getattr(x, "dtype", None)
    return found if isinstance(found, np.dtype) else np.dtype(x)


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The dtype that arrays of dtypes a and b have together. Python types count as weak.

    a, b  dtypes or Python's types

    >>> jnp.promote_types("int32", "float16")
    dtype('float16')
    """
    pairs = _type_pair(a), _type_pair(b)
    with config.enable_x64(True):  # 64-bit types that are asked for stay
        dtype, weak = type_promotion.promote_types(*pairs)
    known = weak or any(dtype == d for d, _ in pairs)
    # What signed and unsigned integers have in common is no wider than integers here may be.
    return dtype if known or not dtypes.is_integer(dtype) else dtypes.canonicalize(dtype)


def _type_pair(x: Any) -> tuple[np.dtype, bool]:
    if isinstance(x, type) and x in dtypes.PYTHON_SCALARS and x is not bool:
        return dtypes.PYTHON_SCALARS[x], True
    return np.dtype(x), False


def result_type(*args: Any) -> np.dtype:
    """The dtype of the result of an operation on these arrays, scalars and dtypes.

    args  at least one

    >>> jnp.result_type(jnp.array([1, 2]), 1.5)
    dtype('float32')
    """
    return promoted_type(*args)[0]


def promoted_type(*args: Any) -> tuple[np.dtype, bool]:
    """As result_type, and whether the result is weak."""
    if not args:
        raise ValueError("at least one array or dtype is required")
    pairs = []
    for x in args:
        if is_array_like(x) and not isinstance(x, type):
            aval = get_aval(x)
            pairs.append((aval.dtype, aval.weak_type))
        elif isinstance(x, type) and x in dtypes.PYTHON_SCALARS and x is not bool:
            pairs.append((dtypes.default_dtype(x), True))
        elif hasattr(x, "dtype") and hasattr(x, "shape") and not isinstance(x, type):
            pairs.append((dtypes.canonicalize(x.dtype), bool(getattr(x, "weak_type", False))))
        else:
            pairs.append((dtypes.canonicalize(np.dtype(x)), False))
    dtype, weak = type_promotion.promote_types(*pairs)
    return dtypes.canonicalize(dtype), weak


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Whether arg1 is below arg2 in the hierarchy of dtypes (extension dtypes included).

    arg1, arg2  dtypes or abstract types

    >>> jnp.issubdtype("float16", jnp.floating)
    True
    """
    kind = getattr(arg1, "type", arg1)
    special = kind is extended or kind is prng_key
    if special or arg2 in (extended, prng_key) or isinstance(arg2, dtypes.ExtendedDType):
        above = (extended, prng_key, np.generic) if kind is prng_key else (extended, np.generic)
        return special and (arg2 in above or arg1 == arg2)
    if not isinstance(arg1, type) or not issubclass(arg1, np.generic):
        arg1 = _dtype_of(arg1)
    if isinstance(arg2, type) and issubclass(arg2, np.generic):
        return dtypes.issubdtype(arg1, arg2)
    if isinstance(arg2, type) and arg2 in (float, complex, int, bool):
        return dtypes.issubdtype(arg1, {float: np.floating, complex: np.complexfloating,
                                        int: np.integer, bool: np.bool_}[arg2])  # fmt: skip
    if isinstance(arg1, type) and arg1 in _ABSTRACT:
        return False  # nothing abstract is below a dtype
    return np.dtype(arg1) == _dtype_of(arg2)


_ABSTRACT = (np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating,
             np.complexfloating, np.flexible, np.character)  # fmt: skip


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, "bool", "integral", "real floating", ..., or a tuple
    of these (the array API's function).

    dtype  a dtype
    kind   see above

    >>> jnp.isdtype("int8", "integral")
    True
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    found = _dtype_of(dtype)
    return any(_is_kind(found, k) for k in kinds)


_KINDS: dict[str, Callable[[np.dtype], bool]] = {
    "bool": lambda d: d == np.bool_,
    "signed integer": dtypes.is_signed,
    "unsigned integer": dtypes.is_unsigned,
    "integral": dtypes.is_integer,
    "real floating": dtypes.is_float,
    "complex floating": dtypes.is_complex,
    "numeric": lambda d: dtypes.is_integer(d) or dtypes.is_inexact(d),
}


def _is_kind(dtype: np.dtype, kind: Any) -> bool:
    if isinstance(kind, str):
        test = _KINDS.get(kind)
        if test is None:
            raise ValueError(f"Unrecognized kind={kind!r}; expected one of {sorted(_KINDS)}")
        return test(dtype)
    return dtype == _dtype_of(kind)


def can_cast(from_: DTypeLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether NumPy's rules allow the cast.

    from_, to  dtypes
    casting    "no", "equiv", "safe", "same_kind" or "unsafe"

    >>> jnp.can_cast("int32", "float32")
    False
    """
    return bool(np.can_cast(_dtype_of(from_), _dtype_of(to), casting=casting))  # type: ignore[arg-type]


def shape(a: Any) -> tuple[int, ...]:
    """The shape of an array or scalar, or of the array that nested sequences of them make.

    Raises ValueError where parts of a sequence have different shapes.

    >>> lamina.numpy.shape([[1, 2, 3], [4, 5, 6]])
    (2, 3)
    """
    if is_array_like(a):
        return tuple(get_aval(a).shape)
    if makes_array(a):
        return shape(a.__jax_array__())
    if isinstance(a, (list, tuple)) and a:
        shapes = [shape(x) for x in a]
        if len(set(shapes)) > 1:
            raise ValueError(f"shape: the elements of a sequence have different shapes: {shapes}")
        return (len(a), *shapes[0])
    return np.shape(a)


def ndim(a: Any) -> int:
    """The number of axes of an array or scalar, or of what nested sequences of them make.

    a  an array, a number or a sequence

    >>> jnp.ndim([[1, 2], [3, 4]])
    2
    """
    return len(shape(a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements of an array, a scalar or nested sequences: in all, or along one axis or
    several.

    a     an array, a number or a sequence
    axis  an axis, several, or None for all

    >>> jnp.size([[1, 2, 3], [4, 5, 6]])
    6
    """
    sizes = shape(a)
    axes = range(len(sizes)) if axis is None else canonical_axes(axis, len(sizes))
    return math.prod(sizes[i] for i in axes)


def isscalar(element: Any) -> bool:
    """Whether the value is a Python or NumPy scalar or a 0-dimensional array.

    element  any value

    >>> jnp.isscalar(1.5), jnp.isscalar([1])
    (True, False)
    """
    if isinstance(element, Tracer) or hasattr(element, "shape"):
        return tuple(element.shape) == () and (
            is_array_like(element) or hasattr(element, "__jax_array__")
        )
    if makes_array(element):
        return get_aval(element).shape == ()
    return bool(np.isscalar(element))


def iscomplexobj(x: Any) -> bool:
    """Whether x has a complex dtype (not: whether a value of it is complex).

    x  an array or number

    >>> jnp.iscomplexobj(jnp.array([0j]))
    True
    """
    if x is None:
        return False
    if is_array_like(x) or makes_array(x):
        return get_aval(x).dtype.kind == "c"
    return bool(np.iscomplexobj(x))


def isrealobj(x: Any) -> bool:
    """Whether x has a dtype that is not complex.

    x  an array or number

    >>> jnp.isrealobj(jnp.array([0j]))
    False
    """
    return not iscomplexobj(x)


def astype(x: Any, dtype: DTypeLike | None, /, *, copy: bool = False, device: Any = None) -> Array:
    """x converted to a dtype (None: the default float). Complex to real keeps the real part.

    x       an array or number
    dtype   the new dtype
    copy    whether an array that has the dtype already is copied
    device  where to put it

    >>> jnp.astype(jnp.array([1.7, -1.7]), "int32").tolist()
    [1, -1]
    """
    from lamina.numpy.creation import asarray, astype_array, placed

    check_arraylike("astype", x)
    to = dtypes.default_dtype(float) if dtype is None else dtype
    if get_aval(x).dtype.kind == "c" and dtypes.canonicalize(to).kind not in "cb":
        warnings.warn(
            "Casting from complex to real dtypes will soon raise a ValueError. Take the real or the "
            f"imaginary part first, by {library}.numpy.real or {library}.numpy.imag.",
            DeprecationWarning,
            stacklevel=user_depth(),
        )
    out = astype_array(x, to)
    return placed(asarray(out, copy=copy and out is x), device)


def iterable(y: Any) -> bool:
    """Whether y can be iterated over.

    y  any value

    >>> jnp.iterable([1, 2]), jnp.iterable(3)
    (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True
