"""`ParseError`: what is wrong with a program from outside, and where, in a message of bounded length."""

from __future__ import annotations

NOT_UTF8 = "a name in it is not UTF-8"

_MOST_SHOWN = 100
"""Characters of a line that a message quotes."""
_MOST_SAID = 1000
"""Characters of a diagnostic, which may itself quote the program."""


class ParseError(ValueError):
    """A module's text or bytes that MLIR does not accept; the message names the line."""

    def __init__(
        self, name: str, problem: str, line: int = 0, column: int = 0, excerpt: str = ""
    ) -> None:
        """`excerpt` is what is shown of the text, as `excerpt_at` gives it."""
        self.problem = problem = _cut(problem)
        self.name, self.line, self.column, self.excerpt = name, line, column, excerpt
        place = f"{name}:{line}:{column}" if line else name
        shown = f"\n{excerpt}" if excerpt else ""
        super().__init__(f"{place}: {problem}{shown}")

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, str, int, int, str]]:
        return type(self), (self.name, self.problem, self.line, self.column, self.excerpt)


def excerpt_at(source: str, line: int, column: int) -> str:
    """The part of a line around a column, with a mark below the column; "" where nothing is there.
    Lines and columns count from 1, columns in bytes, as MLIR counts them."""
    begin = 0
    for _ in range(line - 1):
        begin = source.find("\n", begin) + 1
        if not begin:
            return ""
    end = source.find("\n", begin)
    text = source[begin : end if end >= 0 else len(source)]
    at = column - 1
    if not text.isascii():
        at = len(text.encode(errors="replace")[:at].decode(errors="ignore"))
    first = max(0, min(at - _MOST_SHOWN // 2, len(text) - _MOST_SHOWN))
    last = first + _MOST_SHOWN
    shown = "".join(c if c.isprintable() else " " for c in text[first:last]).rstrip()
    if not shown:
        return ""
    before, after = "..." * (first > 0), "..." * (last < len(text))
    return f"{before}{shown}{after}\n{' ' * (len(before) + at - first)}^"


def place_of(source: str, position: int) -> tuple[int, int]:
    """The line and the column, both from 1, the column in bytes, of a position in a text."""
    begin = source.rfind("\n", 0, position) + 1
    return source.count("\n", 0, position) + 1, len(source[begin:position].encode()) + 1


def is_about_encoding(error: BaseException) -> bool:
    """Whether the bindings could not make Python's text of something in a module."""
    return isinstance(error, UnicodeDecodeError) or (
        isinstance(error, RuntimeError) and "str_from_cstr" in str(error)
    )


def _cut(text: str) -> str:
    if len(text) <= _MOST_SAID:
        return text
    half = _MOST_SAID // 2
    return f"{text[:half]} ... ({len(text) - 2 * half} characters) ... {text[-half:]}"
