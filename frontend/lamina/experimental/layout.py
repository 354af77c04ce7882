"""Orders of an array's dimensions in memory. There is one here, the last dimension first."""

from __future__ import annotations

import dataclasses
from typing import Any

from lamina.core import tree

__all__ = ["Format", "Layout", "with_layout_constraint"]


@dataclasses.dataclass(frozen=True)
class Layout:
    """Dimensions from the slowest to the fastest."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0


@dataclasses.dataclass(frozen=True)
class Format:
    """A layout and a sharding of an array."""

    layout: Any = None
    sharding: Any = None


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """x, whose layout in a program is to be this one: row-major, for there is no other.

    x        a tree of arrays.
    layouts  a Layout for each, or one.

    Raises NotImplementedError for another layout.

    >>> layout = lamina.experimental.layout.Layout((0, 1))
    >>> lamina.experimental.layout.with_layout_constraint(jnp.ones((2, 3)), layout).shape
    (2, 3)
    """
    for layout in tree.leaves(layouts):
        order = tuple(layout.major_to_minor)
        if order != tuple(range(len(order))) or layout.tiling:
            raise NotImplementedError(
                f"[with_layout_constraint] {layout}: arrays lie in row-major order; transpose them"
            )
    return x
