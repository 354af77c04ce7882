"""What code that is timed says of itself to profilers, which the native runtime keeps (recording.h)."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.runtime import _runtime

TIME_BEFORE, KEEP_TIME = "lamina_record_begin", "lamina_record_end"
"""The functions `i64 ()` and `void (i64 number, i64 time before)` that code calls around what it times."""


def number_of(name: str, details: Sequence[tuple[str, str]]) -> int:
    """The number that stands for a name, and for what else is known of it, while the process lives."""
    return _runtime.recorded_name(name, details)
