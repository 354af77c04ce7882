"""Tracing the functions that higher-order primitives take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from lamina.core import tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, DebugInfo, close_jaxpr, convert_constvars
from lamina.core.library import library
from lamina.core.refs import Ref
from lamina.core.trace import get_aval, has_no_value, is_array_like
from lamina.core.wrapping import function_name, location_of
from lamina.interpreters.staging import trace_to_jaxpr


def check_callable(fun: Any) -> None:
    """Raises TypeError where a transformation is given what cannot be called."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")


def debug_info(
    fun: Callable[..., Any],
    kind: str,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
) -> DebugInfo:
    """Name, place and argument names of a function, for messages and symbols."""
    return DebugInfo(
        kind, function_name(fun), location_of(fun), arg_names(fun, args, kwargs or {})
    )


def arg_names(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[str, ...]:
    """For each leaf of the arguments, how the user would write it: x, params['w'], ..."""
    if not args and not kwargs:
        return ()
    positional, star = _positional_names(fun, args, kwargs)
    names: list[str] = []
    for i, arg in enumerate(args):
        if i < len(positional):
            base = positional[i]
        elif star:
            base = f"{star}[{i - len(positional)}]"
        else:
            base = f"args[{i}]"
        names += [base + path for path in tree.paths(arg)]
    for key in sorted(kwargs):
        names += [key + path for path in tree.paths(kwargs[key])]
    return tuple(names)


def _positional_names(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Sequence[str], str | None]:
    """The names of positional parameters and of *args; none for a function that doesn't take these arguments."""
    if type(fun) is FunctionType and not kwargs and not fun.__dict__:  # most are plain, and asked often
        code = fun.__code__
        if code.co_argcount == len(args) and not code.co_flags & inspect.CO_VARARGS:
            return code.co_varnames[: len(args)], None
    try:
        signature = inspect.signature(fun)
        signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return [], None
    parameters = signature.parameters.values()
    star = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in kinds], star


def refuse_refs(leaves: Sequence[Any], fun_name: str, what: str) -> None:
    """Raises ValueError if a function that is traced for something returned a ref."""
    for x in leaves:
        if isinstance(x, Ref):
            raise ValueError(
                f"function {fun_name} traced for {what} returned a mutable array reference of type {x.aval}, but "
                "mutable array references cannot be returned. Return what is in it: ref[...].\n\n"
                f"The returned mutable array {x.origin()}."
            )


def check_outputs(leaves: Sequence[Any], fun_name: str, what: str = "jit") -> None:
    """Raises TypeError if a function (by its name and place) returned what is not an array, ValueError for a ref."""
    refuse_refs(leaves, fun_name, what)
    for x in leaves:
        if not is_array_like(x) and not has_no_value(x):
            raise TypeError(
                f"function {fun_name} returned a value of type {type(x)}, which is not a valid "
                f"{library.name} type: return arrays, numbers, or containers of them"
            )


def trace_function(
    fun: Callable[..., Any],
    in_tree: tree.PyTreeDef,
    in_avals: Sequence[ShapedArray],
    info: DebugInfo,
) -> tuple[ClosedJaxpr, list[Any], tree.PyTreeDef]:
    """The jaxpr of fun(*args), where in_tree is the structure of the tuple args. Values that fun
    closes over become leading inputs, given second; the structure of the result comes third."""
    out_tree: list[tree.PyTreeDef] = []

    def flat(*leaves: Any) -> list[Any]:
        out = fun(*tree.unflatten(in_tree, leaves))
        flat_out, treedef = tree.flatten(out)
        check_outputs(flat_out, info.place(), info.kind.partition(" ")[0])
        out_tree.append(treedef)
        return flat_out

    closed = trace_to_jaxpr(flat, in_avals, info)
    return close_jaxpr(convert_constvars(closed.jaxpr)), closed.consts, out_tree[0]


def avals_of(leaves: Sequence[Any], what: str) -> list[ShapedArray]:
    """The types of operands; TypeError naming the operand that is not an array."""
    avals = []
    for i, x in enumerate(leaves):
        try:
            avals.append(get_aval(x))
        except TypeError as e:
            raise TypeError(f"{what}: operand {i}: {e}") from None
    return avals
