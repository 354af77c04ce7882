"""Which part of an array a kernel sees at a place of the grid."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from lamina import numpy as jnp
from lamina.numpy.slices import Slice


@dataclasses.dataclass(frozen=True)
class Blocked:
    """An axis cut into blocks of this size: index k is the k-th of them."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """A window of this size whose index is its first element, in an axis that is made longer at both
    ends by `padding`."""

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """A window of this size whose index is a `ds`, of which the start counts."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """One element, whose axis the kernel does not see."""

    block_size = 1


squeezed = Squeezed()


class _NoBlockSpec:
    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec: Any = _NoBlockSpec()
"""Stands for a BlockSpec that nobody gave: the whole array."""


class BlockSpec:
    """How an array is cut for a kernel.

    block_shape   for each axis a size, a Blocked, Element or BoundedSlice, or None (Squeezed); without
                  it the kernel sees the whole array.
    index_map     the place in the grid -> an index for each axis, which is counted in blocks; by
                  default 0 for all.
    memory_space, pipeline_mode  accepted for JAX's programs: there is one kind of memory.
    """

    def __init__(
        self,
        block_shape: Sequence[Any] | None = None,
        index_map: Callable[..., Any] | None = None,
        pipeline_mode: Any = None,
        *,
        memory_space: Any = None,
    ) -> None:
        self.block_shape = None if block_shape is None else tuple(block_shape)
        self.index_map, self.memory_space = index_map, memory_space
        self.pipeline_mode = pipeline_mode

    def __repr__(self) -> str:
        return f"BlockSpec({self.block_shape}, {self.index_map})"

    def cut(self, what: str, shape: tuple[int, ...]) -> Cut:
        """The axes of an array of this shape.

        Raises ValueError where the spec has another number of axes.
        """
        if self.block_shape is None:
            return Cut(tuple(map(Blocked, shape)), lambda *_: (0,) * len(shape))
        axes = tuple(map(_axis, self.block_shape))
        if len(axes) != len(shape):
            raise ValueError(
                f"Block shape for {what} (= {axes}) must have the same number of dimensions as the "
                f"array shape {shape}"
            )
        return Cut(axes, self.index_map or (lambda *_: (0,) * len(shape)))


def _axis(size: Any) -> Any:
    if size is None:
        return squeezed
    return Blocked(size) if isinstance(size, int) else size


@dataclasses.dataclass(frozen=True)
class Cut:
    """An array's axes, and where at a place of the grid its block is."""

    axes: tuple[Any, ...]
    index_map: Callable[..., Any]

    sizes = property(lambda self: tuple(axis.block_size for axis in self.axes))
    dropped = property(
        lambda self: tuple(i for i, axis in enumerate(self.axes) if isinstance(axis, Squeezed))
    )

    def padding(self, shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
        """What an array of this shape needs at both ends to be cut into whole blocks."""
        found = []
        for axis, n in zip(self.axes, shape, strict=True):
            before, after = axis.padding if isinstance(axis, Element) else (0, 0)
            found.append((before, after + -(before + n + after) % max(axis.block_size, 1), 0))
        return found

    def starts(self, what: str, place: Sequence[Any]) -> list[Any]:
        """The first elements of the block. Raises ValueError where index_map gives another number."""
        index = self.index_map(*place)
        index = index if isinstance(index, (tuple, list)) else (index,)
        if len(index) != len(self.axes):
            raise ValueError(
                f"Index map for {what} must return {len(self.axes)} values to match block_shape="
                f"{self.axes}. Currently returning {len(index)} values."
            )
        starts = []
        for axis, i in zip(self.axes, index, strict=True):
            i = i.start if isinstance(i, Slice) else i
            i = i * axis.block_size if isinstance(axis, Blocked) else i
            starts.append(jnp.asarray(i, jnp.int32))
        return starts


@dataclasses.dataclass(frozen=True)
class GridSpec:
    """A grid and the specs of arguments, results and scratch memory, as pallas_call takes them."""

    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = ()
