"""Shardings as JAX's runtime has them: serialised messages xla.OpSharding (xla/xla_data.proto)."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.partitioning import Sharding

# Fields by number, and the values of the field `type`.
_TYPE, _TILES, _DEVICES, _COPIES_LAST = 1, 3, 4, 6
_REPLICATED, _OTHER = 0, 3


def op_sharding(sharding: Sharding) -> bytes:
    """The message that says a sharding."""
    if not sharding.tiles:
        return _number(_TYPE, _REPLICATED)
    message = _number(_TYPE, _OTHER)
    tiles = sharding.tiles if sharding.copies == 1 else (*sharding.tiles, sharding.copies)
    message += _numbers(_TILES, tiles) + _numbers(_DEVICES, sharding.devices)
    return message + _number(_COPIES_LAST, 1) if sharding.copies > 1 else message


def _varint(value: int) -> bytes:
    rest = bytearray()
    while value >= 0x80:
        rest.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*rest, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _numbers(field: int, values: Sequence[int]) -> bytes:
    packed = b"".join(map(_varint, values))
    return _varint(field << 3 | 2) + _varint(len(packed)) + packed
