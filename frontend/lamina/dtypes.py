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
    """The dtype that lamina uses where `dtype` is asked for: 64-bit types become 32-bit ones unless
    x64 is enabled. Dtypes of keys are refused unless allow_extended_dtype."""
    if getattr(dtype, "type", None) is prng_key:
        if not allow_extended_dtype:
            raise ValueError(f"Internal: canonicalize_dtype called on extended dtype {dtype}")
        return dtype
    return _dtypes.canonicalize(dtype)


def issubdtype(a: Any, b: Any) -> bool:
    """Whether a is below b in the hierarchy of dtypes (extension dtypes included)."""
    return _type_functions.issubdtype(a, b)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of the result of an operation on these arrays, scalars and dtypes; with
    return_weak_type_flag also whether it is weak."""
    dtype, weak = _type_functions.promoted_type(*args)
    return (dtype, weak) if return_weak_type_flag else dtype


def itemsize_bits(dtype: Any) -> int:
    """The bits that an element of a dtype has (in memory those of narrow ones take a byte)."""
    found = np.dtype(dtype)
    if issubdtype(found, np.bool_):
        return 8
    if issubdtype(found, np.integer):
        return int(iinfo(found).bits)
    if issubdtype(found, np.floating):
        return int(finfo(found).bits)
    return found.itemsize * 8


def scalar_type_of(x: Any) -> type:
    """The Python scalar type (bool, int, float, complex) of the category of a value's dtype."""
    from lamina.core.trace import get_aval

    dtype = get_aval(x).dtype
    for category, kind in ((np.bool_, bool), (np.integer, int), (np.floating, float),
                           (np.complexfloating, complex)):  # fmt: skip
        if issubdtype(dtype, category):
            return kind
    raise TypeError(f"Invalid scalar value {x}")
