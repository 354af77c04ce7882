"""What the array API standard asks a namespace to say of itself: version, dtypes, devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.core import dtypes

__array_api_version__ = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", __array_api_version__)

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
_KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}


class ArrayNamespaceInfo:
    """The standard's inspection of a namespace; `lamina.numpy.__array_namespace_info__()` makes it.

    >>> lamina.numpy.__array_namespace_info__().dtypes(kind="real floating")
    {'float32': dtype('float32')}
    """

    def capabilities(self) -> dict[str, Any]:
        """Which parts of the standard need shapes that depend on values: none are here in compiled
        programs. And the greatest number of dimensions."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device that new arrays go to where the user set one; else None: the first."""
        from lamina import config

        return config.default_device.value

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of arrays made without one, as the setting `enable_x64` has them."""
        index = dtypes.default_dtype(int)
        return {
            "real floating": dtypes.default_dtype(float),
            "complex floating": dtypes.default_dtype(complex),
            "integral": index,
            "indexing": index,
        }

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """The standard's dtypes that arrays can have now, by name: all, or those of a kind or of
        several ("bool", "integral", "real floating", ...).

        Raises ValueError for a kind that the standard does not know.
        """
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        found: dict[str, np.dtype] = {}
        for one in kinds:
            if one not in _KINDS:
                raise ValueError(f"dtypes: kind {one!r} is none of {', '.join(map(repr, _KINDS))}")
            for name in _KINDS[one]:
                if dtypes.canonicalize(name) == name:
                    found[name] = np.dtype(name)
        return found

    def devices(self) -> list[Any]:
        """Where arrays can be: the devices, and None for the default one."""
        from lamina.devices import devices

        return [None, *devices()]


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What the array API standard asks of a namespace: its dtypes, devices, capabilities."""
    return ArrayNamespaceInfo()
