"""Dtypes: which there are, their names, kinds and limits, and canonical widths (x64 on or off)."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from lamina import config
from lamina.core.library import library

bfloat16 = np.dtype(ml_dtypes.bfloat16)
int2, int4 = np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4)
uint2, uint4 = np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.uint4)
FLOAT8 = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
)
FLOAT46 = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
)


class extended(np.generic):
    """The category of dtypes that NumPy has not: the dtype of random keys."""


class prng_key(extended):
    """The category of the dtypes of random keys: issubdtype(key.dtype, prng_key)."""


class ExtendedDType:
    """A dtype that NumPy has not. Arrays are of those that lamina defines: random keys."""

    __slots__ = ()


class KeyDType(ExtendedDType):
    """The dtype of the random keys of one generator, `impl`, which have so many 32-bit words.

    In a compiled program a key is one number of type `physical`, its words side by side: whatever
    moves elements moves keys. (Of four words that is a complex128, since nothing else has 128 bits;
    it is moved, never computed with.)
    """

    __slots__ = ("impl", "itemsize", "name", "physical", "words")

    kind = "V"
    type = prng_key

    def __init__(self, impl: str, tag: str, words: int) -> None:
        self.impl, self.words = impl, words
        self.name = f"key<{tag}>"
        self.itemsize = 4 * words
        self.physical = np.dtype({1: np.uint32, 2: np.uint64, 4: np.complex128}[words])

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


# The generators of lamina.random, by name.
KEYS = {
    dtype.impl: dtype
    for dtype in (
        KeyDType("threefry2x32", "fry", 2),
        KeyDType("rbg", "rbg", 4),
        KeyDType("unsafe_rbg", "urbg", 4),
        KeyDType("threefry4x32", "fry4", 4),
        KeyDType("philox2x32", "phx2", 1),
        KeyDType("philox4x32", "phx4", 2),
    )
}
KEY = KEYS["threefry2x32"]
KEYS_BY_NAME = {dtype.name: dtype for dtype in KEYS.values()}


def is_key(dtype: Any) -> bool:
    """Whether this is a dtype of random keys."""
    return isinstance(dtype, KeyDType)


# Tangent dtype of integers and booleans: holds no information.
float0 = np.dtype([("float0", np.void, 0)])

_b, _u1, _u2, _u4, _u8 = (np.dtype(t) for t in ("bool", "uint8", "uint16", "uint32", "uint64"))
_i1, _i2, _i4, _i8 = (np.dtype(t) for t in ("int8", "int16", "int32", "int64"))
_f2, _f4, _f8 = (np.dtype(t) for t in ("float16", "float32", "float64"))
_c8, _c16 = np.dtype("complex64"), np.dtype("complex128")

_SHORT = {
    _b: "bool",
    _u1: "u8",
    _u2: "u16",
    _u4: "u32",
    _u8: "u64",
    _i1: "i8",
    _i2: "i16",
    _i4: "i32",
    _i8: "i64",
    _f2: "f16",
    _f4: "f32",
    _f8: "f64",
    _c8: "c64",
    _c16: "c128",
    bfloat16: "bf16",
    int2: "i2",
    int4: "i4",
    uint2: "u2",
    uint4: "u4",
    float0: "float0",
    **{d: "f" + d.name.removeprefix("float") for d in (*FLOAT8, *FLOAT46)},
}
_FROM_SHORT = {name: dtype for dtype, name in _SHORT.items()}
_FROM_NAME = {dtype.name: dtype for dtype in _SHORT}

_NARROW = {_i8: _i4, _u8: _u4, _f8: _f4, _c16: _c8}

# Python scalar types, in lattice order, and the dtype each has when nothing else decides.
PYTHON_SCALARS: dict[type, np.dtype] = {bool: _b, int: _i8, float: _f8, complex: _c16}


def short_name(dtype: np.dtype) -> str:
    """The name of a dtype in jaxprs: f32, i32, bool, bf16, c64 ..."""
    return _SHORT.get(dtype) or dtype.name


def from_short_name(name: str) -> np.dtype:
    """The dtype whose name in jaxprs is `name`; KeyError if there is none."""
    return KEYS_BY_NAME.get(name) or _FROM_SHORT[name]  # type: ignore[return-value]


def from_name(name: str) -> np.dtype | None:
    """The dtype with this full name (float32); None if arrays can have none such."""
    return _FROM_NAME.get(name)


def canonicalize(dtype: Any) -> np.dtype:
    """The dtype that lamina uses where `dtype` is asked for: 64-bit types become 32-bit ones
    unless x64 is enabled. Python scalar types stand for their default dtypes.

    Raises TypeError for what is not a dtype lamina knows (strings, objects, datetimes).
    """
    return _canonicalize(dtype, config.enable_x64.value)


@functools.lru_cache(maxsize=512)
def _canonicalize(dtype: Any, x64: bool) -> np.dtype:
    if isinstance(dtype, KeyDType):
        return dtype  # type: ignore[return-value]
    dtype = np.dtype(dtype)
    if dtype not in _SHORT:
        raise TypeError(
            f"{dtype!s} is not a dtype that arrays can have: {library.name} holds booleans, integers, "
            "floats and complex numbers"
        )
    return dtype if x64 else _NARROW.get(dtype, dtype)


def is_known(dtype: np.dtype) -> bool:
    """Whether arrays may have this dtype."""
    return dtype in _SHORT or is_key(dtype)


def default_dtype(kind: type) -> np.dtype:
    """The dtype of a Python scalar of type bool, int, float or complex standing alone."""
    return canonicalize(PYTHON_SCALARS[kind])


# NumPy does not know the category of ml_dtypes' types.
_EXTENDED = {
    "floating": (bfloat16, *FLOAT8, *FLOAT46),
    "signedinteger": (int2, int4),
    "unsignedinteger": (uint2, uint4),
}


def issubdtype(dtype: Any, kind: Any) -> bool:
    """np.issubdtype that also knows bfloat16, float8 and int4."""
    if isinstance(dtype, KeyDType):
        return dtype == kind or (isinstance(kind, type) and issubclass(prng_key, kind))
    if isinstance(kind, type) and issubclass(kind, np.generic):
        if (
            not isinstance(dtype, np.dtype)
            and isinstance(dtype, type)
            and (
                dtype
                in (
                    np.floating,
                    np.integer,
                    np.inexact,
                    np.number,
                    np.signedinteger,
                    np.unsignedinteger,
                    np.complexfloating,
                    np.generic,
                )
            )
        ):
            return issubclass(dtype, kind)
        dtype = np.dtype(dtype)
        for category, members in _EXTENDED.items():
            if dtype in members:
                return kind is dtype.type or issubclass(getattr(np, category), kind)
        return bool(np.issubdtype(dtype, kind))
    return not isinstance(kind, KeyDType) and bool(np.dtype(dtype) == np.dtype(kind))


@functools.lru_cache(maxsize=256)
def is_float(dtype: np.dtype) -> bool:
    """Real floating point, bfloat16 and float8 included."""
    return dtype.kind == "f" or dtype in _EXTENDED["floating"]


@functools.lru_cache(maxsize=256)
def is_complex(dtype: np.dtype) -> bool:
    return dtype.kind == "c"


@functools.lru_cache(maxsize=256)
def is_inexact(dtype: np.dtype) -> bool:
    return is_float(dtype) or dtype.kind == "c"


@functools.lru_cache(maxsize=256)
def is_integer(dtype: np.dtype) -> bool:
    """Signed or unsigned integers; booleans are not."""
    return dtype.kind in "iu" or dtype in (int2, int4, uint2, uint4)


@functools.lru_cache(maxsize=256)
def is_signed(dtype: np.dtype) -> bool:
    return dtype.kind == "i" or dtype in (int2, int4)


@functools.lru_cache(maxsize=256)
def is_unsigned(dtype: np.dtype) -> bool:
    return dtype.kind == "u" or dtype in (uint2, uint4)


def tangent_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of derivatives with respect to a value of this dtype."""
    return dtype if is_inexact(dtype) else float0


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the real part: complex64 -> float32; real dtypes are returned as they are."""
    return {_c8: _f4, _c16: _f8}.get(dtype, dtype)


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """The complex dtype that holds values of `dtype`."""
    if dtype.kind == "c":
        return dtype
    return _c16 if dtype == _f8 else _c8


def inexact_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of exp(x) for x of this dtype: integers of 64 bits become float64, others float32."""
    if is_key(dtype):
        raise KeyPromotionError(f"dtype={dtype.name} is not a valid dtype for type promotion.")
    if is_inexact(dtype):
        return dtype
    return np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)


