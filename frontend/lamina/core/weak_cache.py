"""Memory of what was computed from a jaxpr, for as long as the jaxpr lives."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from lamina import config
from lamina.core import axes, current_mesh

F = TypeVar("F", bound=Callable[..., Any])


def cache_on_jaxpr(f: F) -> F:
    """Remembers f(closed_jaxpr, *hashable) per jaxpr object, and per setting, named axes and
    current mesh, which affect traces."""
    memory: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(f)
    def cached(closed: Any, *rest: Any) -> Any:
        entries = memory.setdefault(closed, {})
        key = (rest, config.trace_key(), axes.trace_key(), current_mesh.key())
        if key not in entries:
            entries[key] = f(closed, *rest)
        return entries[key]

    return cached  # type: ignore[return-value]
