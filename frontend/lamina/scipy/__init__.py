"""SciPy's functions on lamina's arrays; each part is loaded when it is first named."""

from __future__ import annotations

import importlib as _importlib

from lamina.core.library import library as _library

_MODULES = frozenset({
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
    "sparse", "spatial", "special", "stats",
})  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _importlib.import_module(f"lamina.scipy.{name}")
    raise AttributeError(f"module '{_library}.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
