"""io_callback: a Python function with side effects, called once for each time it is reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.callbacks.batched import lane_by_lane
from lamina.callbacks.returning import bind_callback, returning
from lamina.core.effects import Effect
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
    args, kwargs         pytrees of arrays.
    sharding             without effect.
    ordered              it happens in program order; it cannot be batched then.

    Calls of the program raise JaxRuntimeError, with the callback's exception as its cause. Not
    differentiable.

    >>> numbers = iter([10, 20])
    >>> @lamina.jit
    ... def f(x):
    ...     read = lambda: np.int32(next(numbers))
    ...     return x + lamina.experimental.io_callback(read, lamina.ShapeDtypeStruct((), "int32"))
    >>> print(f(1), f(2))
    11 22
    """
    return bind_callback(
        io_callback_p, callback, result_shape_dtypes, args, kwargs, ordered=bool(ordered)
    )


def _batching(args: list[Any], dims: list[Any], **params: Any) -> Any:
    if params["ordered"]:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    size = batched_size(args, dims)
    return lane_by_lane(lambda *lane: io_callback_p.bind(*lane, **params), args, dims, size)


io_callback_p = returning(
    "io_callback",
    has_effect=True,
    refusals=("IO callbacks do not support JVP.", "IO callbacks do not support transpose."),
    shown=("ordered",),
    batching=_batching,
    effects=lambda params: frozenset((ORDERED_IO if params["ordered"] else IO,)),
)
