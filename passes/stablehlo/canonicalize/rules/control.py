"""Rules of `stablehlo-simplify` for control flow whose outcome is known."""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import splat_of
from lamina.passes.stablehlo.canonicalize.rewriting import Rule


def _known_branch(op: ir.Operation) -> list[ir.Value] | None:
    """`if` or `case` of a constant -> the branch's ops, in its place."""
    splat = splat_of(op.operands[0])
    if splat is None:
        return None
    last = len(op.regions) - 1
    if op.name == "stablehlo.if":
        chosen = 0 if splat else 1
    else:
        chosen = int(splat) if 0 <= int(splat) <= last else last
    return inline_region(op, chosen)


def inline_region(op: ir.Operation, number: int) -> list[ir.Value]:
    """Move a region's ops before the op; returns what the region yields."""
    body = [inner.operation for inner in op.regions[number].blocks[0].operations]
    values = list(body[-1].operands)
    for inner in body[:-1]:
        inner.move_before(op)
    return values


def _one_branch(op: ir.Operation) -> list[ir.Value] | None:
    """A `case` with one branch -> that branch."""
    return inline_region(op, 0) if len(op.regions) == 1 else None


def _never_entered(op: ir.Operation) -> list[ir.Value] | None:
    """A `while` whose condition is a constant false -> the initial values."""
    condition = op.regions[0].blocks[0].operations[-1].operation
    splat = splat_of(condition.operands[0])
    return list(op.operands) if splat is not None and not splat else None


RULES: dict[str, tuple[Rule, ...]] = {
    "stablehlo.if": (_known_branch,),
    "stablehlo.case": (_known_branch, _one_branch),
    "stablehlo.while": (_never_entered,),
}
