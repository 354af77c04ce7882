"""ldmatrix, stmatrix and mma.sync: what the lanes of a warp hold of matrices."""

from __future__ import annotations

import functools
import re
from typing import Any

import ml_dtypes
import numpy as np

from support.ptx.decode import Decoder, Modifiers
from support.ptx.machine import Group, Step, Wave
from support.ptx.moves import expanded, load, space_of, store
from support.ptx.syntax import Instruction

_WHOLE = np.uint32(0xFFFFFFFF)


def _whole_warps(m: Wave) -> np.ndarray:
    return np.full(m.lanes, _WHOLE)


def _matrices(d: Decoder, one: Instruction) -> tuple[int, bool, str | None]:
    modifiers = Modifiers(one)
    for word in ("sync", "aligned", "m8n8", "b16"):
        if not modifiers.has(word):
            modifiers.unknown()
    count, turned = int(modifiers.one(("x1", "x2", "x4"), "x1")[1:]), modifiers.has("trans")
    space = space_of(modifiers)
    modifiers.end()
    return count, turned, space


def _rows(m: Wave, g: Group, count: int) -> Group:
    """The lanes that give addresses of rows."""
    return g if count == 4 and g.all else Group(g.mask & (m.lane < 8 * count))


def _ldmatrix(d: Decoder, one: Instruction) -> Step:
    count, turned, space = _matrices(d, one)
    writes = d.writes(one.operands[0], "b32", one)
    _, address = d.address(one.operands[1], one)

    def do(m: Wave, g: Group) -> None:
        bytes_ = load(m, _rows(m, g, count), space, address(m), 16, one)
        rows = bytes_.view(np.uint16).reshape(-1, count, 8, 8)
        if turned:
            rows = rows.swapaxes(2, 3)
        words = np.ascontiguousarray(rows).view(np.uint32).reshape(-1, count, 32)
        for n, write in enumerate(writes):
            write(m, g, expanded(m, g, np.ascontiguousarray(words[:, n]).reshape(-1)))
        m.warps_meet(g)

    return Step(do, str(one), members=_whole_warps)


def _stmatrix(d: Decoder, one: Instruction) -> Step:
    count, turned, space = _matrices(d, one)
    _, address = d.address(one.operands[0], one)
    reads = d.reads(one.operands[1], "b32", one)

    def do(m: Wave, g: Group) -> None:
        words = np.stack([read(m)[g.index].reshape(-1, 32) for read in reads], axis=1)
        rows = np.ascontiguousarray(words).view(np.uint16).reshape(-1, count, 8, 8)
        if turned:
            rows = rows.swapaxes(2, 3)
        bytes_ = np.ascontiguousarray(rows).view(np.uint8).reshape(-1, 16)
        store(m, _rows(m, g, count), space, address(m), bytes_, one)
        m.warps_meet(g)

    return Step(do, str(one), members=_whole_warps)


