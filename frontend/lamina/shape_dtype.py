"""ShapeDtypeStruct: the type of an array as users write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr


class ShapeDtypeStruct:
    """The shape and dtype of an array, without the array: for tracing and as eval_shape's result.

    sharding    where the array would lie, for those who read it.
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

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
        self.shape = tuple(int(d) for d in shape)
        self.dtype = dtypes.canonicalize(dtype)
        self.sharding = sharding
        self.weak_type = weak_type

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """That of an array or a number, with the sharding of an array that was placed."""
        from lamina.core.trace import get_aval

        aval = get_aval(x)
        placed = getattr(x, "committed", False)
        sharding = x.sharding if placed else None
        return cls(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some fields changed: shape, dtype, sharding, weak_type."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        if unknown := changes.keys() - fields.keys():
            raise TypeError(f"ShapeDtypeStruct.update: no field {', '.join(sorted(unknown))}")
        return ShapeDtypeStruct(**fields | changes)

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype, self.weak_type, sharding=self.sharding)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: self.aval.size)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ShapeDtypeStruct)
            and self.aval == other.aval
            and self.sharding == other.sharding
        )

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding}{weak})"


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
