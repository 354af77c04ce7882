"""What user functions and abstract evaluation rules check, and how their messages read."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lamina import errors
from lamina.core import ShapedArray, Tracer, dtypes, get_aval
from lamina.core.library import library

_CATEGORIES: dict[str, frozenset[np.dtype]] = {
    name: frozenset(d for d in map(dtypes.from_short_name, _names.split()))
    for name, _names in {
        "bool": "bool",
        "signedinteger": "i2 i4 i8 i16 i32 i64",
        "unsignedinteger": "u2 u4 u8 u16 u32 u64",
        "floating": "bf16 f16 f32 f64",
        "complexfloating": "c64 c128",
    }.items()
}
_CATEGORIES["floating"] |= frozenset((*dtypes.FLOAT8, *dtypes.FLOAT46))
_CATEGORIES["integer"] = _CATEGORIES["signedinteger"] | _CATEGORIES["unsignedinteger"]


class Accepted(NamedTuple):
    """The dtypes that an operation takes, and how to name them."""

    dtypes: frozenset[np.dtype]
    names: str


MOST_REACH = 1 << 56
"""Memory has no addresses for more bytes; what is a few times as far still has a 64-bit number."""


def check_reach(name: str, *numbers: int) -> None:
    """Raises ValueError where paddings, dilated sizes or strides lead beyond all memory, even where the
    result is small again."""
    for number in numbers:
        if abs(number) > MOST_REACH:
            raise ValueError(f"[{name}] reaches over {number} elements, beyond what 64 bits count")


def accepted(*categories: str) -> Accepted:
    """All dtypes of these categories: bool, integer, signedinteger, floating, complexfloating."""
    return Accepted(frozenset().union(*(_CATEGORIES[c] for c in categories)), ", ".join(categories))


ANY_OR_KEY = Accepted(
    accepted("bool", "integer", "floating", "complexfloating").dtypes | set(dtypes.KEYS.values()),  # type: ignore[arg-type]
    "bool, integer, floating, complexfloating, prng_key",
)
ANY = accepted("bool", "integer", "floating", "complexfloating")
NUMBER = accepted("integer", "floating", "complexfloating")
SIGNED = accepted("signedinteger", "floating", "complexfloating")
REAL = accepted("integer", "floating")
INEXACT = accepted("floating", "complexfloating")
FLOAT = accepted("floating")
COMPLEX = accepted("complexfloating")
INTEGER = accepted("integer")
BITS = accepted("integer", "bool")


def check_accepted(name: str, accept: Accepted, aval: ShapedArray, position: int | None = None
                   ) -> None:  # fmt: skip
    """Raises TypeError if an operand's dtype is not among those that operation `name` takes."""
    if aval.dtype not in accept.dtypes:
        at = "" if position is None else f" at position {position}"
        name = _BITWISE.get(name, name)
        raise TypeError(
            f"{name} does not accept dtype {aval.dtype.name}{at}. "
            f"Accepted dtypes{at} are subtypes of {accept.names}."
        )


# Primitives that functions call otherwise, in lax and in numpy.
_BITWISE = {
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "bitwise_not"
}  # fmt: skip

# lax functions whose promoting counterpart in lamina.numpy has another name.
_NUMPY_NAMES = {
    "sub": "subtract", "mul": "multiply", "div": "divide", "rem": "remainder", "pow": "power",
    "max": "maximum", "min": "minimum", "eq": "equal", "ne": "not_equal", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "shift_left": "left_shift", "atan2": "arctan2",
    "shift_right_arithmetic": "right_shift", "add": "add", "concatenate": "concatenate",
    "nextafter": "nextafter", "clamp": "clip", "select": "where", "dot_general": "dot",
}  # fmt: skip


def check_same_dtypes(name: str, avals: Iterable[ShapedArray]) -> None:
    """Raises TypeError unless all operands have one dtype."""
    found = [a.dtype for a in avals]
    if any(d != found[0] for d in found):
        other = _NUMPY_NAMES.get(name)
        tip = (
            f" (Tip: jnp.{other} is a similar function that does automatic type promotion on "
            "inputs)."
            if other is not None
            else ""
        )
        names = ", ".join(d.name for d in found)
        raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got {names}.{tip}")


