"""How much a program from outside may ask for before it is refused. (The settings of these names have
the same defaults, and say more.)"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a program's text or bytecode may have, and what reading bytecode may take."""

    program_bytes: int = 2 << 30
    """Of text or bytecode."""
    program_depth: int = 500
    """Brackets in one another, those of aliases in their places."""
    reader_bytes: int = 4 << 30
    """Memory of the process that reads, beside what it takes when it has nothing to do."""
    reader_seconds: float = 60.0
    """Time for one program in that process."""


DEFAULT_LIMITS = Limits()
