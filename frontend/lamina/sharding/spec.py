"""PartitionSpec: which mesh axes each dimension of an array is split over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from lamina.core.manual_axes import UnreducedKind

NONE: frozenset[Any] = frozenset()


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"


class PartitionSpec:
    """For each dimension a mesh axis name, a tuple of names (the last varies fastest), or None.

    Dimensions beyond the last entry are not split. P(("x",)) is P("x"), P(()) is P(None).

    partitions      the entries.
    unreduced       axes along which each device has a term: the array is their sum.
    reduced         axes along which all devices have the same, and a cotangent is such terms.
    unreduced_kind  how terms are combined, UnreducedKind.sum by default.

    Raises ValueError for an axis that is named in two of these, TypeError for what is no set of axes.
    """

    __slots__ = ("_partitions", "reduced", "unreduced", "unreduced_kind")
    UNCONSTRAINED: Final = _Unconstrained()
    unreduced: frozenset[Any]
    reduced: frozenset[Any]
    unreduced_kind: UnreducedKind | None

    def __init__(
        self,
        *partitions: Any,
        unreduced: Any = NONE,
        reduced: Any = NONE,
        unreduced_kind: UnreducedKind | None = None,
    ) -> None:
        self._partitions = tuple(map(_canonical, partitions))
        self.unreduced, self.reduced, self.unreduced_kind = unreduced, reduced, None
        if unreduced or reduced or unreduced_kind is not None:
            self._take_terms(unreduced_kind)

    def _take_terms(self, kind: UnreducedKind | None) -> None:
        from lamina.core.manual_axes import UnreducedKind

        for what in ("unreduced", "reduced"):
            axes = getattr(self, what)
            if not isinstance(axes, (set, frozenset)):
                raise TypeError(
                    f"{what} argument of PartitionSpec should be a set of axes. Got {axes!r}"
                )
            setattr(self, what, frozenset(axes))
        if kind is not None and not isinstance(kind, UnreducedKind):
            raise TypeError(f"Expected unreduced_kind to be of type `UnreducedKind`. Got {kind!r}")
        self.unreduced_kind = (kind or UnreducedKind.sum) if self.unreduced else None
        sets = {
            "partitions": frozenset(self.names()),
            "unreduced": self.unreduced,
            "reduced": self.reduced,
        }
        for one, other in (
            ("partitions", "unreduced"),
            ("partitions", "reduced"),
            ("unreduced", "reduced"),
        ):
            if sets[one] & sets[other]:
                raise ValueError(
                    f"{one} cannot overlap with {other} axes passed to PartitionSpec. Got {one}: "
                    f"{set(sets[one])} and {other}: {set(sets[other])}"
                )

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __getitem__(self, i: Any) -> Any:
        return self._partitions[i]

    def index(self, value: Any) -> int:
        """The first dimension with this entry."""
        return self._partitions.index(_canonical(value))

    @property
    def is_plain(self) -> bool:
        """Whether nothing is said of terms."""
        return not self.unreduced and not self.reduced

    def with_entries(self, entries: Iterable[Any]) -> PartitionSpec:
        """The same with other entries for the dimensions."""
        return PartitionSpec(
            *entries,
            unreduced=self.unreduced,
            reduced=self.reduced,
            unreduced_kind=self.unreduced_kind,
        )

    def update(self, **fields: Any) -> PartitionSpec:
        """A copy in which some of partitions, unreduced, reduced and unreduced_kind are others."""
        given = {n: getattr(self, n) for n in ("unreduced", "reduced", "unreduced_kind")}
        partitions = fields.pop("partitions", self._partitions)
        if not fields.get("unreduced", self.unreduced):
            given["unreduced_kind"] = None
        return PartitionSpec(*partitions, **{**given, **fields})

    def of_cotangent(self) -> PartitionSpec:
        """How cotangents of such arrays lie: reduced where these are unreduced, and the other way round."""
        return PartitionSpec(*self, unreduced=self.reduced, reduced=self.unreduced)

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            if self.unreduced and other.unreduced and self.unreduced_kind != other.unreduced_kind:
                raise TypeError(
                    f"specs whose unreduced_kind differs can't be added: {self} and {other}"
                )
            return PartitionSpec(
                *self,
                *other,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
                unreduced_kind=self.unreduced_kind or other.unreduced_kind,
            )
        self._check_plain("__add__")
        return PartitionSpec(*self, *other)

    def __radd__(self, other: Any) -> PartitionSpec:
        self._check_plain("__radd__")
        return PartitionSpec(*other, *self)

    def _check_plain(self, method: str) -> None:
        for what in ("unreduced", "reduced"):
            if getattr(self, what):
                raise TypeError(
                    f"{what} in `{method}` of PartitionSpec: only a PartitionSpec can be added to {self}"
                )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple):
            other = PartitionSpec(*other)
        return isinstance(other, PartitionSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._partitions if self.is_plain else self._key())

    def _key(self) -> tuple[Any, ...]:
        return self._partitions, self.unreduced, self.reduced, self.unreduced_kind

    def __repr__(self) -> str:
        if self.is_plain:
            return f"P{self._partitions!r}"  # a tuple of one has a comma, as JAX shows it
        shown = list(map(repr, self._partitions))
        for what in ("unreduced", "reduced"):
            if axes := getattr(self, what):
                shown.append(f"{what}={{{', '.join(sorted(map(repr, axes)))}}}")
        if self.unreduced_kind is not None:
            shown.append(f"unreduced_kind={self.unreduced_kind.name}")
        return f"P({', '.join(shown)})"

    def __reduce__(self) -> Any:
        if self.is_plain:
            return PartitionSpec, self._partitions
        return _of_parts, self._key()

    def names_of(self, dim: int) -> tuple[Any, ...]:
        """The mesh axes of a dimension, as a tuple."""
        entry = self._partitions[dim] if dim < len(self._partitions) else None
        if entry is None or entry is self.UNCONSTRAINED:
            return ()
        return entry if isinstance(entry, tuple) else (entry,)

    def names(self) -> tuple[Any, ...]:
        """All mesh axes that split something."""
        return tuple(name for dim in range(len(self)) for name in self.names_of(dim))

    def twice(self) -> tuple[Any, ...]:
        """The mesh axes that it names more than once."""
        names = self.names()
        return tuple(dict.fromkeys(name for name in names if names.count(name) > 1))

    def closed(self) -> PartitionSpec:
        """Whole where it leaves open how a dimension is split."""
        return self.with_entries(None if entry is self.UNCONSTRAINED else entry for entry in self._partitions)

    def trimmed(self) -> PartitionSpec:
        """Without entries at the end that say nothing."""
        entries = list(self._partitions)
        while entries and entries[-1] is None:
            entries.pop()
        return self.with_entries(entries)


def check_not_spread(over: tuple[Any, ...], spec: PartitionSpec, what: str) -> None:
    """Raises ValueError where a spec names an axis over which vmap spreads the batch."""
    if both := [name for name in over if name in spec.names()]:
        raise ValueError(
            f"vmap spmd_axis_name cannot appear in {what}: got spmd_axis_name {over}, of which {spec} has {both}"
        )


def _of_parts(
    partitions: tuple[Any, ...],
    unreduced: frozenset[Any],
    reduced: frozenset[Any],
    kind: UnreducedKind | None,
) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)


def _canonical(entry: Any) -> Any:
    if isinstance(entry, (tuple, list)):
        if nested := [each for each in entry if isinstance(each, (tuple, list))]:
            raise ValueError(
                "A tuple inside PartitionSpec cannot contain a nested tuple: it lists axes of the mesh. "
                f"Got {nested[0]!r} in {entry!r}"
            )
        if not entry:
            return None
        return entry[0] if len(entry) == 1 else tuple(entry)
    return entry
