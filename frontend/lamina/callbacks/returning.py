"""What pure_callback and io_callback share: calls of Python functions that give arrays back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.callbacks.host import (
    HostFunction,
    bound_callback,
    evaluate,
    key_dtypes,
    lower_call,
    result_types,
    words_of,
)
from lamina.control_flow.tracing import avals_of
from lamina.core import tree
from lamina.core.primitive import Primitive


def bind_callback(
    primitive: Primitive,
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    **params: Any,
) -> Any:
    """callback(*args, **kwargs) as an application of `primitive`; TypeError where it is none."""
    if not callable(callback):
        raise TypeError(f"{primitive}: callback must be callable, got {type(callback)}")
    leaves, in_tree = tree.flatten((args, kwargs))
    avals_of(leaves, primitive.name)
    result_avals, out_tree = result_types(result_shape_dtypes)
    outs = primitive.bind(
        *map(words_of, leaves),
        callback=HostFunction(callback, in_tree, keys=key_dtypes(leaves)),
        result_avals=tuple(result_avals),
        out_tree=out_tree,
        **params,
    )
    return tree.unflatten(out_tree, outs)


def returning(
    name: str, *, has_effect: bool, refusals: tuple[str, str], shown: tuple[str, ...], **rules: Any
) -> Primitive:
    """The primitive of such calls. refusals: why it has no jvp and no transpose (ValueError)."""

    def bound(params: dict[str, Any]) -> Callable[..., Any]:
        return bound_callback(name, params["callback"], params["result_avals"], params["out_tree"])

    def refuse(text: str) -> Callable[..., Any]:
        def rule(*_: Any, **__: Any) -> Any:
            raise ValueError(text)

        return rule

    return Primitive(
        name,
        multiple_results=True,
        abstract_eval=lambda *_, result_avals, **__: list(result_avals),
        lowering=lambda ctx, *args, **params: lower_call(ctx, bound(params), args, has_effect),
        impl=lambda *args, **params: evaluate(bound(params), name, args),
        jvp=refuse(refusals[0]),
        transpose=refuse(refusals[1]),
        shown=lambda params: {k: params[k] for k in ("callback", "result_avals", *shown)},
        **rules,
    )
