"""What JAX has left in interpreters.xla: how values become arrays, and how primitives run."""

from __future__ import annotations

from typing import Any

from lamina.core.primitive import Primitive
from lamina.core.trace import eval_trace, set_current_trace
from lamina.core.value_tables import canonicalize_dtype_handlers as canonicalize_dtype_handlers
from lamina.extend.backend import Backend as Backend

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """The result of a primitive for arrays, computed at once, also while a function is traced.

    prim    the primitive.
    args    its operands,
    params  and its parameters.

    >>> from lamina.extend.interpreters_xla import apply_primitive
    >>> print(apply_primitive(lax.sin_p, 0.0))
    0.0
    """
    with set_current_trace(None):
        return eval_trace().process(prim, args, params)
