"""ds: slices of static size that start anywhere, x[ds(i, 8)], also where i is traced."""

from __future__ import annotations

import operator
from collections.abc import Hashable
from typing import Any

from lamina.tree_registration import register_pytree_node_class

_NOT_GIVEN: Any = object()


@register_pytree_node_class
class Slice:
    """`size` elements from `start` on, each `stride` after the one before. What is traced of it is
    a leaf. Raises ValueError for a negative stride."""

    def __init__(self, start: Any, size: Any, stride: int = 1) -> None:
        if stride < 0:
            raise ValueError("`stride` must be >= 0.")
        self.start, self.size, self.stride = start, size, stride

    is_dynamic_start = property(lambda self: not _is_known(self.start))
    is_dynamic_size = property(lambda self: not _is_known(self.size))

    def static(self) -> slice | None:
        """The same as a slice; None where the start or the size is traced."""
        if self.is_dynamic_start or self.is_dynamic_size:
            return None
        start = operator.index(self.start)
        return slice(start, start + operator.index(self.size), self.stride)

    def tree_flatten(self) -> tuple[tuple[Any, Any], Hashable]:
        """What is traced, and what is known."""
        start = (self.start, None) if self.is_dynamic_start else (None, self.start)
        size = (self.size, None) if self.is_dynamic_size else (None, self.size)
        return (start[0], size[0]), (start[1], size[1], self.stride)

    @classmethod
    def tree_unflatten(cls, known: Any, traced: Any) -> Slice:
        """The inverse."""
        start, size = (t if k is None else k for t, k in zip(traced, known[:2], strict=True))
        return cls(start, size, known[2])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slice) and (self.start, self.size, self.stride) == (
            other.start, other.size, other.stride
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.start, self.size, self.stride))

    def __repr__(self) -> str:
        return f"Slice(start={self.start}, size={self.size}, stride={self.stride})"


def _is_known(x: Any) -> bool:
    return isinstance(x, int) or (not hasattr(x, "shape") and hasattr(x, "__index__"))


def dslice(start: Any, size: Any = _NOT_GIVEN, stride: int | None = None) -> Slice | slice:
    """An index: ds(i, n) is i:i+n, ds(n) is :n, ds(None) is :, and ds(i, n, s) i:i+n*s:s where i is
    traced, i:i+n:s where it is known.

    start   may be traced. Where a window would reach beyond the end, what is read is the last window
            that fits, and what is written is dropped.
    size    a Python number.
    Raises ValueError for a stride that is traced or negative.

    >>> import lamina, lamina.numpy as jnp
    >>> lamina.jit(lambda x, i: x[lamina.ds(i, 2)])(jnp.arange(10), 4)
    Array([4, 5], dtype=int32)
    """
    if start is None:
        if size is _NOT_GIVEN:
            return slice(None, None, stride)
        start = 0
    stride = 1 if stride is None else stride
    if not isinstance(stride, int):
        raise ValueError("Non-static stride in `dslice`")
    return Slice(0, start, stride) if size is _NOT_GIVEN else Slice(start, size, stride)


ds = dslice
