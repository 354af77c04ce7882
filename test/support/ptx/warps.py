"""What the lanes of a warp do together: shuffles, votes, matches, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.ptx.decode import DTYPES, Decoder, Modifiers
from support.ptx.machine import Group, Step, Wave
from support.ptx.syntax import Instruction, Pair


def _split(operand: Any) -> tuple[Any, Any]:
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)


def _shfl(d: Decoder, one: Instruction) -> Step:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("b32",))
    if not modifiers.has("sync"):
        modifiers.unknown()
    mode = modifiers.one(("up", "down", "bfly", "idx"))
    modifiers.end()
    out, inside = _split(one.operands[0])
    write = d.write(out, type_, one)
    says = d.write(inside, "pred", one) if inside is not None else None
    value, by, clamp = (
        d.read(one.operands[1], type_, one),
        d.read(one.operands[2], "u32", one),
        d.read(one.operands[3], "u32", one),
    )
    members = d.read(one.operands[4], "u32", one)

    def do(m: Wave, g: Group) -> None:
        lane = m.lane
        b, c = by(m).astype(np.int64) & 31, clamp(m).astype(np.int64)
        segment = c >> 8 & 31
        low = lane & segment
        top = low | (c & 31 & ~segment)
        source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": low | (b & ~segment)}[
            mode
        ]
        right = source >= top if mode == "up" else source <= top
        source = np.where(right, source, lane)
        at = m.everyone - lane + source
        values = value(m)[at]
        if not g.all:
            values = np.where(g.mask[at], values, np.uint32(0xABABABAB))
        write(m, g, values)
        if says is not None:
            says(m, g, right)
        m.warps_meet(g)

    return Step(do, str(one), members=members)


def _by_warp(m: Wave, g: Group, bits: np.ndarray) -> np.ndarray:
    """For each lane the mask of its warp's lanes where `bits` holds, of those that take part."""
    weights = np.where(bits & g.mask, np.uint32(1) << m.lane.astype(np.uint32), np.uint32(0))
    return np.bitwise_or.reduceat(weights, np.arange(0, m.lanes, 32))[m.warp]


def _vote(d: Decoder, one: Instruction) -> Step:
    modifiers = Modifiers(one)
    type_ = modifiers.last()
    if not modifiers.has("sync"):
        modifiers.unknown()
    kind = modifiers.one(("all", "any", "uni", "ballot"))
    modifiers.end()
    write = d.write(one.operands[0], type_, one)
    value, members = d.read(one.operands[1], "pred", one), d.read(one.operands[2], "u32", one)

    def do(m: Wave, g: Group) -> None:
        yes, no = _by_warp(m, g, value(m)), _by_warp(m, g, ~value(m))
        among = members(m)
        yes, no = yes & among, no & among
        write(
            m,
            g,
            {"all": no == 0, "any": yes != 0, "uni": (yes == 0) | (no == 0), "ballot": yes}[kind],
        )
        m.warps_meet(g)

    return Step(do, str(one), members=members)


def _match(d: Decoder, one: Instruction) -> Step:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("b32", "b64"))
    kind = modifiers.one(("any", "all"))
    if not modifiers.has("sync"):
        modifiers.unknown()
    modifiers.end()
    out, equal = _split(one.operands[0])
    write = d.write(out, "b32", one)
    says = d.write(equal, "pred", one) if equal is not None else None
    value, members = d.read(one.operands[1], type_, one), d.read(one.operands[2], "u32", one)

    def do(m: Wave, g: Group) -> None:
        values = value(m).reshape(-1, 32)
        same = values[:, :, None] == values[:, None, :]
        same &= g.mask.reshape(-1, 1, 32)
        bits = (same * (np.uint32(1) << np.arange(32, dtype=np.uint32))).sum(
            2, dtype=np.uint32
        ).reshape(-1) & members(m)
        if kind == "all":
            every = bits == members(m)
            bits = np.where(every, bits, np.uint32(0))
            if says is not None:
                says(m, g, every)
        write(m, g, bits)
        m.warps_meet(g)

    return Step(do, str(one), members=members)


_REDUCE: dict[str, Callable[..., Any]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


def _redux(d: Decoder, one: Instruction) -> Step:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("u32", "s32", "b32"))
    name = modifiers.one(tuple(_REDUCE))
    if not modifiers.has("sync"):
        modifiers.unknown()
    modifiers.end()
    write, value, members = (
        d.write(one.operands[0], type_, one),
        d.read(one.operands[1], type_, one),
        d.read(one.operands[2], "u32", one),
    )
    info = np.iinfo(DTYPES[type_])
    neutral = {"min": info.max, "max": info.min, "and": ~np.zeros((), DTYPES[type_])}.get(name, 0)

    def do(m: Wave, g: Group) -> None:
        values, among = value(m), members(m)
        found = values.copy()
        for mask in np.unique(among[g.index]):
            inside = g.mask & (among == mask)
            kept = np.where(inside, values, np.asarray(neutral, values.dtype)).reshape(-1, 32)
            total = _REDUCE[name].reduce(kept, axis=1, dtype=values.dtype)  # type: ignore[attr-defined]
            found = np.where(inside, total[m.warp], found)
        write(m, g, found)
        m.warps_meet(g)

    return Step(do, str(one), members=members)


def _activemask(d: Decoder, one: Instruction) -> Step:
    Modifiers(one, 2).end()
    write = d.write(one.operands[0], "b32", one)
    return Step(lambda m, g: write(m, g, _by_warp(m, g, g.mask)), str(one))


def _elect(d: Decoder, one: Instruction) -> Step:
    Modifiers(one, 2).end()
    out, chosen = _split(one.operands[0])
    write, says = d.write(out, "b32", one), d.write(chosen, "pred", one)
    members = d.read(one.operands[1], "u32", one)

    def do(m: Wave, g: Group) -> None:
        among = members(m)
        first = among & (~among + np.uint32(1))
        leader = np.log2(first.astype(np.float64)).astype(np.uint32)
        write(m, g, leader)
        says(m, g, leader == m.lane)

    return Step(do, str(one), members=members)


OPS = {
    "shfl": _shfl,
    "vote": _vote,
    "match": _match,
    "redux": _redux,
    "activemask": _activemask,
    "elect": _elect,
}