def least(dtype: np.dtype) -> Any:
    """The least value of a dtype: what a maximum starts from."""
    return _limit(dtype, -np.inf, False, "min")


def greatest(dtype: np.dtype) -> Any:
    """The greatest value of a dtype: what a minimum starts from."""
    return _limit(dtype, np.inf, True, "max")


def _limit(dtype: np.dtype, infinity: float, boolean: bool, attribute: str) -> Any:
    if dtype.kind == "b":
        return boolean
    if is_integer(dtype):
        return int(getattr(iinfo(dtype), attribute))
    if dtype.kind == "c":
        return complex(infinity, infinity)
    value = np.array(infinity, dtype)
    if np.isinf(value.astype(np.float32)):
        return infinity
    return float(getattr(finfo(dtype), attribute))  # formats without infinities


def finfo(dtype: Any) -> Any:
    """The limits of a float dtype, as numpy.finfo gives them, for ml_dtypes' types too: bits, eps,
    max, min, tiny and others.

    dtype  a float dtype, its name, or an array's value.

    Raises ValueError for other dtypes.

    >>> print(lamina.dtypes.finfo("bfloat16").eps)
    0.0078125
    """
    dtype = np.dtype(dtype)
    if dtype in _EXTENDED["floating"]:
        return ml_dtypes.finfo(dtype)
    return np.finfo(real_dtype(dtype))


def iinfo(dtype: Any) -> Any:
    """The limits of an integer dtype, as numpy.iinfo gives them, for ml_dtypes' types too: bits,
    max, min.

    dtype  an integer dtype or its name.

    Raises ValueError for other dtypes.

    >>> lamina.dtypes.iinfo("int8").max
    127
    """
    dtype = np.dtype(dtype)
    return np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.iinfo(dtype)


class KeyPromotionError(ValueError):
    """Random keys have no type in common with numbers."""
