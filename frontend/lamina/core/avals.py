"""Abstract values: what tracing knows of an array (shape, dtype, weak type), and no data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lamina.core import dtypes
from lamina.core.placed import WHOLE, Placed

if TYPE_CHECKING:
    from lamina.core.manual_axes import ManualAxisType

NOWHERE: frozenset[Any] = frozenset()
_AS_IT_IS: Any = object()


class AbstractValue:
    """What is known of a value before it is there: the base of its types."""

    __slots__ = ()


class ShapedArray(AbstractValue):
    """The type of an array: shape, dtype, and whether the dtype is weak (from a Python scalar).

    vma       in a shard_map body the mesh axes along which the value may vary from device to device
              ("varying manual axes"); elsewhere, and with check_vma=False, none.
    placed    on a mesh with explicit axes how values lie along them (core/placed.py); elsewhere None.
    sharding  the same as a NamedSharding, where placed is not given.
    """

    __slots__ = ("_hash", "dtype", "placed", "shape", "vma", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    vma: frozenset[Any]
    placed: Placed | None

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        weak_type: bool = False,
        vma: frozenset[Any] = NOWHERE,
        sharding: Any = None,
        placed: Placed | None = None,
    ) -> None:
        self.shape = tuple(shape)
        known = isinstance(dtype, (np.dtype, dtypes.KeyDType))
        self.dtype = dtype if known else np.dtype(dtype)
        self.weak_type = weak_type
        self.vma = vma
        if sharding is not None and placed is None:
            placed = ShapedArray.placed_rule(sharding, len(self.shape))
            if placed is not None:
                placed.check_divides(self.shape)
        self.placed = placed
        self._hash = hash((self.shape, self.dtype, weak_type, vma, placed))

    ndim = property(lambda self: len(self.shape))

    @property
    def mat(self) -> ManualAxisType:
        """What the value does along the axes of a shard_map."""
        from lamina.core.manual_axes import ManualAxisType

        placed = self.placed
        if placed is None or placed.sums is WHOLE:
            return ManualAxisType(varying=self.vma)
        manual, sums = frozenset(placed.mesh.manual_axes), placed.sums
        terms = sums.unreduced & manual
        return ManualAxisType(
            varying=self.vma,
            unreduced=terms,
            reduced=sums.reduced & manual,
            unreduced_kind=sums.kind if terms else None,
        )

    sharding_rule: ClassVar[Callable[[ShapedArray], Any]]
    placed_rule: ClassVar[Callable[[Any, int], Placed | None]]
    """Injections: what `sharding` gives, and what is placed by one. Set by lamina._connect."""

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
            and self.placed == other.placed
        )

    def __hash__(self) -> int:
        return self._hash

    def update(
        self,
        *,
        shape: Any = None,
        dtype: Any = None,
        weak_type: Any = None,
        vma: Any = None,
        sharding: Any = None,
        placed: Any = _AS_IT_IS,
    ) -> ShapedArray:
        """A copy with some fields changed. With another shape it is nowhere placed, unless that is said."""
        if placed is _AS_IT_IS:
            placed = self.placed if shape is None and sharding is None else None
        return ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            self.vma if vma is None else vma,
            sharding,
            placed,
        )

    def without_axis(self, axis: int) -> ShapedArray:
        """The type of one of the parts along an axis."""
        placed = self.placed
        if placed is not None:
            placed = placed.with_dims(placed.dims[:axis] + placed.dims[axis + 1 :])
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        return ShapedArray(shape, self.dtype, self.weak_type, self.vma, None, placed)

    def with_axis(self, axis: int, size: int, names: tuple[Any, ...] = ()) -> ShapedArray:
        """The type of so many of them along a new axis, which is split over mesh axes of these names."""
        placed = self.placed
        if placed is not None:
            placed = placed.with_dims((*placed.dims[:axis], names, *placed.dims[axis:]))
        shape = (*self.shape[:axis], size, *self.shape[axis:])
        return ShapedArray(shape, self.dtype, self.weak_type, self.vma, None, placed)

    def physical(self) -> ShapedArray:
        """The type that holds values of this one in a compiled program."""
        if self.dtype.kind != "V":  # as most
            return self
        if isinstance(self.dtype, dtypes.KeyDType):
            return ShapedArray(self.shape, self.dtype.physical)
        if self.dtype == dtypes.float0:
            return ShapedArray(self.shape, np.dtype(bool))
        return self

    def to_cotangent_aval(self) -> ShapedArray:
        """The type of cotangents of values of this type."""
        aval = self.to_tangent_aval()
        return aval if self.placed is None else aval.update(placed=self.placed.of_cotangent())

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The type of derivatives with respect to a value of this type."""
        dtype = dtypes.tangent_dtype(self.dtype)
        return self if dtype is self.dtype else self.update(dtype=dtype)

    at_least_vspace = to_tangent_aval  # JAX's other name for it

    def str_short(self) -> str:
        """As jaxprs print it: f32[2,3], f32[2]{V:i} for one that varies along the mesh axis i."""
        return f"{dtypes.short_name(self.dtype)}[{self._str_shape()}]{self._str_vma()}"

    def str_long(self) -> str:
        """As messages print it: float32[2,3]; `~` marks a weak type."""
        weak = "~" if self.weak_type and self.dtype.kind != "b" else ""
        return f"{weak}{self.dtype.name}[{self._str_shape()}]{self._str_vma()}"

    def _str_shape(self) -> str:
        if self.placed is not None:
            return self.placed.shown(self.shape)
        return ",".join(map(str, self.shape))

    def _str_vma(self) -> str:
        if not self.vma and (self.placed is None or self.placed.sums is WHOLE):
            return ""
        of = WHOLE if self.placed is None else self.placed.sums
        said = (("V", self.vma), ("U", of.unreduced), ("R", of.reduced))
        return f"{{{', '.join(f'{k}:' + ','.join(sorted(map(str, v))) for k, v in said if v)}}}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.dtype.name}[{self._str_shape()}]{self._str_vma()}{weak})"

    __str__ = str_long


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Equal up to weak types and what varies along mesh axes."""
    return a.shape == b.shape and a.dtype == b.dtype
