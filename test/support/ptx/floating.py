"""Arithmetic of floats, with PTX's roundings, its canonical NaN and `.ftz`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from support.ptx.decode import DTYPES, PACKED, Decoder, Do, Modifiers, Read
from support.ptx.machine import Group, Wave
from support.ptx.syntax import Instruction

FLOATS = ("f16", "bf16", "f32", "f64", "f16x2", "bf16x2")
_NAN = {
    "f16": np.uint16(0x7FFF),
    "bf16": np.uint16(0x7FFF),
    "f32": np.uint32(0x7FFFFFFF),
    "f64": np.uint64(0xFFF8000000000000),
}
_WORD = {2: np.uint16, 4: np.uint32, 8: np.uint64}
_ROUNDINGS = ("rn", "rz", "rm", "rp")
_SIGN = {2: np.uint16(0x8000), 4: np.uint32(0x80000000), 8: np.uint64(1 << 63)}


def is_float(one: Instruction) -> bool:
    return one.parts[-1] in FLOATS


def canonical(value: np.ndarray, type_: str) -> np.ndarray:
    """With the one NaN that arithmetic gives."""
    odd = np.isnan(value)
    if odd.any():
        word = _WORD[value.dtype.itemsize]
        nan = np.uint64(0x7FF8000000000000) if type_ == "f64" else _NAN[type_.removesuffix("x2")]
        value = np.where(odd, nan, value.view(word)).view(value.dtype)
    return value


def flushed(value: np.ndarray) -> np.ndarray:
    """Subnormal numbers become zeros of their sign."""
    small = np.abs(value) < np.finfo(np.float32).tiny
    return np.where(small, np.copysign(np.float32(0), value), value) if small.any() else value


def finished(value: np.ndarray, type_: str, ftz: bool, sat: bool, relu: bool) -> np.ndarray:
    """A result as an instruction with these modifiers writes it."""
    dtype = DTYPES[type_]
    if ftz and type_ == "f32":
        value = flushed(value)
    if sat:
        within = np.clip(value, dtype.type(0), dtype.type(1))
        value = np.where(np.isnan(value), dtype.type(0), within).astype(dtype)
    if relu:
        value = np.where(value < 0, dtype.type(0), value).astype(dtype)
    return canonical(value, type_)


def next_to(value: np.ndarray, up: np.ndarray | bool) -> np.ndarray:
    """The next float above or below, zeros of a sign of their own left out."""
    return np.nextafter(value, np.where(up, np.inf, -np.inf).astype(value.dtype))


def narrowed(
    wide: np.ndarray, dtype: Any, rounding: str = "rn", left: np.ndarray | None = None
) -> np.ndarray:
    """f64 -> a narrower float; `left` is what `wide` lacks of the exact value, much smaller than it."""
    if left is not None and dtype != np.float64:
        wide, left = odd(wide, left), None
    narrow = wide.astype(dtype)
    if rounding == "rn":
        return narrow
    back = narrow.astype(np.float64)
    rest = wide - back if left is None else left
    finite = np.isfinite(wide)
    over = np.where(finite, (back > wide) if left is None else left < 0, False)
    under = np.where(finite, (back < wide) if left is None else rest > 0, False)
    if rounding == "rz":
        move_down, move_up = over & (wide > 0), under & (wide < 0)
    elif rounding == "rm":
        move_down, move_up = over, np.zeros_like(under)
    else:
        move_down, move_up = np.zeros_like(over), under
    if dtype in (np.float16, ml_dtypes.bfloat16):
        return _stepped(narrow, move_down, move_up)
    return np.where(
        move_down, next_to(narrow, False), np.where(move_up, next_to(narrow, True), narrow)
    )


def _stepped(narrow: np.ndarray, down: np.ndarray, up: np.ndarray) -> np.ndarray:
    """The neighbours of 16-bit floats, by their bits."""
    word = narrow.view(np.uint16)
    negative = word >= 0x8000
    inward = (down & ~negative) | (up & negative)
    outward = (down & negative) | (up & ~negative)
    return (
        np.where(inward, word - 1, np.where(outward, word + 1, word))
        .astype(np.uint16)
        .view(narrow.dtype)
    )


def odd(wide: np.ndarray, left: np.ndarray) -> np.ndarray:
    """`wide` + `left` rounded to odd, so that a later rounding to fewer bits is right."""
    bits = wide.view(np.int64)
    change = (left != 0) & ((bits & 1) == 0) & np.isfinite(wide) & np.isfinite(left)
    if not change.any():
        return wide
    away = (left > 0) == (wide > 0)
    return np.where(change, np.where(away, bits + 1, bits - 1), bits).view(np.float64)


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A sum and what rounding took from it."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def fma64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of f64, rounded once."""
    found = a * b + c
    normal = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    for n in np.flatnonzero(normal):
        try:
            found[n] = math.fma(a[n], b[n], c[n])
        except OverflowError:
            found[n] = (
                math.copysign(math.inf, a[n]) * math.copysign(1, b[n])
                if np.isinf(a[n] * b[n])
                else np.copysign(np.inf, c[n])
            )
    return found


