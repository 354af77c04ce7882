"""PartitionSpec: which mesh axes each dimension of an array is split over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"


class PartitionSpec:
    """For each dimension a mesh axis name, a tuple of names (the last varies fastest), or None.

    Dimensions beyond the last entry are not split. P(("x",)) is P("x"), P(()) is P(None).
    """

    __slots__ = ("_partitions",)
    UNCONSTRAINED: Final = _Unconstrained()

    def __init__(self, *partitions: Any) -> None:
        self._partitions = tuple(map(_canonical, partitions))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __getitem__(self, i: Any) -> Any:
        return self._partitions[i]

    def index(self, value: Any) -> int:
        """The first dimension with this entry."""
        return self._partitions.index(_canonical(value))

    def __add__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*self, *other)

    def __radd__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*other, *self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple):
            other = PartitionSpec(*other)
        return isinstance(other, PartitionSpec) and self._partitions == other._partitions

    def __hash__(self) -> int:
        return hash(self._partitions)

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self._partitions))
        return f"PartitionSpec({inner}{',' if len(self) == 1 else ''})"

    def __reduce__(self) -> Any:
        return PartitionSpec, self._partitions

    def names_of(self, dim: int) -> tuple[Any, ...]:
        """The mesh axes of a dimension, as a tuple."""
        entry = self._partitions[dim] if dim < len(self._partitions) else None
        if entry is None or entry is self.UNCONSTRAINED:
            return ()
        return entry if isinstance(entry, tuple) else (entry,)

    def names(self) -> tuple[Any, ...]:
        """All mesh axes that split something."""
        return tuple(name for dim in range(len(self)) for name in self.names_of(dim))

    def trimmed(self) -> PartitionSpec:
        """Without entries at the end that say nothing."""
        entries = list(self._partitions)
        while entries and entries[-1] is None:
            entries.pop()
        return PartitionSpec(*entries)


def _canonical(entry: Any) -> Any:
    if isinstance(entry, (tuple, list)):
        if not entry:
            return None
        return entry[0] if len(entry) == 1 else tuple(entry)
    return entry
