"""The memories of a device, by name."""

from __future__ import annotations

import enum


class Space(enum.Enum):
    """A kind of memory that `device_put` and the policies of `checkpoint` take for a place.

    A device has one memory here: values stay where they are whatever is named.
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"
