"""Orders of an array's dimensions in memory. There is one here, the last dimension fastest."""

from __future__ import annotations

from typing import Any

from lamina.core import tree
from lamina.sharding.formats import Format as Format
from lamina.sharding.formats import Layout as Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """x, whose layout in a program is to be this one: row-major, for there is no other.

    x        a tree of arrays.
    layouts  a Layout for each, or one.

    Raises NotImplementedError for another layout, ValueError for one of another rank.

    >>> layout = lamina.experimental.layout.Layout((0, 1))
    >>> lamina.experimental.layout.with_layout_constraint(jnp.ones((2, 3)), layout).shape
    (2, 3)
    """
    for layout, leaf in zip(tree.broadcast_prefix(layouts, x), tree.leaves(x), strict=True):
        order = tuple(layout.major_to_minor)
        if len(order) != len(leaf.shape):
            raise ValueError(
                "Length of major_to_minor and the rank of the value should match. Got "
                f"major_to_minor={order} for a value of shape {leaf.shape}"
            )
        if not layout.is_row_major:
            raise NotImplementedError(
                f"[with_layout_constraint] {layout}: arrays lie in row-major order; transpose them"
            )
    return x
