"""Abstract values: what tracing knows of an array (shape, dtype, weak type), and no data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lamina.core import dtypes

if TYPE_CHECKING:
    from lamina.core.manual_axes import ManualAxisType

NOWHERE: frozenset[Any] = frozenset()


class AbstractValue:
    """What is known of a value before it is there: the base of its types."""

    __slots__ = ()


class ShapedArray(AbstractValue):
    """The type of an array: shape, dtype, and whether the dtype is weak (from a Python scalar).

    vma       in a shard_map body the mesh axes along which the value may vary from device to device
              ("varying manual axes"); elsewhere, and with check_vma=False, none.
    sharding  accepted for JAX's programs: no part of a type here.
    """

    __slots__ = ("_hash", "dtype", "shape", "vma", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    vma: frozenset[Any]

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        weak_type: bool = False,
        vma: frozenset[Any] = NOWHERE,
        sharding: Any = None,
    ) -> None:
        self.shape = tuple(shape)
        known = isinstance(dtype, (np.dtype, dtypes.KeyDType))
        self.dtype = dtype if known else np.dtype(dtype)
        self.weak_type = weak_type
        self.vma = vma
        self._hash = hash((self.shape, self.dtype, weak_type, vma))

    ndim = property(lambda self: len(self.shape))

    @property
    def mat(self) -> ManualAxisType:
        """What the value does along the axes of a shard_map: where it varies is all that types say here."""
        from lamina.core.manual_axes import ManualAxisType

        return ManualAxisType(varying=self.vma)

    sharding_rule: ClassVar[Callable[[ShapedArray], Any]]
    """Injection: what `sharding` gives. Set by lamina._connect."""

    @property
    def sharding(self) -> Any:
        """Where values lie as far as types tell: a NamedSharding over no mesh."""
        return ShapedArray.sharding_rule(self)

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
            and self.vma == other.vma
        )

    def __hash__(self) -> int:
        return self._hash

    def update(
        self, *, shape: Any = None, dtype: Any = None, weak_type: Any = None, vma: Any = None
    ) -> ShapedArray:
        """A copy with some fields changed."""
        return ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            self.vma if vma is None else vma,
        )

    def physical(self) -> ShapedArray:
        """The type that holds values of this one in a compiled program."""
        if self.dtype.kind != "V":  # as most
            return self
        if isinstance(self.dtype, dtypes.KeyDType):
            return ShapedArray(self.shape, self.dtype.physical)
        if self.dtype == dtypes.float0:
            return ShapedArray(self.shape, np.dtype(bool))
        return self

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The type of derivatives with respect to a value of this type."""
        dtype = dtypes.tangent_dtype(self.dtype)
        return self if dtype is self.dtype else self.update(dtype=dtype)

    at_least_vspace = to_tangent_aval  # JAX's other name for it

    def str_short(self) -> str:
        """As jaxprs print it: f32[2,3], f32[2]{V:i} for one that varies along the mesh axis i."""
        return f"{dtypes.short_name(self.dtype)}[{','.join(map(str, self.shape))}]{self._str_vma()}"

    def str_long(self) -> str:
        """As messages print it: float32[2,3]; `~` marks a weak type."""
        weak = "~" if self.weak_type and self.dtype.kind != "b" else ""
        return f"{weak}{self.dtype.name}[{','.join(map(str, self.shape))}]{self._str_vma()}"

    def _str_vma(self) -> str:
        return f"{{V:{','.join(sorted(map(str, self.vma)))}}}" if self.vma else ""

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        shape = ",".join(map(str, self.shape))
        return f"ShapedArray({self.dtype.name}[{shape}]{self._str_vma()}{weak})"

    __str__ = str_long


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Equal up to weak types and what varies along mesh axes."""
    return a.shape == b.shape and a.dtype == b.dtype
