"""Where ops are: those of some names, and which one is in which.

Names are looked for by MLIR: calling Python for every op there is takes ten times as long. Blocks that
nothing leads to are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamina.dialects.context import kept_with
from lamina.dialects.vendors import ir, rewrite


def find_ops(within: ir.Module | ir.Operation, *names: str) -> list[ir.Operation]:
    """The ops of these names anywhere in a module or an op, inner ones before those that hold them.
    They do not keep the module."""
    op = within.operation
    found = _finder(op.context, names).inside(op)
    return [*found, op] if op.name in names else found


def op_names(within: ir.Module | ir.Operation) -> set[str]:
    """The names of the ops in a module or an op. (One of each name shows whether such ops have
    regions, so that most ops are asked for no more than their names.)"""
    names: set[str] = set()
    _add_names(within.operation, names, set())
    return names


def functions_of(module: ir.Module) -> dict[str, ir.Operation]:
    """Name -> function of a module."""
    operations = [view.operation for view in module.body.operations]
    return {op.attributes["sym_name"].value: op for op in operations if op.name == "func.func"}


def ancestors(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops that an op is in the regions of, the nearest first and its function last."""
    while op.name != "func.func" and (parent := op.parent) is not None:
        op = parent.operation
        yield op


def is_inside(op: ir.Operation, ancestor: ir.Operation) -> bool:
    """Whether an op is another or in its regions."""
    return op.operation == ancestor.operation or ancestor.operation in ancestors(op.operation)


def in_block(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of a block that an op is, or is in the regions of."""
    while op.block != block:
        op = op.parent.operation
    return op


def _add_names(op: ir.Operation, names: set[str], holders: set[str]) -> None:
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                name = inner.name
                if name not in names:
                    names.add(name)
                    if len(inner.regions):
                        holders.add(name)
                if name in holders:
                    _add_names(inner, names, holders)


class _Finder:
    """Patterns that take note of ops and never match."""

    def __init__(self, context: ir.Context, names: tuple[str, ...]) -> None:
        self._found: list[ir.Operation] = []
        found = self._found  # the patterns must not hold what holds them

        def take(op: ir.OpView, _: rewrite.PatternRewriter) -> bool:
            found.append(op.operation)
            return True

        patterns = rewrite.RewritePatternSet(context)
        for name in names:
            context.get_dialect_descriptor(name.partition(".")[0])  # loads it: only then names stay
            patterns.add(name, take)
        self._patterns = patterns.freeze()

    def inside(self, op: ir.Operation) -> list[ir.Operation]:
        rewrite.walk_and_apply_patterns(op, self._patterns)
        found = self._found.copy()
        self._found.clear()
        return found


def _finder(context: ir.Context, names: tuple[str, ...]) -> _Finder:
    kept: dict[Any, _Finder] = kept_with(context)
    found = kept.get((_Finder, names))
    if found is None:
        found = kept[_Finder, names] = _Finder(context, names)
    return found
