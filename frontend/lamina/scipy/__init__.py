"""SciPy's functions on lamina's arrays; each part is loaded when it is first named."""

from __future__ import annotations

import typing as _typing

from lamina.core.lazy_names import lazy_names as _lazy_names

if _typing.TYPE_CHECKING:
    from lamina.scipy import cluster as cluster
    from lamina.scipy import fft as fft
    from lamina.scipy import integrate as integrate
    from lamina.scipy import interpolate as interpolate
    from lamina.scipy import linalg as linalg
    from lamina.scipy import ndimage as ndimage
    from lamina.scipy import optimize as optimize
    from lamina.scipy import signal as signal
    from lamina.scipy import sparse as sparse
    from lamina.scipy import spatial as spatial
    from lamina.scipy import special as special
    from lamina.scipy import stats as stats

_MODULES = frozenset({
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
    "sparse", "spatial", "special", "stats",
})  # fmt: skip

if not _typing.TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = _lazy_names(__name__, _MODULES, {})
