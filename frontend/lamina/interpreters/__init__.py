"""Interpreters of jaxprs and primitives, one transformation a file; and JAX's names for the rules of
primitives (ad, batching, mlir, partial_eval, pxla, xla), loaded when first named."""

from __future__ import annotations

import importlib as _importlib

_NAMED = {name: f"lamina.interpreters.{name}" for name in ("ad", "batching", "mlir", "partial_eval")}
_NAMED |= {name: f"lamina.extend.interpreters_{name}" for name in ("pxla", "xla")}  # of a later layer


def __getattr__(name: str) -> object:
    if name in _NAMED:
        return _importlib.import_module(_NAMED[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