# ---- fragments -----------------------------------------------------------------------------------
@functools.cache
def left_places(rows: int, depth: int, per: int) -> np.ndarray:
    """Where the elements of the left operand lie in the matrix, by lane, register and place in it."""
    halves = rows // 8
    lane, register, part = np.indices((32, halves * depth // (4 * per), per))
    row = lane // 4 + 8 * (register % halves)
    column = register // halves * 4 * per + lane % 4 * per + part
    return (row * depth + column).reshape(-1)


@functools.cache
def right_places(depth: int, per: int) -> np.ndarray:
    """The same of the right one, which has 8 columns."""
    lane, register, part = np.indices((32, depth // (4 * per), per))
    return ((register * 4 * per + lane % 4 * per + part) * 8 + lane // 4).reshape(-1)


@functools.cache
def sum_places(rows: int, columns: int = 8) -> np.ndarray:
    """The same of sums, of which lanes have pairs."""
    lane, block, half, part = np.indices((32, columns // 8, rows // 8, 2))
    return ((lane // 4 + 8 * half) * columns + 8 * block + lane % 4 * 2 + part).reshape(-1)


@functools.cache
def inverse(kind: Any, *arguments: int) -> np.ndarray:
    """Which element of the fragments a place of the matrix has."""
    return np.argsort(kind(*arguments))


ELEMENTS: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "f64": np.float64,
    "s32": np.int32, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip


def wide(values: np.ndarray, type_: str) -> np.ndarray:
    """Elements as they are multiplied: f64, or int64 of integers."""
    if type_ == "tf32":  # the low bits are not looked at
        values = (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return values.astype(np.int64 if type_ in ("s8", "u8") else np.float64)


def _mma(d: Decoder, one: Instruction) -> Step:
    modifiers = Modifiers(one)
    types = [modifiers.last() for _ in range(4)][::-1]
    result, left, right, first = types
    shape = next((p for p in modifiers.left if re.fullmatch(r"m\d+n\d+k\d+", p)), "")
    if not shape or not set(types) <= set(ELEMENTS):
        modifiers.left += types
        modifiers.unknown()
    modifiers.left.remove(shape)
    rows, columns, depth = (int(n) for n in re.findall(r"\d+", shape))
    for word in ("sync", "aligned", "row", "col"):
        if not modifiers.has(word):
            modifiers.unknown()
    saturates = modifiers.has("satfinite")
    modifiers.end()
    if columns != 8 or rows not in (8, 16) or (rows == 8 and left == "f16"):
        modifiers.left = [shape]
        modifiers.unknown()
    word = "b64" if left == "f64" else "b32"
    per = (8 if left == "f64" else 4) // np.dtype(ELEMENTS[left]).itemsize
    sum_word = "b64" if result == "f64" else "b32"
    a, b = (d.reads(o, word, one) for o in one.operands[1:3])
    c = d.reads(one.operands[3], "b64" if first == "f64" else "b32", one)
    writes = d.writes(one.operands[0], sum_word, one)
    left_inverse, right_inverse = (
        inverse(left_places, rows, depth, per),
        inverse(right_places, depth, per),
    )
    places, back = sum_places(rows), inverse(sum_places, rows)

    def gathered(m: Wave, g: Group, reads: list[Any], type_: str, order: np.ndarray) -> np.ndarray:
        words = np.stack([read(m) if g.all else read(m)[g.index] for read in reads], axis=1)
        return words.view(ELEMENTS[type_]).reshape(-1, order.size)[:, order]

    def do(m: Wave, g: Group) -> None:
        x = wide(gathered(m, g, a, left, left_inverse), left).reshape(-1, rows, depth)
        y = wide(gathered(m, g, b, right, right_inverse), right).reshape(-1, depth, 8)
        z = gathered(m, g, c, first, back).astype(x.dtype).reshape(-1, rows, 8)
        total = x @ y + z
        if saturates and total.dtype == np.int64:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        found = total.astype(ELEMENTS[result]).reshape(-1, rows * 8)[:, places]
        words = found.reshape(g.index.size, -1).view(np.uint64 if sum_word == "b64" else np.uint32)
        for n, write in enumerate(writes):
            write(m, g, expanded(m, g, np.ascontiguousarray(words[:, n])))
        m.warps_meet(g)

    return Step(do, str(one), members=_whole_warps)


def _movmatrix(d: Decoder, one: Instruction) -> Step:
    modifiers = Modifiers(one)
    for word in ("sync", "aligned", "m8n8", "trans", "b16"):
        if not modifiers.has(word):
            modifiers.unknown()
    modifiers.end()
    read, write = d.read(one.operands[1], "b32", one), d.write(one.operands[0], "b32", one)

    def do(m: Wave, g: Group) -> None:
        turned = read(m).view(np.uint16).reshape(-1, 8, 8).swapaxes(1, 2)
        write(m, g, np.ascontiguousarray(turned).reshape(-1).view(np.uint32))

    return Step(do, str(one), members=_whole_warps)


OPS = {"ldmatrix": _ldmatrix, "stmatrix": _stmatrix, "mma": _mma, "movmatrix": _movmatrix}
