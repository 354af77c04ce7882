"""The axes that several meshes over the same devices have in common: each mesh's, cut where another's end.

    x=4, y=2  and  z=8   ->  x, y: z is (x, y)
    x=2, y=4  and  z=4, w=2   ->  x, y_0=2, y_1=2: y is (y_0, y_1), z is (x, y_0), w is y_1

The partitioner is given one mesh, that of these axes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.core.manual_axes import UnreducedKind
from lamina.sharding.mesh import AbstractMesh, AxisType, Mesh
from lamina.sharding.shardings import NamedSharding
from lamina.sharding.spec import PartitionSpec

Axes = tuple[str, ...]


class Grid:
    """Axes with names and sizes; `mesh` has the devices. Raises ValueError where the meshes have none in
    common."""

    def __init__(self, meshes: Sequence[Mesh]) -> None:
        self._meshes = meshes
        edges = {1} | {edge for mesh in meshes for lower_upper in _spans(mesh) for edge in lower_upper}
        self._edges = sorted(edges)
        pairs = list(zip(self._edges, self._edges[1:]))
        for low, high in pairs:
            if high % low:
                raise ValueError(
                    f"the axes of {', '.join(map(repr, meshes))} don't cut the devices alike: programs "
                    "are partitioned over meshes of which each axis is made of axes of the others"
                )
        names = self._named(pairs)
        self.axes = [(name, high // low) for name, (low, high) in zip(names, pairs, strict=True)]
        self.axes.reverse()
        self._of_edge = {low: name for name, (low, _) in zip(names, pairs, strict=True)}

    def _named(self, pairs: Sequence[tuple[int, int]]) -> list[str]:
        """A name for each pair of edges: that of the first mesh's axis, numbered where it is cut."""
        mesh = self._meshes[0]
        names = []
        for low, high in pairs:
            for i, ((first, last), name) in enumerate(zip(_spans(mesh), mesh.axis_names, strict=True)):
                if first <= low and high <= last and first < last:
                    plain = name if isinstance(name, str) and name.isidentifier() else f"axis{i}"
                    whole = (low, high) == (first, last)
                    names.append(plain if whole else f"{plain}_{last // high}")
        unique = len(set(names)) == len(names)
        return names if unique else [f"axis_{low}" for low, _ in pairs]

    def of_axis(self, mesh: Mesh | AbstractMesh, name: Any) -> Axes:
        """What an axis of a mesh is made of, the last of which varies fastest."""
        low, high = _spans(mesh)[list(mesh.axis_names).index(name)]
        between = [edge for edge in self._edges if low <= edge < high]
        return tuple(self._of_edge[edge] for edge in reversed(between))

    def of_spec(self, mesh: Mesh | AbstractMesh, names: Sequence[Any]) -> Axes:
        """What several axes of a mesh are made of."""
        return tuple(part for name in names for part in self.of_axis(mesh, name))

    def sharding(
        self, dims: Sequence[Sequence[str]], terms: Sequence[str] = (), combiner: str = ""
    ) -> NamedSharding:
        """The sharding of an array whose dimensions are split over these axes, and of which devices have terms
        along others, on the first mesh that can say it."""
        kind = UnreducedKind[combiner] if terms else None
        for mesh in self._meshes:
            found = [self._in_mesh(mesh, axes) for axes in (*dims, terms)]
            if None not in found:
                *split, summed = found
                spec = PartitionSpec(*split, unreduced=frozenset(summed or ()), unreduced_kind=kind)
                return NamedSharding(_explicit(mesh) if terms else mesh, spec)
        spec = PartitionSpec(*map(tuple, dims), unreduced=frozenset(terms), unreduced_kind=kind)
        return NamedSharding(_explicit(self._finest) if terms else self._finest, spec)

    def _in_mesh(self, mesh: Mesh, axes: Sequence[str]) -> tuple[Any, ...] | None:
        """The axes of a mesh that are made of these; None where none are."""
        names: list[Any] = []
        rest = tuple(axes)
        known = {made_of: name for name in mesh.axis_names if (made_of := self.of_axis(mesh, name))}
        while rest:
            for made_of, name in known.items():
                if rest[: len(made_of)] == made_of:
                    names.append(name)
                    rest = rest[len(made_of) :]
                    break
            else:
                return None
        return tuple(names)

    @functools.cached_property
    def _finest(self) -> Mesh:
        devices = np.array(self._meshes[0].device_list, dtype=object)
        return Mesh(devices.reshape([n for _, n in self.axes]), [name for name, _ in self.axes])


def _explicit(mesh: Mesh) -> Mesh:
    """The same mesh, of whose axes types speak: along these alone arrays are terms."""
    return (
        mesh.update(axis_types=(AxisType.Explicit,) * len(mesh.axis_names))
        if mesh.auto_axes
        else mesh
    )


@functools.lru_cache(maxsize=256)
def grid_of(meshes: tuple[Mesh, ...]) -> Grid:
    """That of these meshes."""
    return Grid(meshes)


def _spans(mesh: Mesh | AbstractMesh) -> list[tuple[int, int]]:
    """For each axis how many devices are between neighbours along it, and that times its size."""
    spans, stride = [], 1
    for size in reversed(mesh.axis_sizes):
        spans.append((stride, stride * size))
        stride *= size
    return spans[::-1]
