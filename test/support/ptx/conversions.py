"""cvt: between all types, narrow floats and pairs among them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from support.ptx.decode import DTYPES, Decoder, Do, Modifiers
from support.ptx.floating import canonical, finished, flushed, narrowed
from support.ptx.machine import Group, Wave
from support.ptx.syntax import Instruction

_NARROW: dict[str, Any] = {
    "e4m3x2": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2x2": np.dtype(ml_dtypes.float8_e5m2),
}
_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_FLOATS = {"f16", "bf16", "f32", "f64"}


def _cvt(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    source, target = modifiers.last(), modifiers.last()
    how = modifiers.one(("rn", "rz", "rm", "rp", "rna", *_TO_INTEGER))
    ftz, sat, relu = modifiers.has("ftz"), modifiers.has("sat"), modifiers.has("relu")
    finite = modifiers.has("satfinite")
    modifiers.end()
    if target in _NARROW or source in _NARROW:
        return _eight_bits(d, one, source, target, relu)
    if target in ("f16x2", "bf16x2"):
        return _pair(d, one, source, target, how, relu, finite, modifiers)
    if target == "tf32":
        return _tf32(d, one, how, modifiers)
    if source not in DTYPES or target not in DTYPES:
        modifiers.left = [target, source]
        modifiers.unknown()
    read = d.read(one.operands[1], source, one)
    write = d.write(one.operands[0], target, one)
    to = DTYPES[target]

    def convert(value: np.ndarray) -> np.ndarray:
        if ftz and source == "f32":
            value = flushed(value)
        if source not in _FLOATS:
            return _from_integer(value, target, how, sat)
        if target not in _FLOATS:
            return _clipped(_TO_INTEGER[how](value.astype(np.float64)), to)
        if how in _TO_INTEGER:
            value = _TO_INTEGER[how](value.astype(np.float64)).astype(value.dtype)
        found = (
            narrowed(value.astype(np.float64), to, how)
            if how in ("rz", "rm", "rp")
            else value.astype(to)
        )
        if finite:
            found = np.clip(found, -np.finfo(to).max, np.finfo(to).max)
        return finished(found, target, ftz, sat, relu)

    return lambda m, g: write(m, g, convert(read(m)))


def _clipped(value: np.ndarray, to: np.dtype) -> np.ndarray:
    """Beyond the type's range its limits, of NaN zero."""
    info = np.iinfo(to)
    inside = np.where(np.isnan(value), 0.0, value)
    low, high = inside <= float(info.min), inside >= float(info.max)
    found = np.where(low | high, 0.0, inside).astype(to)
    found = np.where(low, to.type(info.min), np.where(high, to.type(info.max), found)).astype(to)
    if to.itemsize == 8:
        found = np.where(
            np.isnan(value), to.type(-(1 << 63)) if to.kind == "i" else to.type(1 << 63), found
        )
    return found


def _from_integer(value: np.ndarray, target: str, how: str, sat: bool) -> np.ndarray:
    to = DTYPES[target]
    if target in _FLOATS:
        if value.dtype.itemsize == 8 and to != np.float64:
            return _odd_of(value, to, how)
        return (
            narrowed(value.astype(np.float64), to, how)
            if how in ("rz", "rm", "rp")
            else value.astype(np.float64).astype(to)
        )
    if sat:
        info = np.iinfo(to)
        low, high = (
            max(info.min, np.iinfo(value.dtype).min),
            min(info.max, np.iinfo(value.dtype).max),
        )
        return np.clip(value, low, high).astype(to)
    return value.astype(to)


def _odd_of(value: np.ndarray, to: np.dtype, how: str) -> np.ndarray:
    """64-bit integers have more bits than f64: the lost ones make the last one odd."""
    wide = value.astype(np.float64)
    safe = np.abs(wide) < 2.0**62
    back = np.where(safe, wide, 0.0).astype(value.dtype)
    left = np.where(safe, (value - back).astype(np.int64).astype(np.float64), 0.0)
    return narrowed(wide, to, how or "rn", left)


def _pair(
    d: Decoder,
    one: Instruction,
    source: str,
    target: str,
    how: str,
    relu: bool,
    finite: bool,
    modifiers: Modifiers,
) -> Do:
    """Two f32, the first one into the upper half."""
    if source != "f32":
        modifiers.left = [target, source]
        modifiers.unknown()
    upper, lower = (d.read(o, "f32", one) for o in one.operands[1:])
    write = d.write(one.operands[0], target, one)
    to = DTYPES[target]

    def do(m: Wave, g: Group) -> None:
        value = np.stack([lower(m), upper(m)], axis=1).reshape(-1)
        found = narrowed(value.astype(np.float64), to, how)
        if relu:
            found = np.where(found < 0, to.type(0), found).astype(to)
        if finite:
            found = np.clip(found, -ml_dtypes.finfo(to).max, ml_dtypes.finfo(to).max)
        write(m, g, canonical(found, target))

    return do


def _tf32(d: Decoder, one: Instruction, how: str, modifiers: Modifiers) -> Do:
    read = d.read(one.operands[1], "f32", one)
    write = d.write(one.operands[0], "b32", one)
    if how not in ("rna", "rn", "rz"):
        modifiers.unknown()

    def do(m: Wave, g: Group) -> None:
        bits = read(m).view(np.uint32)
        if how == "rna":
            rounded = bits + np.uint32(0x1000)
        elif how == "rn":
            rounded = bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))
        else:
            rounded = bits
        special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
        write(m, g, np.where(special, bits, rounded & np.uint32(0xFFFFE000)))

    return do


def _eight_bits(d: Decoder, one: Instruction, source: str, target: str, relu: bool) -> Do:
    """Pairs of 8-bit floats, of f32 or f16; what is too large becomes the largest."""
    if target in _NARROW:
        to = _NARROW[target]
        write = d.write(one.operands[0], "b16", one)
        most = float(ml_dtypes.finfo(to).max)
        if source == "f32":
            upper, lower = (d.read(o, "f32", one) for o in one.operands[1:])
        else:
            both = d.read(one.operands[1], source, one)

        def narrow(m: Wave, g: Group) -> None:
            value = (
                np.stack([lower(m), upper(m)], axis=1).reshape(-1) if source == "f32" else both(m)
            )
            value = value.astype(np.float32)
            if relu:
                value = np.where(value < 0, np.float32(0), value)
            found = np.clip(value, -most, most).astype(to).view(np.uint8)
            write(m, g, np.where(np.isnan(value), np.uint8(0x7F), found).view(np.uint16))

        return narrow
    read = d.read(one.operands[1], "b16", one)
    write = d.write(one.operands[0], target, one)
    to = DTYPES[target]
    return lambda m, g: write(
        m,
        g,
        canonical(
            np.ascontiguousarray(read(m)).view(_NARROW[source]).astype(np.float32).astype(to),
            target,
        ),
    )


OPS = {"cvt": _cvt}
