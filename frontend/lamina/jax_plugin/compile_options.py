"""What JAX asks of a compilation, read from a serialised xla.CompileOptionsProto.

    options = CompileOptions.of(data)
    options.num_partitions, options.device_ids, options.settings

The few fields that mean something here are read from protobuf's wire format; XLA's own options
(`debug_options`, layouts that XLA chooses, profiles) are left aside.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from lamina.records import Record

# Fields by number, from xla/pjrt/proto/compile_options.proto and xla/xla_data.proto.
_BUILD_OPTIONS, _PORTABLE, _OVERRIDES = 3, 4, 7
_REPLICAS, _PARTITIONS, _SPMD, _ASSIGNMENT, _SHARDY = 4, 5, 6, 9, 19
_OF_REPLICAS = 3  # DeviceAssignment.computation_devices
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are no protobuf message."""


class CompileOptions(Record):
    """The options that decide how a program is compiled and where it runs."""

    num_replicas: int = 1
    num_partitions: int = 1
    device_ids: list[list[int]] | None = None
    """Of each replica, the device of each partition; None where the caller leaves it open."""
    use_spmd_partitioning: bool = False
    use_shardy_partitioner: bool = False
    is_portable: bool = False
    """Whether the program may run on any device, given when it is called."""
    settings: dict[str, Any] = field(default_factory=dict)
    """JAX's compiler_options by name."""

    @classmethod
    def of(cls, data: bytes) -> CompileOptions:
        """The options in a serialised CompileOptionsProto; WireError where it is none."""
        found: dict[str, Any] = {"settings": {}}
        for number, value in _fields(data):
            if number == _BUILD_OPTIONS:
                _read_build_options(_as_bytes(value), found)
            elif number == _PORTABLE:
                found["is_portable"] = bool(value)
            elif number == _OVERRIDES:
                name, setting = _override(_as_bytes(value))
                found["settings"][name] = setting
        return cls(**found)

    @property
    def assignment(self) -> list[list[int]]:
        """The devices, the first ones in order where the caller leaves it open."""
        if self.device_ids is not None:
            return self.device_ids
        replicas, partitions = range(self.num_replicas), range(self.num_partitions)
        return [[r * self.num_partitions + p for p in partitions] for r in replicas]


def _read_build_options(data: bytes, found: dict[str, Any]) -> None:
    for number, value in _fields(data):
        if number == _REPLICAS:
            found["num_replicas"] = _as_int(value)
        elif number == _PARTITIONS:
            found["num_partitions"] = _as_int(value)
        elif number == _SPMD:
            found["use_spmd_partitioning"] = bool(value)
        elif number == _ASSIGNMENT:
            found["device_ids"] = _assignment(_as_bytes(value))
        elif number == _SHARDY:
            found["use_shardy_partitioner"] = bool(value)


def _assignment(data: bytes) -> list[list[int]]:
    """Replica by partition. The message has a list of replicas' devices for each partition."""
    of_partitions = []
    for number, value in _fields(data):
        if number == _OF_REPLICAS:
            ids: list[int] = []
            for inner, given in _fields(_as_bytes(value)):
                if inner == 1:
                    ids += _packed(given) if isinstance(given, bytes) else [_as_int(given)]
            of_partitions.append(ids)
    return [list(row) for row in zip(*of_partitions, strict=True)]


def _override(data: bytes) -> tuple[str, Any]:
    """An entry of the map of overrides: a name, and a string, a bool, an integer or a double."""
    name: str = ""
    setting: Any = None
    for number, value in _fields(data):
        if number == 1:
            name = _as_bytes(value).decode()
        elif number == 2:
            for kind, given in _fields(_as_bytes(value)):
                if kind == 1:
                    setting = _as_bytes(given).decode()
                elif kind == 2:
                    setting = bool(given)
                elif kind == 3:
                    setting = _as_int(given)
                elif kind == 4:
                    setting = struct.unpack("<d", _as_bytes(given))[0]
    return name, setting


# The wire format: https://protobuf.dev/programming-guides/encoding


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field: an int for a varint, bytes for all else."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise WireError(f"field {number} is of wire type {kind}, which no options have")
        if at + size > len(data):
            raise WireError(f"field {number} reaches beyond the end")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number, and where what follows it begins."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("a number is cut off, or longer than 64 bits")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _packed(data: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        numbers.append(_as_int(value))
    return numbers


def _as_int(value: int | bytes) -> int:
    """A varint as a signed number of 64 bits."""
    if isinstance(value, bytes):
        raise WireError("a number was expected")
    return value - (1 << 64) if value >= 1 << 63 else value


def _as_bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise WireError("a message was expected")
    return value
