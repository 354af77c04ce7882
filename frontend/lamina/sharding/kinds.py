"""Devices that are not there yet, and shardings on one device."""

from __future__ import annotations

import dataclasses
from typing import Any

from lamina.sharding.shardings import SingleDeviceSharding


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceToCome:
    """One of the devices of a program that is lowered over a mesh without them: its position among those that
    `compile` is given."""

    id: int
    platform: str = "cpu"
    process_index: int = 0


def make_single_device_sharding(
    device: Any, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The sharding of arrays that are all on one device.

    device       a Device.
    memory_kind  accepted: a device has one memory here.

    >>> lamina.sharding.make_single_device_sharding(lamina.devices()[0]).num_devices
    1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
