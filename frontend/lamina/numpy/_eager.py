"""Functions of many operations, as one compiled program when called outside any transformation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from lamina import config
from lamina.core.trace import is_evaluating

F = TypeVar("F", bound=Callable[..., Any])


@overload
def compiled(fun: F) -> F: ...
@overload
def compiled(*, static: Sequence[str]) -> Callable[[F], F]: ...
def compiled(fun: Any = None, *, static: Sequence[str] = ()) -> Any:
    """Makes calls of `fun` outside transformations run as one `jit` program.

    While tracing, the function simply runs: its operations appear in the trace as they are.
    `static` names the arguments that are not arrays; they must be hashable. The result's attribute
    `jitted` holds the jitted function after the first such call.
    """
    if fun is None:
        return functools.partial(compiled, static=static)
    jitted: list[Callable[..., Any]] = []

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_evaluating() or config.disable_jit.value:
            return fun(*args, **kwargs)
        if not jitted:
            from lamina.api import jit

            jitted.append(jit(fun, static_argnames=tuple(static)))
        return jitted[0](*args, **kwargs)

    call.jitted = jitted  # type: ignore[attr-defined]
    return call
