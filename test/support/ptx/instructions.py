"""Every instruction that the emulator knows, by the first part of its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.ptx import (
    atomics,
    barriers,
    conversions,
    copies,
    floating,
    integer,
    matrices,
    mbarriers,
    moves,
    predicates,
    warps,
    wgmma,
    wmma,
)

OPS: dict[str, Callable[..., Any]] = {}
for _family in (
    integer,
    floating,
    conversions,
    predicates,
    moves,
    atomics,
    warps,
    barriers,
    matrices,
    copies,
    mbarriers,
    wgmma,
    wmma,
):
    OPS |= _family.OPS
