"""What each backend makes of a planned program."""

from __future__ import annotations

from typing import Any

from lamina.records import Record


class BuiltProgram(Record):
    """Machine code: the files, which symbol each kernel function became, how much scratch memory
    the kernels share, and what the manifest says that only this backend's runtime reads."""

    objects: dict[str, bytes]
    symbols: dict[str, str]
    scratch_bytes: int
    manifest: dict[str, Any]