def _operate(name: str, dtype: Any, rounding: str) -> Callable[..., np.ndarray]:
    """add, sub, mul, fma for one type."""
    if dtype == np.float64:
        if rounding not in ("", "rn"):
            return _directed64(name, rounding)
        return {"add": np.add, "sub": np.subtract, "mul": np.multiply, "fma": fma64}[name]
    if rounding in ("", "rn") and name != "fma":
        function = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name]
        if dtype == np.float32:
            return function
        return lambda a, b: function(a.astype(np.float32), b.astype(np.float32)).astype(dtype)

    def operate(*values: np.ndarray) -> np.ndarray:
        a, b, *more = (v.astype(np.float64) for v in values)
        if name == "mul":
            return narrowed(a * b, dtype, rounding or "rn")
        if name == "sub":
            b = -b
        total, left = two_sum(a * b, more[0]) if name == "fma" else two_sum(a, b)
        return narrowed(total, dtype, rounding or "rn", np.where(np.isfinite(total), left, 0.0))

    return operate


def _directed64(name: str, rounding: str) -> Callable[..., np.ndarray]:
    def operate(*values: np.ndarray) -> np.ndarray:
        a, b, *more = values
        if name == "sub":
            b = -b
        if name in ("add", "sub"):
            total, left = two_sum(a, b)
        else:
            total = a * b if name == "mul" else fma64(a, b, more[0])
            left = fma64(a, b, -total) if name == "mul" else _rest(a, b, more[0], total)
        left = np.where(np.isfinite(total), left, 0.0)
        over, under = left < 0, left > 0
        if rounding == "rz":
            over, under = over & (total > 0), under & (total < 0)
        down = over if rounding in ("rz", "rm") else np.zeros_like(over)
        up = under if rounding in ("rz", "rp") else np.zeros_like(under)
        return np.where(down, next_to(total, False), np.where(up, next_to(total, True), total))

    return operate


