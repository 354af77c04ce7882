"""Dtype queries under JAX's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.core import dtypes as _dtypes
from lamina.core.dtypes import bfloat16 as bfloat16
from lamina.core.dtypes import finfo as finfo
from lamina.core.dtypes import float0 as float0
from lamina.core.dtypes import iinfo as iinfo
from lamina.errors import TypePromotionError as TypePromotionError
from lamina.numpy import type_functions as _type_functions
from lamina.numpy.scalar_types import extended as extended
from lamina.numpy.scalar_types import prng_key as prng_key

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo",
    "issubdtype", "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that lamina uses where another is asked for: 64-bit types become 32-bit ones unless
    enable_x64 is on.

    dtype                 a dtype or its name.
    allow_extended_dtype  takes the dtypes of keys; otherwise they raise ValueError.

    >>> lamina.dtypes.canonicalize_dtype("float64")
    dtype('float32')
    """
    if getattr(dtype, "type", None) is prng_key:
        if not allow_extended_dtype:
            raise ValueError(f"Internal: canonicalize_dtype called on extended dtype {dtype}")
        return dtype
    return _dtypes.canonicalize(dtype)


def issubdtype(a: Any, b: Any) -> bool:
    """Whether a dtype is below another in NumPy's hierarchy, ml_dtypes' types included.

    a  a dtype, its name or a scalar type.
    b  another, or a kind such as numpy.floating.

    >>> lamina.dtypes.issubdtype("bfloat16", np.floating)
    True
    """
    return _type_functions.issubdtype(a, b)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of the result of an operation on these values, by JAX's rules of promotion.

    args                   arrays, scalars and dtypes.
    return_weak_type_flag  gives (dtype, whether it is weak, that is, a Python number's).

    >>> lamina.dtypes.result_type(jnp.ones(3, "int8"), 1.5)
    dtype('float32')
    """
    dtype, weak = _type_functions.promoted_type(*args)
    return (dtype, weak) if return_weak_type_flag else dtype


def itemsize_bits(dtype: Any) -> int:
    """The number of bits that an element of a dtype has (in memory those of narrow ones take a
    byte).

    dtype  a dtype or its name.

    >>> lamina.dtypes.itemsize_bits("int4"), lamina.dtypes.itemsize_bits("float32")
    (4, 32)
    """
    found = np.dtype(dtype)
    if issubdtype(found, np.bool_):
        return 8
    if issubdtype(found, np.integer):
        return int(iinfo(found).bits)
    if issubdtype(found, np.floating):
        return int(finfo(found).bits)
    return found.itemsize * 8


def scalar_type_of(x: Any) -> type:
    """The Python scalar type (bool, int, float, complex) of the category that a value's dtype
    belongs to.

    x  an array or a number.

    >>> lamina.dtypes.scalar_type_of(jnp.ones(3, "bfloat16"))
    <class 'float'>
    """
    from lamina.core.trace import get_aval

    dtype = get_aval(x).dtype
    for category, kind in ((np.bool_, bool), (np.integer, int), (np.floating, float),
                           (np.complexfloating, complex)):  # fmt: skip
        if issubdtype(dtype, category):
            return kind
    raise TypeError(f"Invalid scalar value {x}")
