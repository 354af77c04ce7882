"""io_callback: a Python function with side effects, called once for each time it is reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.callbacks.batched import lane_by_lane
from lamina.callbacks.host import (
    HostFunction,
    bound_callback,
    evaluate,
    lower_call,
    result_types,
)
from lamina.control_flow.tracing import avals_of
from lamina.core import tree
from lamina.core.effects import Effect
from lamina.core.primitive import Primitive
from lamina.interpreters.batching import batched_size

IO = Effect("IO", per_lane=True)
ORDERED_IO = Effect("OrderedIO", ordered=True, per_lane=True)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """callback(*args, **kwargs) of read-only NumPy arrays, called whenever the program gets there.

    callback             may have side effects; it is called though nobody reads its results.
    result_shape_dtypes  a pytree of ShapeDtypeStruct or the like, or None: what callback gives.
    sharding             accepted; there is one host.
    ordered              it happens in program order; it cannot be batched then.
    Calls of the program raise JaxRuntimeError, with the callback's exception as its cause. Not
    differentiable.
    """
    if not callable(callback):
        raise TypeError(f"io_callback: callback must be callable, got {type(callback)}")
    leaves, in_tree = tree.flatten((args, kwargs))
    avals_of(leaves, "io_callback")
    result_avals, out_tree = result_types(result_shape_dtypes)
    outs = io_callback_p.bind(
        *leaves,
        callback=HostFunction(callback, in_tree),
        result_avals=tuple(result_avals),
        out_tree=out_tree,
        ordered=bool(ordered),
    )
    return tree.unflatten(out_tree, outs)


def _bound(params: dict[str, Any]) -> Callable[..., Any]:
    return bound_callback(
        "io_callback", params["callback"], params["result_avals"], params["out_tree"]
    )


def _impl(*args: Any, **params: Any) -> list[Any]:
    return evaluate(_bound(params), "io_callback", args)


def _lowering(ctx: Any, *args: Any, **params: Any) -> Any:
    return lower_call(ctx, _bound(params), args, has_effect=True)


def _jvp(*_: Any, **__: Any) -> Any:
    raise ValueError("IO callbacks do not support JVP.")


def _transpose(*_: Any, **__: Any) -> Any:
    raise ValueError("IO callbacks do not support transpose.")


def _batching(args: list[Any], dims: list[Any], **params: Any) -> Any:
    if params["ordered"]:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    size = batched_size(args, dims)
    return lane_by_lane(lambda *lane: io_callback_p.bind(*lane, **params), args, dims, size)


io_callback_p = Primitive(
    "io_callback",
    multiple_results=True,
    abstract_eval=lambda *_, result_avals, **__: list(result_avals),
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
    impl=_impl,
    shown=lambda params: {k: params[k] for k in ("callback", "ordered", "result_avals")},
    effects=lambda params: frozenset((ORDERED_IO if params["ordered"] else IO,)),
)
