"""Devices and types in the abstract: what a mesh is made of, what a value does along its axes."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable
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


class UnreducedKind(enum.Enum):
    """How parts of a value that are yet to be reduced over an axis combine."""

    sum = enum.auto()
    max = enum.auto()
    min = enum.auto()


@dataclasses.dataclass(frozen=True, init=False)
class ManualAxisType:
    """What a value does along the mesh axes of a shard_map: it varies, it is a part of a reduction
    that is still to come (unreduced), or its cotangent is (reduced).

    Raises TypeError for what is no set of names, ValueError for a name in two of the sets.

    >>> sorted(lamina.sharding.ManualAxisType(varying={"x", "y"}).varying)
    ['x', 'y']
    """

    varying: frozenset[Any]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]
    unreduced_kind: UnreducedKind | None

    def __init__(
        self,
        *,
        varying: Iterable[Any] = frozenset(),
        unreduced: Iterable[Any] = frozenset(),
        reduced: Iterable[Any] = frozenset(),
        unreduced_kind: UnreducedKind | None = None,
    ) -> None:
        sets = {"varying": varying, "unreduced": unreduced, "reduced": reduced}
        for name, value in sets.items():
            if not isinstance(value, (set, frozenset)):
                raise TypeError(
                    f"{name} argument of ManualAxisType should be of type `frozenset` or `set`. Got "
                    f"type {type(value)}"
                )
            object.__setattr__(self, name, frozenset(value))
        for one, other in (("varying", "unreduced"), ("varying", "reduced"), ("unreduced", "reduced")):
            if getattr(self, one) & getattr(self, other):
                raise ValueError(
                    f"{one} and {other} cannot have common mesh axes. Got {one}={getattr(self, one)} "
                    f"and {other}={getattr(self, other)}"
                )
        if unreduced and unreduced_kind is None:
            unreduced_kind = UnreducedKind.sum
        object.__setattr__(self, "unreduced_kind", unreduced_kind)


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
