"""Keys that are equal for ops that compute the same thing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from lamina.dialects.constants import printed
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import COMMUTATIVE

Numbering = Mapping[ir.Value, Hashable]


def op_key(op: ir.Operation, operands: tuple[Hashable, ...]) -> Hashable:
    """The key of an op whose operands have these identities; equal for any order if it has none."""
    name = op.name
    if name in COMMUTATIVE and hash(operands[0]) > hash(operands[1]):
        operands = operands[::-1]
    types = tuple([result.type for result in op.results])
    return (name, operands, types, attributes_key(op))


def attributes_key(op: ir.Operation) -> tuple[tuple[str, Hashable], ...]:
    """The attributes of an op as (name, value) pairs, hashable."""
    attributes = op.attributes
    if not len(attributes):
        return ()
    try:
        return tuple([(name, attributes[name]) for name in attributes])
    except TypeError:  # the bindings can't hold complex elements
        return (("", printed(op).split("=", 1)[-1]),)


def region_key(region: ir.Region, outer: dict[ir.Value, Hashable]) -> Hashable:
    """The key of a region: its ops with values numbered by position, captured ones as `outer` says.

    A captured value that `outer` does not know stands for itself.
    """
    numbers = dict(outer)
    parts: list[Hashable] = []
    for block in region.blocks:
        for argument in block.arguments:
            numbers[argument] = len(numbers)
            parts.append(argument.type)
        for inner in block.operations:
            op = inner.operation
            operands = tuple([numbers.get(value, value) for value in op.operands])
            nested = tuple([region_key(r, numbers) for r in op.regions])
            parts.append((op_key(op, operands), nested))
            for result in op.results:
                numbers[result] = len(numbers)
    return tuple(parts)
