"""Types that say how arrays lie on a mesh (core/placed.py), from shardings and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lamina.core.avals import ShapedArray
from lamina.core.placed import Placed, sums
from lamina.sharding.mesh import AxisType, Mesh, get_abstract_mesh, get_mesh
from lamina.sharding.shardings import NamedSharding
from lamina.sharding.spec import PartitionSpec


def placed_by(sharding: Any, ndim: int) -> Placed | None:
    """What types say of arrays under a sharding: nothing where no axis of its mesh is explicit."""
    if not isinstance(sharding, NamedSharding) or AxisType.Explicit not in sharding.mesh.axis_types:
        return None
    mesh, spec = sharding.mesh, sharding.spec
    names = set(mesh.explicit_axes)
    dims = tuple(tuple(n for n in spec.names_of(d) if n in names) for d in range(ndim))
    over = sums(spec.unreduced & names, spec.reduced & names, spec.unreduced_kind)
    return Placed(mesh.abstract_mesh if isinstance(mesh, Mesh) else mesh, dims, over)


def sharding_of(aval: ShapedArray) -> NamedSharding:
    """The sharding that a type says: over the axes of the current mesh, or no mesh, where it says none."""
    placed = aval.placed
    if placed is None:
        mesh = get_abstract_mesh()
        return NamedSharding(mesh, PartitionSpec(*[None] * aval.ndim))
    of = placed.sums
    spec = PartitionSpec(
        *placed.dims, unreduced=of.unreduced, reduced=of.reduced, unreduced_kind=of.kind
    )
    return NamedSharding(placed.mesh, spec)


def on_devices(sharding: NamedSharding, meshes: Iterable[Any] = ()) -> NamedSharding:
    """The same on the devices of one of these meshes, or of the current one, that has its axes.

    Raises ValueError where none has."""
    if isinstance(sharding.mesh, Mesh):
        return sharding
    for mesh in (*meshes, get_mesh()):
        if isinstance(mesh, Mesh) and mesh.shape_tuple == sharding.mesh.shape_tuple:
            return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)
    raise ValueError(
        f"{sharding} is over a mesh without devices, and there is none with its axes: make one the current "
        "mesh (set_mesh), or give an array that lies on one"
    )
