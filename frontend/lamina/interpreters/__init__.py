"""Interpreters of jaxprs and primitives, one transformation a file; and JAX's names for the rules of
primitives (ad, batching, mlir, partial_eval, pxla, xla), loaded when first named."""

from __future__ import annotations

import importlib as _importlib

_NAMED = frozenset({"ad", "batching", "mlir", "partial_eval", "pxla", "xla"})


def __getattr__(name: str) -> object:
    if name in _NAMED:
        return _importlib.import_module(f"lamina.interpreters.{name}")
    raise AttributeError(f"module 'lamina.interpreters' has no attribute {name!r}")
