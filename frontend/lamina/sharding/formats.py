"""Formats: an order of an array's dimensions in memory, and a sharding. There is one order here, the last dimension
fastest."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from lamina.core import tree
from lamina.core.library import library
from lamina.sharding.shardings import Sharding
from lamina.sharding.spec import PartitionSpec


class AutoLayout:
    """Stands for the layout that the compiler chooses."""

    def __repr__(self) -> str:
        return "AutoLayout"


@dataclasses.dataclass(frozen=True)
class Layout:
    """Dimensions from the slowest to the fastest. `Layout.AUTO` leaves the order to the compiler."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    AUTO: ClassVar[AutoLayout] = AutoLayout()

    @property
    def is_row_major(self) -> bool:
        """Whether arrays lie so."""
        order = tuple(self.major_to_minor)
        return order == tuple(range(len(order))) and not self.tiling


@dataclasses.dataclass(frozen=True)
class Format:
    """A layout and a sharding of an array.

    layout    a Layout, Layout.AUTO or None.
    sharding  a Sharding; None goes with no Layout.

    Raises ValueError for a Layout without a sharding and TypeError for what is neither.
    """

    layout: Any = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if self.layout is not None and not isinstance(self.layout, (Layout, AutoLayout)):
            raise TypeError(
                f"Invalid value received for the layout argument of a Format: a Layout, Layout.AUTO or None, got "
                f"{self.layout!r} of type {type(self.layout)}"
            )
        if isinstance(self.layout, Layout) and not isinstance(self.sharding, (Sharding, PartitionSpec)):
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {type(self.layout)}: pass a "
                f"{library}.sharding.NamedSharding or SingleDeviceSharding. Got sharding {self.sharding}"
            )

    def check(self, shape: tuple[int, ...] | None = None) -> None:
        """Raises ValueError where the layout does not fit a shape, NotImplementedError for another than row-major."""
        if not isinstance(self.layout, Layout):
            return
        order = self.layout.major_to_minor
        if shape is not None and len(order) != len(shape):
            raise ValueError(
                "Length of major_to_minor and the rank of the value should match. Got "
                f"major_to_minor={order} for a value of shape {shape}"
            )
        if not self.layout.is_row_major:
            raise NotImplementedError(f"{self.layout}: arrays lie in row-major order; transpose them")


def format_of(shape: tuple[int, ...], sharding: Any) -> Format:
    """How an array lies."""
    return Format(Layout(tuple(range(len(shape))), ()), sharding)


def shardings_of(name: str, formats: Any) -> Any:
    """A tree of shardings and formats without what formats say of layouts. `name` is what was given it.

    Raises ValueError for a layout without a format, NotImplementedError for another than row-major."""

    def sharding(value: Any) -> Any:
        if isinstance(value, (Layout, AutoLayout)):
            raise ValueError(
                f"`{library}.jit` does not accept device-local layouts directly: create a Format with the layout and "
                f"a sharding and give that for {name}. Got {value}"
            )
        if not isinstance(value, Format):
            return value
        value.check()
        return value.sharding

    def is_leaf(value: Any) -> bool:
        return value is None or isinstance(value, (Format, Layout, AutoLayout, Sharding, PartitionSpec))

    leaves, structure = tree.flatten(formats, is_leaf)
    if not any(isinstance(x, (Format, Layout, AutoLayout)) for x in leaves):
        return formats
    return tree.unflatten(structure, list(map(sharding, leaves)))
