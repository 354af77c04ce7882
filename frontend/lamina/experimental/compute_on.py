"""Functions that are to run on a device's host, or another part of it. There is one here, where they run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lamina.control_flow.tracing import check_callable
from lamina.core import tree
from lamina.core.wrapping import wraps

__all__ = ["compute_on"]
_TYPES = ("device", "device_host", "tpu_sparsecore", "gpu_stream")


def compute_on(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """f, where its operations are to run; its results are the same.

    f                  a function of trees of arrays; without it a decorator is given.
    compute_type       "device", "device_host", "tpu_sparsecore" or "gpu_stream", which may have ":" and a number.
    out_memory_spaces  for each result the memory that it is to be in, a `lamina.memory.Space`; a pytree prefix.
    compiler_options   without effect.

    Raises ValueError for another compute_type and where out_memory_spaces is no prefix of the results.

    >>> space = lamina.memory.Space.Device
    >>> on_host = lamina.experimental.compute_on.compute_on
    >>> f = on_host(lambda x: x * 2, compute_type="device_host", out_memory_spaces=space)
    >>> print(lamina.jit(f)(jnp.arange(3)))
    [0 2 4]
    """
    if f is None:
        return functools.partial(
            compute_on,
            compute_type=compute_type,
            out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )
    check_callable(f)
    if not isinstance(compute_type, str) or compute_type.partition(":")[0] not in _TYPES:
        raise ValueError(
            f"Invalid compute type {compute_type!r}. Current supported values are {', '.join(_TYPES)}"
        )

    @wraps(f)
    def on_there(*args: Any, **kwargs: Any) -> Any:
        result = f(*args, **kwargs)
        try:
            tree.broadcast_prefix(out_memory_spaces, result)
        except ValueError as e:
            raise ValueError(
                "compute_on: out_memory_spaces must be a tree prefix of the result, got "
                f"{out_memory_spaces} for {tree.structure(result)}: {e}"
            ) from None
        return result

    return on_there
