"""pure_callback: a Python function whose results depend on its arguments alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.callbacks.batched import lane_by_lane, unrolled, whole_batch
from lamina.callbacks.returning import bind_callback, returning
from lamina.interpreters.batching import batched_size

METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
    None,
)
UNBATCHED = {
    "expand_dims": "expand",
    "broadcast_all": "broadcast",
    "legacy_vectorized": "keep",
}


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """callback(*args, **kwargs) of read-only NumPy arrays, called while the program runs.

    callback             without side effects: it may be called once, more often, or not at all.
    result_shape_dtypes  a pytree of ShapeDtypeStruct or the like: what callback gives.
    sharding             accepted; there is one host.
    vmap_method          how it runs on batches: "sequential" calls it for each lane, "expand_dims"
                         and "broadcast_all" once with a leading dimension on all arguments (of size
                         1, or of the batch's, where they are not batched), "legacy_vectorized" with
                         one on batched arguments only. None: vmap raises NotImplementedError.
    Raises JaxRuntimeError, with the callback's exception as its cause, when the results are read.
    Not differentiable: wrap it in custom_jvp or custom_vjp.

    >>> shape = lamina.ShapeDtypeStruct((2,), jnp.float32)
    >>> f = lamina.jit(lambda x: lamina.pure_callback(np.flip, shape, x))
    >>> f(jnp.array([1.0, 2.0])).tolist()
    [2.0, 1.0]
    """
    if vmap_method not in METHODS:
        raise ValueError(
            f"vmap_method must be on of the allowed methods {list(METHODS)}, but got: {vmap_method}"
        )
    return bind_callback(
        pure_callback_p, callback, result_shape_dtypes, args, kwargs, vmap_method=vmap_method
    )


def _batching(args: list[Any], dims: list[Any], **params: Any) -> Any:
    size, method = batched_size(args, dims), params["vmap_method"]
    if method is None:
        raise NotImplementedError(
            "vmap is only supported for the pure_callback primitive when vmap_method is one of "
            "'sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', or "
            "'legacy_vectorized'. Got vmap_method=None."
        )
    if method in UNBATCHED:
        batched = tuple(a.with_axis(0, size) for a in params["result_avals"])
        operands = whole_batch(args, dims, size, UNBATCHED[method])
        outs = pure_callback_p.bind(*operands, **{**params, "result_avals": batched})
        return outs, [0] * len(outs)
    each = lane_by_lane if method == "sequential" else unrolled
    return each(lambda *lane: pure_callback_p.bind(*lane, **params), args, dims, size)


pure_callback_p = returning(
    "pure_callback",
    has_effect=False,
    refusals=(
        "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while "
        "taking gradients.",
        "Pure callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks "
        "while taking gradients.",
    ),
    shown=("vmap_method",),
    batching=_batching,
)
