"""Devices that programs are compiled for. There are those of this machine alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from lamina.array import Device
from lamina.core.library import library

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


@dataclasses.dataclass(frozen=True)
class TopologyDescription:
    """Some devices."""

    devices: list[Device]


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices that are there.

    platform  "cpu" or "cuda"; None: the default.

    >>> lamina.experimental.topologies.get_attached_topology().devices == lamina.devices()
    True
    """
    from lamina.devices import devices

    return TopologyDescription(devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> TopologyDescription:
    """The devices that are there, of a platform. Raises NotImplementedError for a name of others.

    topology_name  "".
    platform       as in get_attached_topology.
    kwargs         none.

    >>> len(lamina.experimental.topologies.get_topology_desc(platform="cpu").devices) == lamina.device_count("cpu")
    True
    """
    if topology_name or kwargs:
        raise NotImplementedError(
            f"get_topology_desc: {topology_name or kwargs!r}: there are descriptions of attached devices alone. To "
            f"compile for another processor or GPU say {library}.jit(f).lower(x).compile(target=...)"
        )
    return get_attached_topology(platform)


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Any:
    """A Mesh of a topology's devices.

    topo                  the devices.
    mesh_shape            its sizes.
    axis_names            the names of its axes.
    contiguous_submeshes  without effect.

    >>> topologies = lamina.experimental.topologies
    >>> mesh = topologies.make_mesh(topologies.get_attached_topology(), (lamina.device_count(),), ("x",))
    >>> mesh.axis_names
    ('x',)
    """
    from lamina.experimental.mesh_utils import create_device_mesh
    from lamina.sharding import Mesh

    shape = tuple(mesh_shape)
    return Mesh(create_device_mesh(shape, list(topo.devices)), axis_names)
