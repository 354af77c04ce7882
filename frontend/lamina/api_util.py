"""Functions of pytrees as functions of flat arguments, for libraries that make transformations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.tracing import debug_info as _debug_info
from lamina.core import tree
from lamina.core.jaxpr import DebugInfo
from lamina.core.trace import get_aval as shaped_abstractify
from lamina.extend.linear_util import transformation_with_aux2

__all__ = ["debug_info", "flatten_fun", "flatten_fun_nokwargs", "shaped_abstractify"]


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    **_: Any,
) -> DebugInfo:
    """Name, place and argument names of a function, for messages and symbols."""
    return _debug_info(fun, traced_for, args, kwargs)


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Any, in_tree: Any, *args: Any) -> list[Any]:
    """The function of the leaves of (args, kwargs); and what gives its result's structure."""
    given, named = tree.unflatten(in_tree, args)
    leaves, out_tree = tree.flatten(f(*given, **named))
    store.store(out_tree)
    return leaves


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., Any], store: Any, in_tree: Any, *args: Any) -> list[Any]:
    """The function of the leaves of args; and what gives its result's structure."""
    leaves, out_tree = tree.flatten(f(*tree.unflatten(in_tree, args)))
    store.store(out_tree)
    return leaves
