"""Ops of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

CALL, MANUAL = "stablehlo.custom_call", "sdy.manual_computation"


def walk(root: Any) -> Iterator[Any]:
    """All ops in an op, outer ones first."""
    for region in root.regions:
        for block in region.blocks:
            for op in block.operations:
                yield op.operation
                yield from walk(op.operation)
