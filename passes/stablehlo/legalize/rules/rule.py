"""What a rule of `stablehlo-legalize-ops` is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects.vendors import ir
from lamina.records import Record


class Rule(Record):
    """How ops of some names are written where upstream's lowering would go wrong. What it makes needs no rule."""

    ops: tuple[str, ...]
    applies: Callable[[ir.Operation], bool]
    rewrite: Callable[[ir.Operation], Sequence[ir.Value] | None]
    """The values that replace the op's results, built at the ambient insertion point, just before the op; None
    where the op itself was changed."""
