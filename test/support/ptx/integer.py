"""Arithmetic and logic of integers, carries among it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.ptx import floating
from support.ptx.decode import DTYPES, Decoder, Do, Modifiers
from support.ptx.machine import Group, Wave
from support.ptx.syntax import Instruction

_WIDE = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
_INTEGERS = {t for t in DTYPES if t[0] in "us"}


def _apply(
    d: Decoder, one: Instruction, types: list[str], result: str, function: Callable[..., np.ndarray]
) -> Do:
    reads = [d.read(o, t, one) for o, t in zip(one.operands[1:], types, strict=True)]
    write = d.write(one.operands[0], result, one)

    def do(m: Wave, g: Group) -> None:
        write(m, g, function(*(read(m) for read in reads)))

    return do


def high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of a product."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        wide = np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(bits)).astype(a.dtype)
    x, y = a.view(np.uint64), b.view(np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + (x0 * y0 >> half)
    other = x0 * y1 + (middle & low)
    found = x1 * y1 + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        found = found - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return found.view(a.dtype)


def _saturated(function: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        info = np.iinfo(a.dtype)
        return np.clip(function(a.astype(np.int64), b.astype(np.int64)), info.min, info.max).astype(
            a.dtype
        )

    return add


def _add_or_sub(d: Decoder, one: Instruction) -> Do:
    if floating.is_float(one):
        return floating.arithmetic(d, one)
    function = {"add": np.add, "sub": np.subtract}[one.parts[0]]
    modifiers = Modifiers(one)
    type_ = modifiers.last()
    carry = modifiers.has("cc")
    saturates = modifiers.has("sat")
    modifiers.end()
    if carry:
        return _with_carry(d, one, type_, True)
    if type_ not in _INTEGERS:
        modifiers.unknown()
    return _apply(d, one, [type_] * 2, type_, _saturated(function) if saturates else function)


def _with_carry(d: Decoder, one: Instruction, type_: str, sets: bool) -> Do:
    """add, addc, sub, subc, mad.lo, madc with the carry that they give or take."""
    head = one.parts[0]
    takes = head.endswith("c")
    unsigned = "u" + type_[1:]
    reads = [d.read(o, unsigned, one) for o in one.operands[1:]]
    signed = [d.read(o, type_, one) for o in one.operands[1:]]
    write = d.write(one.operands[0], unsigned, one)
    minus, product = head.startswith("sub"), head.startswith("mad")
    upper = "hi" in one.parts

    def do(m: Wave, g: Group) -> None:
        values = [read(m) for read in reads]
        if product:
            if upper:
                first = high(signed[0](m), signed[1](m)).view(values[0].dtype)
            else:
                first = values[0] * values[1]
            values = [first, values[2]]
        a, b = values
        c = m.carry.astype(a.dtype) if takes else np.zeros_like(a)
        if minus:
            result = a - b - c
            out = (a < b) | ((a == b) & (c > 0))
        else:
            result = a + b + c
            out = (result < a) | ((result == a) & ((b > 0) | (c > 0)) & (b + c == 0))
        if sets:
            m.carry = np.where(g.mask, out, m.carry)
        write(m, g, result)

    return do


def _carrying(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type()
    sets = modifiers.has("cc")
    modifiers.has("lo", "hi")
    modifiers.end()
    return _with_carry(d, one, type_, sets)


def _mul(d: Decoder, one: Instruction) -> Do:
    if floating.is_float(one):
        return floating.arithmetic(d, one)
    modifiers = Modifiers(one)
    type_ = modifiers.type(_INTEGERS)
    kind = modifiers.one(("lo", "hi", "wide"))
    modifiers.end()
    if kind == "wide":
        wide = DTYPES[_WIDE[type_]]
        return _apply(
            d, one, [type_] * 2, _WIDE[type_], lambda a, b: a.astype(wide) * b.astype(wide)
        )
    return _apply(d, one, [type_] * 2, type_, high if kind == "hi" else np.multiply)


def _mad(d: Decoder, one: Instruction) -> Do:
    if floating.is_float(one):
        return floating.fused(d, one)
    modifiers = Modifiers(one)
    type_ = modifiers.type(_INTEGERS)
    kind = modifiers.one(("lo", "hi", "wide"))
    carry = modifiers.has("cc")
    saturates = modifiers.has("sat")
    modifiers.end()
    if carry:
        return _with_carry(d, one, type_, True)
    if saturates:
        modifiers.unknown()
    if kind == "wide":
        wide = DTYPES[_WIDE[type_]]
        return _apply(
            d,
            one,
            [type_, type_, _WIDE[type_]],
            _WIDE[type_],
            lambda a, b, c: a.astype(wide) * b.astype(wide) + c,
        )
    product = high if kind == "hi" else np.multiply
    return _apply(d, one, [type_] * 3, type_, lambda a, b, c: product(a, b) + c)


def _mul24(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("s32", "u32"))
    if modifiers.one(("lo", "hi")) != "lo":
        modifiers.unknown()
    modifiers.end()
    shift = np.array(8, DTYPES[type_])

    def low(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return ((a << shift) >> shift) * ((b << shift) >> shift)

    return _apply(d, one, [type_] * 2, type_, low)


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Towards zero; by zero all bits are set."""
    if a.dtype.kind == "u":
        return np.where(b == 0, ~a.dtype.type(0), a // np.where(b == 0, a.dtype.type(1), b))
    safe = np.where(b == 0, a.dtype.type(1), b)
    quotient = a // safe
    found = quotient + ((a % safe != 0) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, a.dtype.type(-1), found).astype(a.dtype)


def _div(d: Decoder, one: Instruction) -> Do:
    if floating.is_float(one):
        return floating.division(d, one)
    modifiers = Modifiers(one)
    type_ = modifiers.type(_INTEGERS)
    modifiers.end()
    return _apply(d, one, [type_] * 2, type_, divide)


def _rem(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(_INTEGERS)
    modifiers.end()
    return _apply(
        d, one, [type_] * 2, type_, lambda a, b: np.where(b == 0, a, a - divide(a, b) * b)
    )


def _min_or_max(d: Decoder, one: Instruction) -> Do:
    if floating.is_float(one):
        return floating.min_or_max(d, one)
    function = {"min": np.minimum, "max": np.maximum}[one.parts[0]]
    modifiers = Modifiers(one)
    type_ = modifiers.type(_INTEGERS)
    relu = modifiers.has("relu")
    modifiers.end()
    return _apply(d, one, [type_] * len(one.operands[1:]), type_,
                  (lambda a, b: np.maximum(function(a, b), 0)) if relu else function)  # fmt: skip


def _abs_or_neg(d: Decoder, one: Instruction) -> Do:
    if floating.is_float(one):
        return floating.sign(d, one)
    function = {"abs": np.abs, "neg": np.negative}[one.parts[0]]
    modifiers = Modifiers(one)
    type_ = modifiers.type(_INTEGERS)
    modifiers.end()
    return _apply(d, one, [type_], type_, function)


def _logic(function: Callable[..., np.ndarray]) -> Callable[[Decoder, Instruction], Do]:
    def build(d: Decoder, one: Instruction) -> Do:
        modifiers = Modifiers(one)
        type_ = modifiers.type(("b16", "b32", "b64"))
        modifiers.end()
        return _apply(d, one, [type_] * len(one.operands[1:]), type_, function)

    return build


def _cnot(a: np.ndarray) -> np.ndarray:
    return (a == 0).astype(a.dtype)


def shift_left(a: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Amounts beyond the width count as the width."""
    bits = a.dtype.itemsize * 8
    by = np.minimum(n, bits - 1).astype(a.dtype)
    return np.where(n >= bits, a.dtype.type(0), a << by)


def shift_right(a: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The sign's copies come in where the type is signed."""
    bits = a.dtype.itemsize * 8
    found = a >> np.minimum(n, bits - 1).astype(a.dtype)
    return found if a.dtype.kind == "i" else np.where(n >= bits, a.dtype.type(0), found)


def _shift(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type()
    modifiers.end()
    return _apply(
        d, one, [type_, "u32"], type_, shift_left if one.parts[0] == "shl" else shift_right
    )


def _funnel(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    modifiers.type(("b32",))
    side, over = modifiers.one(("l", "r")), modifiers.one(("clamp", "wrap"))
    modifiers.end()

    def shift(low: np.ndarray, upper: np.ndarray, n: np.ndarray) -> np.ndarray:
        by = (n & np.uint32(31) if over == "wrap" else np.minimum(n, np.uint32(32))).astype(
            np.uint64
        )
        both = upper.astype(np.uint64) << np.uint64(32) | low
        if side == "r":
            return (both >> by).astype(np.uint32)
        return (both >> (np.uint64(32) - by)).astype(np.uint32)

    return _apply(d, one, ["b32", "b32", "u32"], "b32", shift)


def _extract(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("u32", "u64", "s32", "s64"))
    modifiers.end()
    bits = 32 if type_.endswith("32") else 64
    unsigned = DTYPES[f"u{bits}"]

    def extract(a: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
        at, count = (start & 255).astype(np.uint32), (length & 255).astype(np.uint32)
        found = shift_right(a.view(unsigned), at)
        mask = shift_left(np.ones_like(found), count) - unsigned.type(1)
        kept = found & mask
        if type_[0] == "s":
            last = np.minimum(at + count - 1, bits - 1)
            negative = (shift_right(a.view(unsigned), last) & unsigned.type(1)) == 1
            kept = np.where(negative & (count > 0), kept | ~mask, kept)
            kept = np.where(
                (at >= bits) & (count > 0),
                np.where(a < 0, ~unsigned.type(0), unsigned.type(0)),
                kept,
            )
        return kept.view(a.dtype)

    return _apply(d, one, [type_, "u32", "u32"], type_, extract)


def _insert(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("b32", "b64"))
    modifiers.end()

    def insert(a: np.ndarray, b: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
        at, count = start & np.uint32(255), length & np.uint32(255)
        mask = shift_left(shift_left(np.ones_like(a), count) - a.dtype.type(1), at)
        return (b & ~mask) | (shift_left(a, at) & mask)

    return _apply(d, one, [type_, type_, "u32", "u32"], type_, insert)


def _bits(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("b32", "b64"))
    modifiers.end()
    width = 8 * DTYPES[type_].itemsize

    def unpacked(a: np.ndarray) -> np.ndarray:
        """The bits of each, the lowest first."""
        return np.unpackbits(a.view(np.uint8).reshape(-1, width // 8), axis=1, bitorder="little")

    if one.parts[0] == "popc":
        return _apply(d, one, [type_], "u32", lambda a: np.bitwise_count(a).astype(np.uint32))
    if one.parts[0] == "clz":

        def clz(a: np.ndarray) -> np.ndarray:
            first = unpacked(a)[:, ::-1].argmax(1)
            return np.where(a == 0, width, first).astype(np.uint32)

        return _apply(d, one, [type_], "u32", clz)
    return _apply(
        d,
        one,
        [type_],
        type_,
        lambda a: np.packbits(unpacked(a)[:, ::-1], axis=1, bitorder="little").view(a.dtype)[:, 0],
    )


def _find(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("u32", "u64", "s32", "s64"))
    amount = modifiers.has("shiftamt")
    modifiers.end()
    width = 8 * DTYPES[type_].itemsize

    def find(a: np.ndarray) -> np.ndarray:
        b = np.where(a < 0, ~a, a).view(f"u{width // 8}")
        planes = np.unpackbits(b.view(np.uint8).reshape(-1, width // 8), axis=1, bitorder="little")
        at = width - 1 - planes[:, ::-1].argmax(1)
        found = width - 1 - at if amount else at
        return np.where(b == 0, 0xFFFFFFFF, found).astype(np.uint32)

    return _apply(d, one, [type_], "u32", find)


def _lookup(d: Decoder, one: Instruction) -> Do:
    """Any function of three bits: eight bits say what it gives."""
    modifiers = Modifiers(one)
    modifiers.type(("b32",))
    modifiers.end()
    table = int(one.operands[4].text, 0)  # type: ignore[union-attr]

    def look(a: np.ndarray, b: np.ndarray, c: np.ndarray, _: np.ndarray) -> np.ndarray:
        found = np.zeros_like(a)
        for n in range(8):
            if table >> n & 1:
                found |= (a if n & 4 else ~a) & (b if n & 2 else ~b) & (c if n & 1 else ~c)
        return found

    return _apply(d, one, ["b32"] * 3 + ["u32"], "b32", look)


def _permute(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    modifiers.type(("b32",))
    mode = modifiers.one(("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"))
    modifiers.end()
    if mode:
        modifiers.left.append(mode)
        modifiers.unknown()

    def permute(a: np.ndarray, b: np.ndarray, by: np.ndarray) -> np.ndarray:
        bytes_ = np.stack([a, b], 1).view(np.uint8)
        found = np.zeros((a.size, 4), np.uint8)
        for n in range(4):
            chosen = by >> np.uint32(4 * n) & np.uint32(15)
            value = np.take_along_axis(
                bytes_, (chosen & np.uint32(7)).astype(np.int64)[:, None], 1
            )[:, 0]
            found[:, n] = np.where(chosen & np.uint32(8), np.where(value >> 7, 255, 0), value)
        return found.view(np.uint32)[:, 0]

    return _apply(d, one, ["b32", "b32", "u32"], "b32", permute)


def _dot(d: Decoder, one: Instruction) -> Do:
    """dp4a: four products of bytes and a sum."""
    modifiers = Modifiers(one)
    right, left = modifiers.type(("u32", "s32")), modifiers.type(("u32", "s32"))
    modifiers.end()

    def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        x = a.view(np.int8 if left == "s32" else np.uint8).reshape(-1, 4).astype(np.int64)
        y = b.view(np.int8 if right == "s32" else np.uint8).reshape(-1, 4).astype(np.int64)
        return (c + (x * y).sum(1)).astype(np.uint32)

    return _apply(d, one, ["b32", "b32", "u32"], "u32", dot)


def _mask(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    modifiers.type(("b32",))
    wraps = modifiers.one(("clamp", "wrap")) == "wrap"
    modifiers.end()

    def mask(start: np.ndarray, length: np.ndarray) -> np.ndarray:
        at, count = (start & np.uint32(31), length & np.uint32(31)) if wraps else (start, length)
        return shift_left(shift_left(np.ones_like(at), count) - np.uint32(1), at)

    return _apply(d, one, ["u32", "u32"], "b32", mask)


def _sad(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(_INTEGERS)
    modifiers.end()
    return _apply(d, one, [type_] * 3, type_, lambda a, b, c: np.where(a < b, b - a, a - b) + c)


OPS = {
    "add": _add_or_sub, "sub": _add_or_sub, "addc": _carrying, "subc": _carrying, "madc": _carrying, "mul": _mul,
    "mad": _mad, "mul24": _mul24, "div": _div, "rem": _rem, "min": _min_or_max, "max": _min_or_max,
    "abs": _abs_or_neg, "neg": _abs_or_neg, "and": _logic(np.bitwise_and), "or": _logic(np.bitwise_or),
    "xor": _logic(np.bitwise_xor), "not": _logic(np.invert), "cnot": _logic(_cnot), "shl": _shift, "shr": _shift,
    "shf": _funnel, "bfe": _extract, "bfi": _insert, "popc": _bits, "clz": _bits, "brev": _bits, "bfind": _find,
    "lop3": _lookup, "prmt": _permute, "dp4a": _dot, "sad": _sad, "bmsk": _mask,
}  # fmt: skip
