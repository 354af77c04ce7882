"""`// expected-error @+1 {{text}}` comments, compared with the errors that came.

The offset counts lines from the comment (`@below` and `@above` are +1 and -1); `@unknown` is an
error without a place. The text must be contained in the error's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_EXPECTED = re.compile(
    r"expected-error\s*(?:@(?P<at>[+-]\d+|below|above|unknown)\s*)?\{\{(?P<text>.*?)\}\}"
)
_OFFSETS = {"below": 1, "above": -1}


@dataclass(frozen=True)
class Diagnostic:
    """An error at a line of the input (counted from 1), or without a place."""

    line: int | None
    text: str


def expected_in(source: str) -> list[Diagnostic]:
    """The errors that comments of a source ask for."""
    found = []
    for number, line in enumerate(source.splitlines(), start=1):
        for match in _EXPECTED.finditer(line):
            at = match["at"] or "+0"
            place = (
                None if at == "unknown" else number + (_OFFSETS[at] if at in _OFFSETS else int(at))
            )
            found.append(Diagnostic(place, match["text"]))
    return found


def check(source: str, came: list[Diagnostic]) -> list[str]:
    """What is wrong: errors expected that did not come, errors that came and were not expected."""
    unmatched = list(came)
    problems = []
    for wanted in expected_in(source):
        match = next(
            (d for d in unmatched if d.line == wanted.line and wanted.text in d.text), None
        )
        if match is None:
            problems.append(f"{_place(wanted)}expected error was not produced: {wanted.text}")
        else:
            unmatched.remove(match)
    problems += [f"{_place(d)}unexpected error: {d.text}" for d in unmatched]
    return problems


def _place(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.line}: " if diagnostic.line is not None else " "
