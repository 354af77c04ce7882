"""Devices arranged for a mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.devices import devices as all_devices

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Devices as an array of a mesh's shape, in order: all are equally near to each other here.

    mesh_shape                  the sizes of the mesh.
    devices                     the devices; None: all.
    contiguous_submeshes        without effect,
    allow_split_physical_axes   likewise.

    Raises ValueError where there are more or fewer devices than the shape takes.

    >>> lamina.experimental.mesh_utils.create_device_mesh((1, 1), lamina.devices()[:1]).shape
    (1, 1)
    """
    given = list(all_devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(given):
        raise ValueError(
            f"Number of devices {len(given)} must equal the product of mesh_shape "
            f"{tuple(mesh_shape)}"
        )
    return np.array(given, dtype=object).reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """create_device_mesh for groups of devices with slower links between them: there is one group.

    mesh_shape                  the sizes of the mesh within a group.
    dcn_mesh_shape              those across groups, all ones.
    devices                     the devices; None: all.
    process_is_granule          without effect,
    should_sort_granules_by_key  likewise,
    allow_split_physical_axes   likewise.

    Raises ValueError where dcn_mesh_shape is not all ones or numbers of devices differ.

    >>> create = lamina.experimental.mesh_utils.create_hybrid_device_mesh
    >>> create((1, 1), (1, 1), lamina.devices()[:1]).shape
    (1, 1)
    """
    if math.prod(dcn_mesh_shape) != 1:
        raise ValueError(
            f"Number of slices 1 must equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}"
        )
    return create_device_mesh(mesh_shape, devices)
