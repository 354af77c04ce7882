"""Dtype queries under JAX's names."""

from lamina.core.dtypes import bfloat16 as bfloat16
from lamina.core.dtypes import canonicalize as canonicalize_dtype
from lamina.core.dtypes import finfo as finfo
from lamina.core.dtypes import float0 as float0
from lamina.core.dtypes import iinfo as iinfo
from lamina.core.dtypes import issubdtype as issubdtype

__all__ = ["bfloat16", "canonicalize_dtype", "finfo", "float0", "iinfo", "issubdtype"]
