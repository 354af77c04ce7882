"""Programs with shard_maps over axes without devices (AbstractMesh): these are the devices of the arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, all_equations
from lamina.core.library import library
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.sharding.kinds import DeviceToCome
from lamina.sharding.manual import Manual
from lamina.sharding.mesh import AbstractMesh, Mesh
from lamina.sharding.on_mesh import shard_map_p
from lamina.sharding.shardings import NamedSharding, Sharding


def with_devices(
    closed: ClosedJaxpr, places: Iterable[Sharding | None], *, ahead: bool = False
) -> ClosedJaxpr:
    """The program with a mesh in place of the axes of each shard_map.

    places  where the arguments lie, as far as that is known; looked at only where a shard_map wants them.
    ahead   whether it is lowered ahead of its calls: then devices may be named later.

    Raises ValueError where no argument lies on a mesh, or one lies on a mesh of other axes."""
    axes = _axes_alone(closed)
    if axes is None:
        return closed
    meshes = [p.mesh for p in places if isinstance(p, NamedSharding) and isinstance(p.mesh, Mesh)]
    for mesh in meshes:
        if mesh.shape_tuple != axes.shape_tuple:
            raise ValueError(
                f"Mesh shape of the input {mesh.shape_tuple} does not match the mesh shape passed to shard_map "
                f"{axes.shape_tuple}"
            )
    if meshes:
        return _over(closed, meshes[0])
    if ahead:
        return _over(closed, axes.over(list(map(DeviceToCome, range(axes.size)))))
    raise ValueError(
        f"Please pass `{library}.Array`s with a `NamedSharding` as input to `shard_map` when passing `AbstractMesh` to "
        "the mesh argument. An AbstractMesh has no devices: those are the arguments', or those of the current mesh "
        f"(`{library}.set_mesh`)"
    )


@cache_on_jaxpr
def _axes_alone(closed: ClosedJaxpr) -> AbstractMesh | None:
    """The axes of the program's shard_maps that have no devices."""
    for eqn in all_equations(closed.jaxpr):
        if eqn.primitive is shard_map_p and isinstance(eqn.params["on"].mesh, AbstractMesh):
            return eqn.params["on"].mesh
    return None


@cache_on_jaxpr
def _over(closed: ClosedJaxpr, mesh: Mesh) -> ClosedJaxpr:
    return ClosedJaxpr(_jaxpr_over(closed.jaxpr, mesh), closed.consts)


def _jaxpr_over(jaxpr: Jaxpr, mesh: Mesh) -> Jaxpr:
    eqns = [e.replace(params={k: _param_over(v, mesh) for k, v in e.params.items()}) for e in jaxpr.eqns]
    return Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, eqns, jaxpr.debug_info)


def _param_over(value: Any, mesh: Mesh) -> Any:
    if isinstance(value, ClosedJaxpr):
        return _over(value, mesh)
    if isinstance(value, Jaxpr):
        return _jaxpr_over(value, mesh)
    if isinstance(value, Manual) and isinstance(value.mesh, AbstractMesh):
        return dataclasses.replace(value, mesh=mesh)
    if type(value) in (tuple, list):
        return type(value)(_param_over(item, mesh) for item in value)
    return value
