"""Refs in control flow: what a body does to refs from outside becomes part of its carry or result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.tracing import debug_info
from lamina.core import refs, tree
from lamina.core.avals import ShapedArray
from lamina.core.refs import Ref
from lamina.core.trace import get_aval
from lamina.interpreters.staging import trace_to_jaxpr


def written_by(fun: Callable[..., Any], what: str, *examples: Any) -> list[Ref]:
    """The refs from outside that fun writes, called with values like these (arrays or types); `what`
    calls it, for messages."""
    return used_by(fun, what, *examples).written


def used_by(fun: Callable[..., Any], what: str, *examples: Any) -> refs.Recording:
    """What fun does to refs from outside."""
    leaves, in_tree = tree.flatten(examples)

    def flat(*tracers: Any) -> list[Any]:
        fun(*tree.unflatten(in_tree, tracers))
        return []

    with refs.recording() as found:
        avals = [x if isinstance(x, ShapedArray) else get_aval(x) for x in leaves]
        trace_to_jaxpr(flat, avals, debug_info(fun, what, examples))
    return found


def values_of(found: Sequence[Ref]) -> list[Any]:
    """What refs hold now."""
    return [ref.read() for ref in found]


def write_all(found: Sequence[Ref], values: Sequence[Any]) -> None:
    """Puts values into refs."""
    for ref, value in zip(found, values, strict=True):
        ref.write(value)


def step_with(f: Callable[[Any, Any], Any], found: Sequence[Ref]) -> Callable[[Any, Any], Any]:
    """A scan's step that carries what is in refs."""
    call = refs.lifted(f, found)

    def step(carry: Any, x: Any) -> Any:
        (new, y), values = call(carry[1], carry[0], x)
        return (new, values), y

    return step


def loop_with(fun: Callable[[Any], Any], found: Sequence[Ref]) -> Callable[[Any], Any]:
    """A function of a loop's value and of what is in refs; gives both."""
    call = refs.lifted(fun, found)
    return lambda state: call(state[1], state[0])
