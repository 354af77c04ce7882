"""Exchange of arrays with other libraries, without a copy, by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.array import from_dlpack as _from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]

_NOT_IN_DLPACK = frozenset({"int2", "int4", "uint2", "uint4"})


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """An array on the memory of another library's array: see lamina.numpy.from_dlpack.

    external_array  what has __dlpack__.
    device          where the result is; by default where the memory is.
    copy            True: always, False: never, None: where needed.

    >>> lamina.dlpack.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged.

    dtype  a dtype or its name.

    >>> lamina.dlpack.is_supported_dtype("float32")
    True
    """
    name = np.dtype(dtype).name
    return name not in _NOT_IN_DLPACK and np.dtype(dtype).kind not in "OSUmM" and (
        not name.startswith(("float4", "float6", "float8"))
    )  # fmt: skip
