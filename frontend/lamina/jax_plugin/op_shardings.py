"""Shardings as JAX's runtime has them: serialised messages xla.OpSharding (xla/xla_data.proto)."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.partitioning import Sharding

# Fields by number, and the values of the field `type`.
_TYPE, _TILES, _DEVICES, _COPIES_LAST, _ATTRIBUTES, _LAST_TYPES = 1, 3, 4, 6, 7, 8
_REPLICATED, _OTHER, _MANUAL, _UNREDUCED = 0, 3, 4, 6


def op_sharding(sharding: Sharding) -> bytes:
    """The message that says a sharding."""
    if not sharding.devices:
        return _number(_TYPE, _REPLICATED)
    how = b""
    if sharding.terms > 1:
        entry = _text(1, "sdy::reduction_op") + _text(2, sharding.combiner)
        how = _bytes(_ATTRIBUTES, entry)
        if sharding.terms == len(sharding.devices):
            return _number(_TYPE, _UNREDUCED) + how
    last = [(sharding.terms, _UNREDUCED), (sharding.copies, _REPLICATED)]
    last = [(count, kind) for count, kind in last if count > 1]
    message = _number(_TYPE, _OTHER)
    message += _numbers(_TILES, [*sharding.tiles, *(count for count, _ in last)])
    message += _numbers(_DEVICES, sharding.devices)
    if sharding.terms > 1:
        return message + how + _numbers(_LAST_TYPES, [kind for _, kind in last])
    return message + _number(_COPIES_LAST, 1) if last else message


def _varint(value: int) -> bytes:
    rest = bytearray()
    while value >= 0x80:
        rest.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*rest, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _numbers(field: int, values: Sequence[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, values)))


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


MANUAL = _number(_TYPE, _MANUAL)
"""The message that says that each device has an array of its own."""
