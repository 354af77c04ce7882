"""Compute each value once: an op equal to one that dominates it is replaced by it.

    %0 = stablehlo.add %a, %b                      %0 = stablehlo.add %a, %b
    %1 = stablehlo.add %b, %a               ->     %1 = stablehlo.multiply %0, %0
    %2 = stablehlo.multiply %0, %1

Sees ops of enclosing regions, ops with equal regions, and commutative operands in either order.
Leaves impure ops, calls and ops in different branches alone.

example: test/passes/stablehlo/cse.mlir
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.stablehlo.facts import (
    COMMUTATIVE,
    CONTROL,
    TERMINATORS,
    is_name_of_pure,
    is_pure,
)
from lamina.passes.stablehlo.keys import attributes_key, region_key

Alike = dict[Hashable, ir.Operation]
"""Ops of one name and operands by the rest of what they compute."""
Known = dict[Hashable, "ir.Operation | Alike"]
"""By name and operands the one op that there is, or several."""


@dataclass(frozen=True)
class Cse(Pass):
    """The pass `stablehlo-cse`."""

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            for region in function.operation.regions:
                self._region(region, None)

    def _region(self, region: ir.Region, outer: Known | None) -> None:
        """Replace what `outer`, the ops of enclosing regions, or earlier ops here compute. They are
        found by name and operands: few others have the same, so that few are looked at closer."""
        for block in region.blocks:
            known = {} if outer is None else outer
            added: list[tuple[Hashable, ir.Operation]] = []
            for op in [inner.operation for inner in block.operations]:
                name = op.name
                if len(op.regions):
                    for nested in op.regions:
                        # A reduction's body must not capture; control flow may.
                        self._region(nested, known if name in CONTROL else None)
                    is_candidate = is_pure(op)
                else:
                    is_candidate = is_name_of_pure(name) or is_pure(op)
                if not is_candidate or name in TERMINATORS:
                    continue
                operands = op.operands
                if name in COMMUTATIVE:
                    first, second = operands
                    in_order = hash(first) <= hash(second)
                    key: Hashable = (name, first, second) if in_order else (name, second, first)
                else:
                    key = (name, *operands) if len(operands) else _rest(op)
                same = known.setdefault(key, op)
                if same is not op and len(operands):
                    same = _equal(op, same, key, known)
                if same is op:
                    if outer is not None:
                        added.append((key, op))
                    continue
                for result, first in zip(op.results, same.results):
                    result.replace_all_uses_with(first)
                op.erase()
                self.count("replaced")
            if outer is not None:
                _forget(added, outer)


def _forget(added: list[tuple[Hashable, ir.Operation]], known: Known) -> None:
    """Take the ops of a block that ends out of those that later ones may be replaced by."""
    for key, op in added:
        alike = known[key]
        if isinstance(alike, dict):
            del alike[_rest(op)]
        if alike is op or not alike:
            del known[key]


def _equal(
    op: ir.Operation, alike: ir.Operation | Alike, key: Hashable, known: Known
) -> ir.Operation:
    """The one among ops of the same name and operands that computes the same; else the op itself,
    which is put there."""
    if not isinstance(alike, dict):
        alike = known[key] = {_rest(alike): alike}
    return alike.setdefault(_rest(op), op)


def _rest(op: ir.Operation) -> Hashable:
    """What an op does, beside its operands' being what they are."""
    types = tuple([result.type for result in op.results])
    regions = tuple([region_key(nested, {}) for nested in op.regions])
    return (op.name, types, attributes_key(op), regions)
