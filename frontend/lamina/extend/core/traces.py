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
    """A context manager that gives the current trace; until the block ends operations are evaluated
    at once.

    >>> with lamina.extend.core.take_current_trace() as trace:
    ...     print(jnp.add(1, 2))
    3
    """
    parent = _traces.current_trace()
    with _traces.set_current_trace(None):
        yield parent


@contextmanager
def set_current_trace(trace: Trace | None, check_leaks: bool = False) -> Iterator[None]:
    """A context manager that makes a trace the current one for a block.

    trace        the trace, or None: operations are evaluated at once.
    check_leaks  without effect: lamina.checking_leaks looks at every trace.

    >>> with lamina.extend.core.set_current_trace(None):
    ...     print(jnp.add(1, 2))
    3
    """
    with _traces.set_current_trace(trace):
        yield


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """force(val) of a value that is known.

    force    a function such as int; None: val itself is given.
    val      an array or a number.
    context  what the error says.

    Raises ConcretizationTypeError, which says `context`, where val is traced.

    >>> lamina.extend.core.concrete_or_error(int, jnp.array(3))
    3
    """
    if isinstance(val, Tracer):
        value = val.asked()
        if value is None:
            raise ConcretizationTypeError(val, context)
        val = value
    return val if force is None else force(val)