def check_rank(name: str, aval: ShapedArray, least: int) -> None:
    """Raises TypeError if an operand has fewer than `least` dimensions."""
    if len(aval.shape) < least:
        raise TypeError(
            f"[{name}] needs an operand of rank {least} or more, got {aval.str_short()}"
        )


def canonical_axis(name: str, axis: Any, ndim: int) -> int:
    """The axis counted from the front; ValueError if there is no such axis."""
    if not hasattr(axis, "__index__"):
        raise TypeError(f"[{name}] axis must be an integer, got {axis!r}")
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        raise ValueError(f"[{name}] axis {index} is out of bounds for array of dimension {ndim}")
    return index + ndim if index < 0 else index


def canonical_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Distinct axes counted from the front; ValueError if out of bounds or repeated."""
    if not isinstance(axes, Iterable):
        axes = (axes,)
    found = tuple(canonical_axis(name, a, ndim) for a in axes)
    if len(set(found)) != len(found):
        raise ValueError(f"[{name}] duplicate value in axes: {tuple(axes)}")
    return found


_MOST = (1 << 63) - 1  # a size, in MLIR


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints, none of them negative.

    Raises TypeError for anything that is not a sequence of concrete integers.
    """
    if type(shape) is tuple and all(type(d) is int for d in shape):
        sizes: tuple[int, ...] = shape
    else:
        if not isinstance(shape, Tracer) and hasattr(shape, "__array__"):
            shape = np.asarray(shape)
        if not isinstance(shape, Sequence | np.ndarray):
            raise TypeError(_shape_message(shape))
        if any(isinstance(d, Tracer) for d in shape):
            raise TypeError(
                _shape_message(shape)
                + " If using `jit`, try using `static_argnums` or applying `jit` to smaller "
                "subfunctions." + errors.origin_of(shape)
            )
        try:
            sizes = tuple(operator.index(d) for d in shape)
        except TypeError:
            raise TypeError(_shape_message(shape)) from None
    if not all(0 <= d <= _MOST for d in sizes):
        which = "negative sizes" if min(sizes) < 0 else f"sizes over {_MOST}"
        raise TypeError(f"shapes have no {which}, got {sizes}")
    return sizes


def _shape_message(shape: Any) -> str:
    return f"Shapes must be 1D sequences of concrete values of integer type, got {shape!r}."


def static_ints(name: str, what: str, values: Any) -> tuple[int, ...]:
    """A tuple of ints; TypeError, naming the parameter, if they are not concrete integers."""
    try:
        return tuple(operator.index(v) for v in values)
    except TypeError:
        raise TypeError(
            f"[{name}] {what} must be a sequence of concrete integers, got {values!r}"
        ) from None


def position_dtype(size: int) -> np.dtype:
    """The narrowest dtype from int32 on that holds the positions along an axis.

    Raises OverflowError for an axis of 2**31 elements and more without 64-bit types.
    """
    if size <= np.iinfo(np.int32).max:
        return np.dtype(np.int32)
    if dtypes.canonicalize(np.int64) != np.int64:
        raise OverflowError(
            f"positions along an axis of {size} elements need 64 bits: set enable_x64 "
            f"({library}.config.update('enable_x64', True), or {library.variable('enable_x64')}=1)"
        )
    return np.dtype(np.int64)


def dtype_of(x: Any) -> np.dtype:
    """The dtype that an array-like value has as an array; Python scalars have one too."""
    return get_aval(x).dtype


def scalar_like(x: Any, value: Any) -> Any:
    """A constant of x's dtype and rank 0, weak where that is, which jaxprs print as a literal."""
    return scalar_of(get_aval(x), value)


def scalar_of(aval: ShapedArray, value: Any) -> Any:
    """A constant of the dtype and weakness of a type: a NumPy scalar, or a Python number."""
    dtype = aval.dtype
    if aval.weak_type:
        kind = complex if dtype.kind == "c" else float if dtypes.is_float(dtype) else int
        if dtypes.default_dtype(kind) == dtype:
            return kind(value)
    return np.array(value, dtype)[()]


def is_array(x: Any) -> bool:
    """Whether x is an array of lamina's, which an operation that changes nothing may give back."""
    return isinstance(x, Tracer) or not isinstance(
        x, np.ndarray | np.generic | bool | int | float | complex
    )
