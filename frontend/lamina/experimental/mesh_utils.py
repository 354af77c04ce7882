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

    Raises ValueError where there are more or fewer devices than the shape takes.
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
    """The same with slower links between groups of devices: there is one group, so that
    dcn_mesh_shape must be all ones. Raises ValueError where it is not."""
    if math.prod(dcn_mesh_shape) != 1:
        raise ValueError(
            f"Number of slices 1 must equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}"
        )
    return create_device_mesh(mesh_shape, devices)
