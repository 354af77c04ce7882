"""Programs that this process did not make, read within the limits that settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina import config

if TYPE_CHECKING:
    from lamina.dialects.limits import Limits


def limits() -> Limits:
    """What settings say a program may have, and what reading it may take."""
    from lamina.dialects.limits import Limits

    return Limits(
        program_bytes=config.program_bytes.value,
        program_depth=config.program_depth.value,
        reader_bytes=config.reader_bytes.value,
        reader_seconds=config.reader_seconds.value,
    )


def foreign_program(source: str | bytes, name: str, isolate: bool | None = None) -> Any:
    """The MLIR module in text, bytecode or a portable artifact. `isolate` says whether another process
    reads it first: by default it does where this is bytecode.

    Raises ParseError for what is no program, or beyond the limits.
    """
    from lamina.dialects.foreign import read

    return read(source, name=name, isolate=isolate, limits=limits())