def _rest(a: np.ndarray, b: np.ndarray, c: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The sign of a * b + c - total is that of the result."""
    product = a * b
    error = fma64(a, b, -product)
    first, second = two_sum(product, c)
    return (first - total) + (second + error)


def _float_reads(d: Decoder, one: Instruction, type_: str, ftz: bool, first: int = 1) -> list[Read]:
    reads = [d.read(o, type_, one) for o in one.operands[first:]]
    if ftz and type_ == "f32":
        return [lambda m, read=read: flushed(read(m)) for read in reads]  # type: ignore[misc]
    return reads


def _finish(d: Decoder, one: Instruction, type_: str, reads: list[Read], function: Callable[..., np.ndarray],
            ftz: bool = False, sat: bool = False, relu: bool = False) -> Do:  # fmt: skip
    write = d.write(one.operands[0], type_, one)
    dtype = DTYPES[type_]

    def do(m: Wave, g: Group) -> None:
        value = np.asarray(function(*(read(m) for read in reads)), dtype)
        write(m, g, finished(value, type_, ftz, sat, relu))

    return do


def arithmetic(d: Decoder, one: Instruction) -> Do:
    """add, sub, mul."""
    modifiers = Modifiers(one)
    type_ = modifiers.type(FLOATS)
    rounding, ftz, sat = modifiers.one(_ROUNDINGS), modifiers.has("ftz"), modifiers.has("sat")
    modifiers.end()
    return _finish(
        d,
        one,
        type_,
        _float_reads(d, one, type_, ftz),
        _operate(one.parts[0], DTYPES[type_], rounding),
        ftz,
        sat,
    )


def fused(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(FLOATS)
    rounding, ftz, sat = modifiers.one(_ROUNDINGS), modifiers.has("ftz"), modifiers.has("sat")
    relu = modifiers.has("relu")
    modifiers.end()
    return _finish(
        d,
        one,
        type_,
        _float_reads(d, one, type_, ftz),
        _operate("fma", DTYPES[type_], rounding),
        ftz,
        sat,
        relu,
    )


def _quotient(a: np.ndarray, b: np.ndarray, dtype: Any, rounding: str) -> np.ndarray:
    if rounding in ("", "rn"):
        return a / b
    found = a / b
    wide = found.astype(np.float64)
    left = fma64(-wide, b.astype(np.float64), a.astype(np.float64)) * np.copysign(1.0, b)
    down = {"rz": (left < 0) & (wide > 0), "rm": left < 0}.get(rounding, left != left)
    up = {"rz": (left > 0) & (wide < 0), "rp": left > 0}.get(rounding, left != left)
    finite = np.isfinite(found)
    return np.where(
        down & finite, next_to(found, False), np.where(up & finite, next_to(found, True), found)
    ).astype(dtype)


def division(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("f32", "f64"))
    rounding, ftz = modifiers.one((*_ROUNDINGS, "approx", "full"), "rn"), modifiers.has("ftz")
    modifiers.end()
    exact = "rn" if rounding in ("approx", "full") else rounding
    dtype = DTYPES[type_]
    return _finish(
        d,
        one,
        type_,
        _float_reads(d, one, type_, ftz),
        lambda a, b: _quotient(a, b, dtype, exact),
        ftz,
    )


def smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of a number and a NaN the number, of zeros the negative one."""
    word = _WORD[a.dtype.itemsize]
    found = np.where((a < b) | np.isnan(b), a, b)
    return np.where(a == b, a.view(word) | b.view(word), found.view(word)).view(a.dtype)


def larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of a number and a NaN the number, of zeros the positive one."""
    word = _WORD[a.dtype.itemsize]
    found = np.where((a > b) | np.isnan(b), a, b)
    return np.where(a == b, a.view(word) & b.view(word), found.view(word)).view(a.dtype)


def min_or_max(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(FLOATS)
    ftz, nan, by_size = modifiers.has("ftz"), modifiers.has("NaN"), modifiers.has("xorsign")
    absolute = modifiers.has("abs")
    modifiers.end()
    choose = smaller if one.parts[0] == "min" else larger

    def two(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        sign = None
        if by_size:
            word = _WORD[a.dtype.itemsize]
            sign = (a.view(word) ^ b.view(word)) & _SIGN[a.dtype.itemsize]
        if absolute:
            a, b = np.abs(a), np.abs(b)
        found = choose(a, b)
        if nan:
            found = np.where(np.isnan(a), a, np.where(np.isnan(b), b, found))
        return found if sign is None else (found.view(sign.dtype) | sign).view(a.dtype)

    def several(*values: np.ndarray) -> np.ndarray:
        found = values[0]
        for value in values[1:]:
            found = two(found, value)
        return found

    return _finish(d, one, type_, _float_reads(d, one, type_, ftz), several, ftz)


def sign(d: Decoder, one: Instruction) -> Do:
    """abs and neg."""
    modifiers = Modifiers(one)
    type_ = modifiers.type(FLOATS)
    ftz = modifiers.has("ftz")
    modifiers.end()
    read = _float_reads(d, one, type_, ftz)[0]
    write = d.write(one.operands[0], type_, one)
    absolute = one.parts[0] == "abs"

    def do(m: Wave, g: Group) -> None:
        value = read(m)
        word = _WORD[value.dtype.itemsize]
        bit = _SIGN[value.dtype.itemsize]
        bits = value.view(word)
        write(m, g, (bits & ~bit if absolute else bits ^ bit).view(value.dtype))

    return do


def _copysign(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("f32", "f64"))
    modifiers.end()
    reads = [d.read(o, type_, one) for o in one.operands[1:]]
    write = d.write(one.operands[0], type_, one)

    def do(m: Wave, g: Group) -> None:
        write(m, g, np.copysign(reads[1](m), reads[0](m)))

    return do


def _wide(function: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda a: function(a.astype(np.float64))


def _short(a: np.ndarray) -> np.ndarray:
    """The upper half of f64, as `rcp.approx.ftz.f64` takes and gives."""
    return (a.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)


_APPROXIMATE: dict[str, Callable[[Any], Any]] = {
    "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "rsqrt": lambda a: 1 / np.sqrt(a),
    "rcp": lambda a: 1 / a, "sqrt": np.sqrt,
}  # fmt: skip


def _function(d: Decoder, one: Instruction) -> Do:
    head = one.parts[0]
    modifiers = Modifiers(one)
    type_ = modifiers.type(FLOATS)
    how, ftz = modifiers.one((*_ROUNDINGS, "approx")), modifiers.has("ftz")
    modifiers.end()
    if not how or (how != "approx" and head not in ("rcp", "sqrt")):
        modifiers.unknown()
    function = _APPROXIMATE[head]
    reads = _float_reads(d, one, type_, ftz)
    dtype = DTYPES[type_]
    if how == "approx":
        if type_ == "f64" and ftz:
            return _finish(d, one, type_, reads, lambda a: _short(function(_short(a))))
        return _finish(d, one, type_, reads, _wide(function), ftz)
    if head == "rcp":
        return _finish(
            d, one, type_, reads, lambda a: _quotient(np.ones_like(a), a, dtype, how), ftz
        )
    if how == "rn":
        return _finish(d, one, type_, reads, np.sqrt, ftz)

    def root(a: np.ndarray) -> np.ndarray:
        found = np.sqrt(a)
        wide = found.astype(np.float64)
        left = fma64(-wide, wide, a.astype(np.float64))
        down, up = (left < 0) & (how != "rp"), (left > 0) & (how == "rp")
        return np.where(down, next_to(found, False), np.where(up, next_to(found, True), found))

    return _finish(d, one, type_, reads, root, ftz)


def _test(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type(("f32", "f64"))
    kind = modifiers.one(("finite", "infinite", "number", "notanumber", "normal", "subnormal"))
    modifiers.end()
    read = d.read(one.operands[1], type_, one)
    write = d.write(one.operands[0], "pred", one)
    tiny = np.finfo(DTYPES[type_]).tiny
    tests: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "finite": np.isfinite, "infinite": np.isinf, "number": lambda a: ~np.isnan(a), "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= tiny), "subnormal": lambda a: (a != 0) & (np.abs(a) < tiny),
    }  # fmt: skip
    test = tests[kind]
    return lambda m, g: write(m, g, test(read(m)))


OPS = {"fma": fused, "copysign": _copysign, "testp": _test} | dict.fromkeys(_APPROXIMATE, _function)
assert PACKED
