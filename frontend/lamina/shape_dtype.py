"""ShapeDtypeStruct: the type of an array as users write it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.library import library
from lamina.core.trace import get_aval, has_no_value, is_array_like


def _sharding_of(form: Any, shape: tuple[int, ...]) -> Any:
    """The sharding of a Format. Raises TypeError where its layout is the compiler's choice."""
    from lamina.sharding.formats import AutoLayout

    if isinstance(form.layout, AutoLayout):
        raise TypeError(
            f"`Layout.AUTO` cannot be used in place of a device-local layout in a `ShapeDtypeStruct`. Got {form}"
        )
    form.check(shape)
    return form.sharding


class ShapeDtypeStruct:
    """The shape and dtype of an array, without the array: for tracing and as eval_shape's result.

    dtype       any of NumPy's or lamina's, kept as it is; what is traced with it has 32 bits where x64 is off.
    sharding    where the array would lie: a Sharding, a Format, or a PartitionSpec, which is over the mesh that is
                current when `sharding` is read.

    Raises ValueError where a sharding has more dimensions than the shape; reading `sharding` raises TypeError
    where a PartitionSpec finds no mesh.
    """

    __slots__ = ("_place", "dtype", "shape", "weak_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
    ) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        if any(d is None for d in shape):
            raise ValueError(f"ShapeDtypeStruct: `shape` cannot have None in it. Got shape={tuple(shape)}")
        self.shape = tuple(int(d) for d in shape)
        self.dtype: Any = dtype if isinstance(dtype, dtypes.KeyDType) else np.dtype(dtype)
        if sharding is not None and hasattr(sharding, "layout"):
            sharding = _sharding_of(sharding, self.shape)
        self._place = sharding
        self.weak_type = weak_type
        if sharding is None:
            return
        from lamina.sharding.shardings import NamedSharding, check_rank
        from lamina.sharding.spec import PartitionSpec

        if isinstance(sharding, (NamedSharding, PartitionSpec)):
            check_rank(sharding, self.shape, "A ShapeDtypeStruct")

    @property
    def format(self) -> Any:
        """How the array would lie: its layout, which is row-major, and its sharding."""
        from lamina.sharding.formats import Format, format_of

        return Format() if self.sharding is None else format_of(self.shape, self.sharding)

    @property
    def sharding(self) -> Any:
        """Where the array would lie, None where nothing was said."""
        if self._place is None:
            return None
        from lamina.sharding.shardings import over_current_mesh
        from lamina.sharding.spec import PartitionSpec

        if not isinstance(self._place, PartitionSpec):
            return self._place
        over = over_current_mesh(self._place)
        if over is None:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be empty. Set one "
                f"by {library}.set_mesh, or give NamedSharding(mesh, {self._place})"
            )
        return over

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """That of an array or a number, with the sharding of an array that was placed."""
        aval = get_aval(x)
        placed = getattr(x, "committed", False)
        sharding = x.sharding if placed else None if aval.placed is None else aval.sharding
        return cls(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some fields changed: shape, dtype, sharding, weak_type."""
        fields = {
            "shape": self.shape,
            "dtype": self.dtype,
            "sharding": self._place,
            "weak_type": self.weak_type,
        }
        if unknown := changes.keys() - fields.keys():
            raise TypeError(f"ShapeDtypeStruct.update: no field {', '.join(sorted(unknown))}")
        return ShapeDtypeStruct(**fields | changes)

    @property
    def aval(self) -> ShapedArray:
        """The type of arrays of this shape and dtype; without x64, 32-bit where the dtype has 64."""
        dtype = dtypes.canonicalize(self.dtype)
        return ShapedArray(self.shape, dtype, self.weak_type, sharding=self.sharding)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ShapeDtypeStruct)
            and self._key() == other._key()
        )

    def __hash__(self) -> int:
        return hash(self._key()[:3])

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.weak_type, self._place

    def __repr__(self) -> str:
        sharding = f", sharding={self._place}" if self._place is not None else ""
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding}{weak})"


def as_types(x: Any) -> Any:
    """A pytree with the ShapeDtypeStruct of each value that has a shape and a dtype without being an array."""
    return tree.map(_as_type, x)


def _as_type(x: Any) -> Any:
    if is_array_like(x) or not (hasattr(x, "shape") and hasattr(x, "dtype")):
        return x
    return x if has_no_value(x) else ShapeDtypeStruct(tuple(x.shape), x.dtype)


def out_info(closed: ClosedJaxpr, out_tree: tree.PyTreeDef) -> Any:
    """The result's structure with a ShapeDtypeStruct for each array."""
    return tree.unflatten(
        out_tree,
        [
            ShapeDtypeStruct(
                a.shape,
                a.dtype,
                sharding=None if a.placed is None else a.sharding,
                weak_type=a.weak_type,
            )
            for a in closed.out_avals
        ],
    )
