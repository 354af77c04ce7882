"""Dtype queries under JAX's names."""

from lamina.core.dtypes import bfloat16 as bfloat16
from lamina.core.dtypes import canonicalize as canonicalize_dtype
from lamina.core.dtypes import finfo as finfo
from lamina.core.dtypes import float0 as float0
from lamina.core.dtypes import iinfo as iinfo
from lamina.numpy.scalar_types import extended as extended
from lamina.numpy.scalar_types import prng_key as prng_key
from lamina.numpy.type_functions import issubdtype as issubdtype
from lamina.numpy.type_functions import result_type as result_type

__all__ = [
    "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype", "prng_key",
    "result_type",
]  # fmt: skip
