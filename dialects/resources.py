"""Constants whose data stands at the end of a program's text (`dense_resource`).

The bindings can't read that data back, so it is moved into the constants themselves.
"""

from __future__ import annotations

import re
from math import prod

from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir

_USE = re.compile(r'dense_resource<("[^"]*"|[\w.$-]+)> : (tensor<[^<>]*(?:<[^>]*>)?>)')
_SECTION = re.compile(r"\{-#.*?#-\}", re.DOTALL)
_ENTRY = re.compile(r'("[^"]*"|[\w.$-]+): "0x([0-9A-Fa-f]*)"')
_ALIGNMENT_DIGITS = 8  # data begins with its alignment, a 32-bit number


def inline_resources(text: str) -> str:
    """The program with each `dense_resource` constant as a `dense` one of the same bytes.

    Raises ValueError for one whose data is not in the text, or not as long as its type says.
    """
    if "dense_resource<" not in text:
        return text
    section = _SECTION.search(text)
    found = _ENTRY.findall(section[0]) if section is not None else []
    data = {name: digits[_ALIGNMENT_DIGITS:] for name, digits in found}

    def constant(use: re.Match[str]) -> str:
        name, of = use.groups()
        if name not in data:
            raise ValueError(f"the data of dense_resource<{name}> is not in the program")
        if of.endswith("xi1>") or of == "tensor<i1>":
            raise ValueError(f"dense_resource<{name}> : {of}: booleans must be a dense constant")
        _check_bytes(name, len(data[name]) // 2, of)
        return f'dense<"0x{data[name]}"> : {of}' if data[name] else f"dense<> : {of}"

    with ir.Context(), ir.Location.unknown():
        return _SECTION.sub("", _USE.sub(constant, text))


def _check_bytes(name: str, found: int, written: str) -> None:
    """Bytes of one element alone would be that of all, once they are in a `dense`."""
    of = ir.Type.parse(written)
    try:
        element = dtype_of(of)
    except TypeError:
        return  # what has no arrays is refused where that is seen
    expected = prod(shape_of(of)) * element.itemsize
    if found != expected:
        raise ValueError(f"dense_resource<{name}> : {written} needs {expected} bytes and has {found}")
