"""wmma: matrices that the lanes of a warp hold in an order that PTX leaves open. Here it is rows, element after
element, and again from the start where lanes have room for more, as they have for f16."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from support.ptx.decode import Decoder, Modifiers
from support.ptx.machine import Group, Step, Wave
from support.ptx.matrices import ELEMENTS, wide
from support.ptx.moves import expanded, load, space_of, store
from support.ptx.syntax import Instruction

_WHOLE = np.uint32(0xFFFFFFFF)
_LANES = 32
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


def _whole_warps(m: Wave) -> np.ndarray:
    return np.full(m.lanes, _WHOLE)


def _shape(modifiers: Modifiers) -> tuple[int, int, int]:
    shape = next((part for part in modifiers.left if _SHAPE.fullmatch(part)), "")
    for word in ("sync", "aligned", shape):
        if not modifiers.has(word):
            modifiers.unknown()
    rows, columns, depth = (int(n) for n in _SHAPE.fullmatch(shape).groups())  # type: ignore[union-attr]
    return rows, columns, depth


def _per(type_: str) -> int:
    """Elements of a register: f16 and narrower ones lie side by side."""
    return max(1, 4 // np.dtype(ELEMENTS[type_]).itemsize)


def _word(type_: str) -> str:
    return "b64" if type_ == "f64" else "b32"


def _moved(d: Decoder, one: Instruction) -> tuple[Any, ...]:
    """What is moved: extents, type, space, whether rows are contiguous, and the distance of those that are not."""
    modifiers = Modifiers(one, 2)
    which = modifiers.one(("a", "b", "c", "d"))
    type_ = modifiers.last()
    if type_ not in ELEMENTS or not which:
        modifiers.left.append(type_)
        modifiers.unknown()
    rows, columns, depth = _shape(modifiers)
    extents = {"a": (rows, depth), "b": (depth, columns)}.get(which, (rows, columns))
    by_rows = modifiers.one(("row", "col")) == "row"
    space = space_of(modifiers)
    modifiers.end()
    d.code.unit = min(d.code.unit, np.dtype(ELEMENTS[type_]).itemsize)
    default = str(extents[by_rows])
    stride = d.read(one.operands[2], "u32", one) if len(one.operands) > 2 else None
    return extents, type_, space, by_rows, stride or (lambda m: np.full(m.lanes, int(default), np.uint32))


def _places(m: Wave, address: Any, slot: int, slots: int, moved: tuple[Any, ...]) -> np.ndarray:
    """Where in memory each lane has its element of a slot."""
    (rows, columns), type_, _, by_rows, stride = moved
    row, column = np.divmod((m.lane.astype(np.int64) * slots + slot) % (rows * columns), columns)
    slow, fast = (row, column) if by_rows else (column, row)
    size = np.dtype(ELEMENTS[type_]).itemsize
    return address(m) + ((slow * stride(m) + fast) * size).astype(np.uint64)


def _load(d: Decoder, one: Instruction) -> Step:
    moved = _moved(d, one)
    type_, space = moved[1:3]
    writes = d.writes(one.operands[0], _word(type_), one)
    of_variable, address = d.address(one.operands[1], one)
    size, slots = np.dtype(ELEMENTS[type_]).itemsize, len(writes) * _per(type_)

    def do(m: Wave, g: Group) -> None:
        places = [_places(m, address, slot, slots, moved) for slot in range(slots)]
        parts = [load(m, g, space or of_variable, place, size, one) for place in places]
        words = np.stack(parts, 1).reshape(g.index.size, -1).view(np.uint64 if type_ == "f64" else np.uint32)
        for n, write in enumerate(writes):
            write(m, g, expanded(m, g, np.ascontiguousarray(words[:, n])))
        m.warps_meet(g)

    return Step(do, str(one), members=_whole_warps)


def _store(d: Decoder, one: Instruction) -> Step:
    moved = _moved(d, one)
    type_, space = moved[1:3]
    of_variable, address = d.address(one.operands[0], one)
    reads = d.reads(one.operands[1], _word(type_), one)
    slots = len(reads) * _per(type_)

    def do(m: Wave, g: Group) -> None:
        words = np.stack([read(m)[g.index] for read in reads], axis=1)
        elements = np.ascontiguousarray(words).view(ELEMENTS[type_])
        for slot in range(slots):
            bytes_ = np.ascontiguousarray(elements[:, slot : slot + 1]).view(np.uint8)
            store(m, g, space or of_variable, _places(m, address, slot, slots, moved), bytes_, one)
        m.warps_meet(g)

    return Step(do, str(one), members=_whole_warps)


def _mma(d: Decoder, one: Instruction) -> Step:
    modifiers = Modifiers(one, 2)
    rows, columns, depth = _shape(modifiers)
    saturates = modifiers.has("satfinite")
    for _ in range(2):  # where a and b lay: here their elements are in one order
        if not modifiers.one(("row", "col")):
            modifiers.unknown()
    modifiers.has("rn")
    types, modifiers.left = modifiers.left, []
    result, first = types[0], types[-1]
    left, right = types[1:3] if len(types) == 4 else ("f16", "f16")
    if len(types) not in (2, 4) or not {*types} <= set(ELEMENTS):
        modifiers.left = types
        modifiers.unknown()
    a, b, c = (d.reads(o, _word(t), one) for o, t in zip(one.operands[1:4], (left, right, first)))
    writes = d.writes(one.operands[0], _word(result), one)

    def matrix(m: Wave, g: Group, reads: list[Any], type_: str, extents: tuple[int, int]) -> np.ndarray:
        words = np.stack([read(m)[g.index] for read in reads], axis=1)
        elements = np.ascontiguousarray(words).view(ELEMENTS[type_]).reshape(g.index.size // _LANES, -1)
        return elements[:, : extents[0] * extents[1]].reshape(-1, *extents)

    def do(m: Wave, g: Group) -> None:
        x = wide(matrix(m, g, a, left, (rows, depth)), left)
        y = wide(matrix(m, g, b, right, (depth, columns)), right)
        total = x @ y + matrix(m, g, c, first, (rows, columns)).astype(x.dtype)
        if saturates and total.dtype == np.int64:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        found = np.ascontiguousarray(total.astype(ELEMENTS[result]).reshape(g.index.size, -1))
        words = found.view(np.uint64 if result == "f64" else np.uint32)
        for n, write in enumerate(writes):
            write(m, g, expanded(m, g, np.ascontiguousarray(words[:, n])))
        m.warps_meet(g)

    return Step(do, str(one), members=_whole_warps)


def _wmma(d: Decoder, one: Instruction) -> Step:
    return {"load": _load, "store": _store, "mma": _mma}[one.parts[1]](d, one)


OPS = {"wmma": _wmma}
