"""The current trace, for libraries with traces of their own.

    with take_current_trace() as parent:
        with set_current_trace(MyTrace(parent)):
            ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lamina.core import trace as _traces
from lamina.core.trace import Trace, Tracer
from lamina.errors import ConcretizationTypeError


class TraceTag:
    """Says to which transformation a trace belongs: only the same object is equal."""


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """Gives the current trace, and until the block ends operations are evaluated at once."""
    parent = _traces.current_trace()
    with _traces.set_current_trace(None):
        yield parent


@contextmanager
def set_current_trace(trace: Trace | None, check_leaks: bool = False) -> Iterator[None]:
    """Makes a trace the current one for a block.

    check_leaks  accepted for JAX's programs: `lamina.checking_leaks` looks at every trace.
    """
    with _traces.set_current_trace(trace):
        yield


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """force(val), or val itself where force is None, of a value that is known.

    Raises ConcretizationTypeError, which says `context`, where val is traced.
    """
    if isinstance(val, Tracer):
        value = val.concrete()
        if value is None:
            raise ConcretizationTypeError(val, context)
        val = value
    return val if force is None else force(val)
