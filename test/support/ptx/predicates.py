"""Comparisons, choices, and logic of predicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.ptx import integer
from support.ptx.decode import DTYPES, PACKED, Decoder, Do, Modifiers
from support.ptx.floating import FLOATS, flushed
from support.ptx.machine import Group, Wave
from support.ptx.syntax import Instruction, Pair

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def _comparison(modifiers: Modifiers, type_: str) -> Callable[[Any, Any], Any]:
    ftz = modifiers.has("ftz")
    kind = modifiers.one((*_COMPARE, *_UNSIGNED, *(f"{k}u" for k in _COMPARE), "num", "nan"))
    if not kind:
        modifiers.unknown()
    kind = _UNSIGNED.get(kind, kind)

    def compare(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if ftz and type_ == "f32":
            a, b = flushed(a), flushed(b)
        if type_ not in FLOATS:
            return _COMPARE[kind](a, b)
        apart = np.isnan(a) | np.isnan(b)
        if kind in ("num", "nan"):
            return apart if kind == "nan" else ~apart
        if kind.endswith("u"):
            return apart | _COMPARE[kind[:-1]](a, b)
        return ~apart & _COMPARE[kind](a, b)

    return compare


def _setp(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type()
    compare = _comparison(modifiers, type_)
    combine = modifiers.one(tuple(_COMBINE))
    modifiers.end()
    out, a, b, *rest = one.operands
    x, y = d.read(a, type_, one), d.read(b, type_, one)
    other = d.read(rest[0], "pred", one) if combine else None
    targets = [out.first, out.second] if isinstance(out, Pair) else [out]
    writes = [d.write(t, "pred", one) for t in targets]
    two = type_ in PACKED

    def do(m: Wave, g: Group) -> None:
        found = compare(x(m), y(m))
        values = [found[::2], found[1::2]] if two else [found, ~found]
        for write, value in zip(writes, values):
            write(
                m, g, np.ascontiguousarray(_COMBINE[combine](value, other(m)) if other else value)
            )

    return do


def _set(d: Decoder, one: Instruction) -> Do:
    """All bits set, or 1.0 of floats, where the comparison holds."""
    modifiers = Modifiers(one)
    type_, to = modifiers.type(), modifiers.type()
    compare = _comparison(modifiers, type_)
    modifiers.end()
    x, y = (d.read(o, type_, one) for o in one.operands[1:])
    write = d.write(one.operands[0], to, one)
    dtype = DTYPES[to]
    if type_ in PACKED and to not in PACKED:  # a mask for each half
        halves = d.write(one.operands[0], "b32", one)
        return lambda m, g: halves(
            m, g, np.where(compare(x(m), y(m)), np.uint16(0xFFFF), np.uint16(0)).view(np.uint32)
        )
    true = np.ones((), dtype) if to in FLOATS else ~np.zeros((), dtype)
    return lambda m, g: write(m, g, np.where(compare(x(m), y(m)), true, np.zeros((), dtype)))


def _selp(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    type_ = modifiers.type()
    modifiers.end()
    a, b = (d.read(o, type_, one) for o in one.operands[1:3])
    p = d.read(one.operands[3], "pred", one)
    write = d.write(one.operands[0], type_, one)
    return lambda m, g: write(m, g, np.where(p(m), a(m), b(m)))


def _slct(d: Decoder, one: Instruction) -> Do:
    modifiers = Modifiers(one)
    by, type_ = modifiers.type(), modifiers.type()
    modifiers.has("ftz")
    modifiers.end()
    a, b = (d.read(o, type_, one) for o in one.operands[1:3])
    c = d.read(one.operands[3], by, one)
    write = d.write(one.operands[0], type_, one)
    return lambda m, g: write(m, g, np.where(c(m) >= 0, a(m), b(m)))


def _logic(name: str) -> Callable[[Decoder, Instruction], Do]:
    """and, or, xor, not: of predicates here, of integers there."""

    def build(d: Decoder, one: Instruction) -> Do:
        if one.parts[-1] != "pred":
            return integer.OPS[name](d, one)
        Modifiers(one, 2).end()
        reads = [d.read(o, "pred", one) for o in one.operands[1:]]
        write = d.write(one.operands[0], "pred", one)
        function = np.logical_not if name == "not" else _COMBINE[name]
        return lambda m, g: write(m, g, function(*(read(m) for read in reads)))

    return build


OPS = {"setp": _setp, "set": _set, "selp": _selp, "slct": _slct} | {
    n: _logic(n) for n in ("and", "or", "xor", "not")
}
