"""Types that say how arrays lie on a mesh (core/placed.py), from shardings and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lamina import config
from lamina.core.avals import ShapedArray
from lamina.core.library import library
from lamina.core.placed import Placed, sums
from lamina.sharding.mesh import AxisType, Mesh, get_abstract_mesh, get_mesh
from lamina.sharding.shardings import NamedSharding, Sharding, over_current_mesh
from lamina.sharding.spec import PartitionSpec


def placed_by(sharding: Any, ndim: int) -> Placed | None:
    """What types say of arrays under a sharding: nothing where no axis of its mesh is explicit."""
    if not isinstance(sharding, NamedSharding) or AxisType.Explicit not in sharding.mesh.axis_types:
        return None
    mesh, spec = sharding.mesh, sharding.spec
    names = set(mesh.explicit_axes)
    if config.remove_size_one_mesh_axis_from_type.value:
        names = {name for name in names if mesh.shape[name] > 1}
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


def in_types(place: Any, what: str) -> NamedSharding:
    """A NamedSharding or a PartitionSpec over the current mesh that types are to say: the argument `what`.

    Raises TypeError for anything else, ValueError for a PartitionSpec where no mesh is current, and for axes of which
    types say nothing."""
    if isinstance(place, PartitionSpec):
        over = over_current_mesh(place)
        if over is None:
            raise ValueError(
                "Using PartitionSpec when you are not under a mesh context is not allowed. Pass a NamedSharding "
                f"instance or enter into a mesh context via `{library}.set_mesh`. Got {what}={place}"
            )
        place = over
    if not isinstance(place, NamedSharding):
        raise TypeError(f"{what} is a NamedSharding or a PartitionSpec, not {place!r}")
    kinds = dict(zip(place.mesh.axis_names, place.mesh.axis_types, strict=True))
    for name in (*place.spec.names(), *place.spec.unreduced, *place.spec.reduced):
        if kinds[name] is not AxisType.Explicit:
            raise ValueError(
                f"PartitionSpec passed to {what} cannot contain axis names that are of type Auto or Manual. Got "
                f"{place.spec} with axis {name!r} of type {kinds[name].name}: with_sharding_constraint says where an "
                "array lies along Auto axes"
            )
    return place


def on_devices(sharding: Sharding, meshes: Iterable[Any] = ()) -> Sharding:
    """The same on the devices of one of these meshes, or of the current one: of one that has its axes, else of one
    that has its size.

    Raises ValueError where there is none."""
    if not isinstance(sharding, NamedSharding) or isinstance(sharding.mesh, Mesh):
        return sharding
    known = [mesh for mesh in (*meshes, get_mesh()) if isinstance(mesh, Mesh) and not mesh.empty]
    for mesh in known:
        if mesh.shape_tuple == sharding.mesh.shape_tuple:
            return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)
    for mesh in known:
        if mesh.size != sharding.mesh.size:
            raise ValueError(
                f"AbstractMesh size: {sharding.mesh.size} does not match the device assignment size: {mesh.size}. Got "
                f"{sharding} in a program on {mesh}"
            )
        return NamedSharding(sharding.mesh.over(mesh.device_list), sharding.spec)
    raise ValueError(
        f"{sharding} is over a mesh without devices, and there is none with its axes: make one the current "
        "mesh (set_mesh), or give an array that lies on one"
    )
