"""Devices and types in the abstract: what a mesh is made of, what a value does along its axes."""

from __future__ import annotations

import dataclasses
from typing import Any

from lamina.sharding.shardings import SingleDeviceSharding


@dataclasses.dataclass(frozen=True, slots=True)
class AbstractDevice:
    """A kind of device, without one."""

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return (
            f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores}, "
            f"platform={self.platform})"
        )


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
