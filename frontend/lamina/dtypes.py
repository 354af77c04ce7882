"""Dtype queries under JAX's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.core.dtypes import bfloat16 as bfloat16
from lamina.core.dtypes import canonicalize as canonicalize_dtype
from lamina.core.dtypes import finfo as finfo
from lamina.core.dtypes import float0 as float0
from lamina.core.dtypes import iinfo as iinfo
from lamina.errors import TypePromotionError as TypePromotionError
from lamina.numpy.scalar_types import extended as extended
from lamina.numpy.scalar_types import prng_key as prng_key
from lamina.numpy.type_functions import issubdtype as issubdtype
from lamina.numpy.type_functions import result_type as result_type

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo",
    "issubdtype", "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip


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
