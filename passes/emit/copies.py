"""Copies of ops that read other values: to move a body elsewhere, or to compute something again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import ir


def copied(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> ir.Operation:
    """A copy of an op at the ambient place, which reads what is `known` for its operands, if
    anything is. What it makes is known from then on for what `op` makes."""
    copy = op.clone().operation
    read_instead(copy, known)
    known.update(zip(op.results, copy.results, strict=True))
    return copy


def remade(
    op: ir.Operation,
    results: Sequence[ir.Type],
    operands: Sequence[ir.Value],
    regions: int = 0,
    **changed: ir.Attribute,
) -> ir.Operation:
    """What `op` does at the ambient place on other operands, for results of these types, with some
    of its attributes changed; its regions are to be filled."""
    attributes = {name: op.attributes[name] for name in op.attributes} | changed
    return ir.Operation.create(op.name, results, operands, attributes, regions=regions)


def read_instead(op: ir.Operation, known: Mapping[ir.Value, ir.Value]) -> None:
    """Let an op and all in it read what is `known` for their operands."""
    for number, value in enumerate(op.operands):
        if value in known:
            op.operands[number] = known[value]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                read_instead(inner.operation, known)
