"""A look at a program's text before MLIR's parser sees it, which a text can bring down.

The parser calls itself for each bracket in another, until the process has no stack; and what is written
once under a name (`#a1 = [#a0, #a0]`) is written out wherever the name stands. `look_over` counts
both in one pass over the text, and refuses what is beyond the limits; numbers of dimensions that
the parser would make room for; and data at the text's end whose alignment no memory has.
"""

from __future__ import annotations

import re

import numpy as np

from lamina.dialects.limits import Limits
from lamina.dialects.parse_error import ParseError, excerpt_at, place_of

_MOST_WRITTEN_OUT = 64 << 20
"""Characters that aliases in one another may stand for."""
_MOST_GROWTH = 16
"""How many times as long as it is a text may be, beside that, with all aliases written out."""
_DEPTH_OF_LOCATIONS = 4
"""How many times as deep locations may be, in which each frame of a call stack holds the next."""
_MOST_SIGNS = 1000
"""Minus signs before an affine expression, which are brackets to the parser."""

# What holds brackets that open nothing: strings, comments, arrows, comparisons.
# (Of a string that is not closed the parser reads no further, and nor does this on its line.)
_NO_BRACKETS = re.compile(rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|//[^\n]*|->|[<>]=')
# A convolution's: `[b, f, 0, 1]`.
_LAYOUT = re.compile(rb"\[[\s,?\w]*\b[bfio]\b[\s,?\w]*\]")
# Data at a text's end: `{-# dialect_resources: {builtin: {w: "0x04000000..."}} #-}`, its alignment first.
_RESOURCES = re.compile(rb"\{-#\s*dialect_resources\b.*", re.DOTALL)
_ALIGNMENT = re.compile(rb':\s*"0x([0-9A-Fa-f]{8})')
_MOST_ALIGNED = 1 << 16
_LARGE = re.compile(rb"\b\d\w{3,}")
_ALIAS = re.compile(rb"^[ \t]*([#!][A-Za-z_$][\w.$-]*)[ \t]*=", re.MULTILINE)
_NAME = re.compile(rb"[#!][A-Za-z_$][\w.$-]*")
_OPENING, _CLOSING = b"([{<", b")]}>"
_OPENING_ONES, _CLOSING_ONES = (b"(", b"[", b"{", b"<"), (b")", b"]", b"}", b">")
_OTHERS = bytes(sorted(set(range(256)) - set(_OPENING + _CLOSING)))
_STEPS = np.zeros(256, np.int8)
_STEPS[list(_OPENING)], _STEPS[list(_CLOSING)] = 1, -1


def look_over(text: str, name: str, limits: Limits) -> None:
    """Raises ParseError for a text that is too long, too deeply nested, or means too much by its aliases."""
    data = text.encode(errors="replace")
    check_size(len(data), name, limits)
    bare = _NO_BRACKETS.sub(b"", data)
    if _deepest(bare) > limits.program_depth:
        raise _too_deep(text, data, name, limits)
    if b"-" * _MOST_SIGNS in bare.translate(None, b" \t\r\n"):
        raise ParseError(name, f"more than {_MOST_SIGNS} minus signs in a row")
    for layout in _LAYOUT.finditer(bare):
        if (large := _LARGE.search(layout[0])) is not None:
            shown = large[0].decode()[:40]
            raise ParseError(name, f"dimension {shown} of a convolution: there is no such rank")
    _check_alignments(data, name)
    if b"=" in bare and (b"#" in bare or b"!" in bare):
        _check_aliases(bare, name, limits)


def check_size(size: int, name: str, limits: Limits) -> None:
    """Raises ParseError for a program of more bytes than may be read."""
    if size > limits.program_bytes:
        raise ParseError(
            name,
            f"the program has {size} bytes, and at most {limits.program_bytes} are read "
            "(setting program_bytes)",
        )


def _deepest(bare: bytes) -> int:
    """How many brackets are open at most. Where one closes another's, the parser stops anyway."""
    steps = _STEPS[np.frombuffer(bare.translate(None, _OTHERS), np.uint8)]
    deepest = open_ones = 0
    for begin in range(0, len(steps), 1 << 20):  # sums of a part at a time, which stays small
        depths = np.cumsum(steps[begin : begin + (1 << 20)], dtype=np.int64)
        deepest = max(deepest, open_ones + int(np.max(depths)))
        open_ones += int(depths[-1])
    return deepest


def _too_deep(text: str, data: bytes, name: str, limits: Limits) -> ParseError:
    """The error, at the bracket that is one too many."""
    # Blanked, not taken out, so that positions stay.
    blank = _NO_BRACKETS.sub(lambda found: b" " * len(found[0]), data)
    depth = 0
    for found in re.finditer(rb"[(\[{<)\]}>]", blank):
        depth += 1 if found[0] in _OPENING else -1
        if depth > limits.program_depth:
            line, column = place_of(text, len(data[: found.start()].decode(errors="ignore")))
            return ParseError(name, _depth_problem(limits), line, column, excerpt_at(text, line, column))
    return ParseError(name, _depth_problem(limits))


def _depth_problem(limits: Limits) -> str:
    return f"brackets are nested more than {limits.program_depth} deep (setting program_depth)"


def _check_alignments(data: bytes, name: str) -> None:
    """Of what stands at the text's end, for which the parser asks for memory as it is written."""
    section = _RESOURCES.search(data) if b"dialect_resources" in data else None
    for found in _ALIGNMENT.finditer(section[0]) if section is not None else ():
        alignment = int.from_bytes(bytes.fromhex(found[1].decode()), "little")
        if not 0 < alignment <= _MOST_ALIGNED:
            problem = f"a resource is aligned to {alignment} bytes, which must be 1 to {_MOST_ALIGNED}"
            raise ParseError(name, problem)


def _check_aliases(bare: bytes, name: str, limits: Limits) -> None:
    """Follow the names that stand for attributes, types and locations: how deep what each stands for
    is nested, and how long it is written out."""
    depths: dict[bytes, int] = {}
    sizes: dict[bytes, int] = {}
    locations: set[bytes] = set()  # which are printed by their names
    for found in _ALIAS.finditer(bare):
        alias, body = found[1], _body(bare, found.end())
        names = _NAME.findall(body)
        opened = sum(map(body.count, _OPENING_ONES))
        own = opened if opened <= 2 else _deepest(body)
        depths[alias] = own + max((depths.get(each, 0) for each in names), default=0)
        sizes[alias] = len(body) + sum(sizes.get(each, 0) for each in names)
        shown = alias.decode(errors="replace")[:100]
        most = limits.program_depth
        if body.lstrip().startswith(b"loc("):
            locations.add(alias)
            most *= _DEPTH_OF_LOCATIONS
        if depths[alias] > most:
            raise ParseError(name, f"{shown}: {_depth_problem(limits)}")
        if sizes[alias] > _MOST_WRITTEN_OUT:
            problem = f"stands for more than {_MOST_WRITTEN_OUT} characters, by names in one another"
            raise ParseError(name, f"{shown} {problem}")
    sizes = {alias: size for alias, size in sizes.items() if alias not in locations}
    written_out = sum(sizes.get(each, 0) for each in _NAME.findall(bare)) if sizes else 0
    if written_out > _MOST_WRITTEN_OUT + _MOST_GROWTH * len(bare):
        problem = f"its aliases written out, the program has more than {written_out} characters"
        raise ParseError(name, problem)


def _body(bare: bytes, begin: int) -> bytes:
    """What an alias stands for: to the end of the line on which its brackets are closed."""
    end, open_ones = begin, 0
    while True:
        line = end
        end = bare.find(b"\n", line)
        if end < 0:
            return bare[begin:]
        open_ones += sum(bare.count(each, line, end) for each in _OPENING_ONES)
        open_ones -= sum(bare.count(each, line, end) for each in _CLOSING_ONES)
        if open_ones <= 0:
            return bare[begin:end]
        end += 1
