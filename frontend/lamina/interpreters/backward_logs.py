"""What derivative rules log while a program runs backwards: dicts of named pytrees.

A vjp function collects the entries of the rules that it runs, and gives them where `with_logs` asks
for them. A program that is transposed as a whole (a call, a scan's step) collects those of its own
rules, gives them as further results, and logs these in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Logs = dict[Any, Any]


class _Collectors(threading.local):
    def __init__(self) -> None:
        self.stack: list[Logs] = []


_collectors = _Collectors()


@contextmanager
def collected() -> Iterator[Logs]:
    """The entries that rules log within."""
    found: Logs = {}
    _collectors.stack.append(found)
    try:
        yield found
    finally:
        _collectors.stack.pop()


def log(entries: Logs | None) -> None:
    """Adds a rule's entries to those of the pass it runs in, where there is one.

    Raises ValueError for a key that is there already.
    """
    if not entries or not _collectors.stack:
        return
    found = _collectors.stack[-1]
    for key, value in entries.items():
        if key in found:
            raise ValueError(
                f"repeated key in the logs of a backward pass: {key!r}. Keys must be unique within a "
                "pass: give each use of a rule that logs a key of its own"
            )
        found[key] = value


def refuse(entries: Logs, where: str) -> None:
    """Raises NotImplementedError where entries were logged within what can't give them."""
    if entries:
        raise NotImplementedError(
            f"a derivative rule logs {', '.join(map(repr, entries))} within {where}, which can't be "
            "given by its backward pass: log outside of it"
        )
