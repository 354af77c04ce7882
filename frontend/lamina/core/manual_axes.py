"""What a value does along the mesh axes of a shard_map."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable
from typing import Any


class UnreducedKind(enum.Enum):
    """How parts of a value that are yet to be reduced over an axis combine."""

    sum = enum.auto()
    max = enum.auto()
    min = enum.auto()


@dataclasses.dataclass(frozen=True, init=False)
class ManualAxisType:
    """What a value does along the mesh axes of a shard_map: it varies, it is a part of a reduction
    that is still to come (unreduced), or its cotangent is (reduced).

    Raises TypeError for what is no set of names, ValueError for a name in two of the sets.

    >>> sorted(lamina.sharding.ManualAxisType(varying={"x", "y"}).varying)
    ['x', 'y']
    """

    varying: frozenset[Any]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]
    unreduced_kind: UnreducedKind | None

    def __init__(
        self,
        *,
        varying: Iterable[Any] = frozenset(),
        unreduced: Iterable[Any] = frozenset(),
        reduced: Iterable[Any] = frozenset(),
        unreduced_kind: UnreducedKind | None = None,
    ) -> None:
        sets = {"varying": varying, "unreduced": unreduced, "reduced": reduced}
        for name, value in sets.items():
            if not isinstance(value, (set, frozenset)):
                raise TypeError(
                    f"{name} argument of ManualAxisType should be of type `frozenset` or `set`. Got "
                    f"type {type(value)}"
                )
            object.__setattr__(self, name, frozenset(value))
        for one, other in (("varying", "unreduced"), ("varying", "reduced"), ("unreduced", "reduced")):
            if getattr(self, one) & getattr(self, other):
                raise ValueError(
                    f"{one} and {other} cannot have common mesh axes. Got {one}={getattr(self, one)} "
                    f"and {other}={getattr(self, other)}"
                )
        if unreduced and unreduced_kind is None:
            unreduced_kind = UnreducedKind.sum
        object.__setattr__(self, "unreduced_kind", unreduced_kind)

    def invarying(self, mesh: Any) -> frozenset[Any]:
        """The axes of a mesh that are mapped by hand along which the value is the same, and nothing else."""
        return frozenset(mesh.manual_axes) - self.varying - self.unreduced - self.reduced

    @property
    def empty(self) -> bool:
        """Whether the value is the same, and whole, along all axes."""
        return not (self.varying or self.unreduced or self.reduced)
