"""Abstract values: what tracing knows of an array (shape, dtype, weak type), and no data."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.core import dtypes


class ShapedArray:
    """The type of an array: shape, dtype, and whether the dtype is weak (from a Python scalar)."""

    __slots__ = ("_hash", "dtype", "shape", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool

    def __init__(self, shape: tuple[int, ...], dtype: Any, weak_type: bool = False) -> None:
        self.shape = tuple(shape)
        known = isinstance(dtype, (np.dtype, dtypes.KeyDType))
        self.dtype = dtype if known else np.dtype(dtype)
        self.weak_type = weak_type
        self._hash = hash((self.shape, self.dtype, weak_type))

    ndim = property(lambda self: len(self.shape))

    @property
    def size(self) -> int:
        n = 1
        for d in self.shape:
            n *= d
        return n

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ShapedArray)
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
        )

    def __hash__(self) -> int:
        return self._hash

    def update(self, *, shape: Any = None, dtype: Any = None, weak_type: Any = None) -> ShapedArray:
        """A copy with some fields changed."""
        return ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )

    def physical(self) -> ShapedArray:
        """The type that holds values of this one in a compiled program."""
        if isinstance(self.dtype, dtypes.KeyDType):
            return ShapedArray(self.shape, self.dtype.physical)
        return self

    def strip_weak_type(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype) if self.weak_type else self

    def to_tangent(self) -> ShapedArray:
        """The type of derivatives with respect to a value of this type."""
        return ShapedArray(self.shape, dtypes.tangent_dtype(self.dtype), self.weak_type)

    def str_short(self) -> str:
        """As jaxprs print it: f32[2,3]."""
        return f"{dtypes.short_name(self.dtype)}[{','.join(map(str, self.shape))}]"

    def str_long(self) -> str:
        """As messages print it: float32[2,3]; `~` marks a weak type."""
        weak = "~" if self.weak_type and self.dtype.kind != "b" else ""
        return f"{weak}{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.dtype.name}[{','.join(map(str, self.shape))}]{weak})"

    __str__ = str_long


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Equal up to weak types."""
    return a.shape == b.shape and a.dtype == b.dtype
