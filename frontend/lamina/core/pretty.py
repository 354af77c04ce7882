"""A small pretty printer: groups that stand on one line where they fit.

Wadler, "A prettier printer" (2003), with a layout loop in place of laziness.
"""

from __future__ import annotations

from collections.abc import Sequence


class Doc:
    """A piece of text that can be laid out in several ways."""

    __slots__ = ()

    def __add__(self, other: Doc | str) -> Doc:
        return Concat((self, as_doc(other)))

    def __radd__(self, other: str) -> Doc:
        return Concat((as_doc(other), self))


class Text(Doc):
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Break(Doc):
    """`flat` where the enclosing group is on one line, else a new line."""

    __slots__ = ("flat",)

    def __init__(self, flat: str = " ") -> None:
        self.flat = flat


class Concat(Doc):
    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Doc]) -> None:
        self.parts = parts


class Nest(Doc):
    """Indents the new lines within."""

    __slots__ = ("by", "doc")

    def __init__(self, by: int, doc: Doc) -> None:
        self.by, self.doc = by, doc


class Group(Doc):
    """Laid out on one line if that fits."""

    __slots__ = ("doc",)

    def __init__(self, doc: Doc) -> None:
        self.doc = doc


def as_doc(x: Doc | str) -> Doc:
    return Text(x) if isinstance(x, str) else x


def concat(parts: Sequence[Doc | str]) -> Doc:
    return Concat([as_doc(p) for p in parts])


def join(separator: Doc | str, parts: Sequence[Doc | str]) -> Doc:
    """The parts with a separator between each two."""
    out: list[Doc] = []
    for i, part in enumerate(parts):
        if i:
            out.append(as_doc(separator))
        out.append(as_doc(part))
    return Concat(out)


def layout(doc: Doc, width: int = 80) -> str:
    """The text, with groups broken where a line would be longer than `width`."""
    out: list[str] = []
    column = 0
    stack: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while stack:
        indent, flat, d = stack.pop()
        if isinstance(d, Text):
            out.append(d.text)
            column += len(d.text)
        elif isinstance(d, Concat):
            stack.extend((indent, flat, p) for p in reversed(d.parts))
        elif isinstance(d, Nest):
            stack.append((indent + d.by, flat, d.doc))
        elif isinstance(d, Group):
            stack.append((indent, flat or _fits(d.doc, width - column), d.doc))
        elif isinstance(d, Break):
            if flat:
                out.append(d.flat)
                column += len(d.flat)
            else:
                out.append("\n" + " " * indent)
                column = indent
    return "\n".join(line.rstrip() for line in "".join(out).split("\n"))


def _fits(doc: Doc, room: int) -> bool:
    todo = [doc]
    while todo and room >= 0:
        d = todo.pop()
        if isinstance(d, Text):
            room -= len(d.text)
        elif isinstance(d, Break):
            room -= len(d.flat)
        elif isinstance(d, Concat):
            todo.extend(reversed(d.parts))
        elif isinstance(d, (Nest, Group)):
            todo.append(d.doc)
    return room >= 0
