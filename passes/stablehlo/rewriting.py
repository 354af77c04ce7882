"""Rewriting by rules: walk forward, replace each op that a rule knows something better for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.facts import defining, is_droppable, is_unused

Rule = Callable[[ir.Operation], "ir.Value | Sequence[ir.Value] | None"]
"""Gives the values that replace an op's results, or None. It builds new ops at the ambient
insertion point, which is just before the op, and changes nothing else."""

Rules = Mapping[str, Sequence[Rule]]
"""Rules by the name of the op that they look at."""

_SWEEPS = 8


def rewrite(module: ir.Module, rules: Rules) -> Counter[str]:
    """Apply rules until none applies, operands before users; returns how often each one did.

    Ops that become unused on the way are erased. Rules must make programs smaller or more
    canonical, so that they end; the number of sweeps is bounded all the same.
    """
    applied: Counter[str] = Counter()
    for _ in range(_SWEEPS):
        before = applied.total()
        _rewrite_region(module.operation.regions[0], rules, applied)
        if applied.total() == before:
            break
    return applied


def _rewrite_region(region: ir.Region, rules: Rules, applied: Counter[str]) -> None:
    for block in region.blocks:
        # Only ops before the current one are erased, so that a list stays good to walk.
        for op in [inner.operation for inner in block.operations]:
            successor: ir.Operation | None = op
            while successor is not None:
                successor = _rewrite_op(successor, rules, applied)


def _rewrite_op(op: ir.Operation, rules: Rules, applied: Counter[str]) -> ir.Operation | None:
    """Replace an op if a rule applies; returns the new op in its place, to be looked at again."""
    candidates = rules.get(op.name)
    if candidates:
        with ir.InsertionPoint(op), op.location:
            for rule in candidates:
                found = rule(op)
                if found is not None:
                    break
        if found is not None:
            applied[rule.__name__.strip("_")] += 1
            return replace(op, [found] if isinstance(found, ir.Value) else list(found))
    for region in op.regions:
        _rewrite_region(region, rules, applied)
    return None


def replace(op: ir.Operation, values: Sequence[ir.Value]) -> ir.Operation | None:
    """Put values in the place of an op's results and erase it, and operands nobody else uses.

    Returns the op that made the first value, if it was inserted just before.
    """
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    successor = defining(values[0]) if values else None
    if successor is not None and not _is_next(successor, op):
        successor = None
    erase(op, keep=successor)
    return successor


def _is_next(first: ir.Operation, second: ir.Operation) -> bool:
    if first.block != second.block:
        return False
    position = ir.InsertionPoint.after(first).ref_operation
    return position is not None and position.operation == second


def erase(op: ir.Operation, keep: ir.Operation | None = None) -> int:
    """Erase an unused op, and what only it used; returns how many ops went."""
    erased, work = 0, [op]
    while work:
        op = work.pop()
        producers = {d: None for value in op.operands if (d := defining(value)) is not None}
        # What regions capture counts as used by the op.
        for region in op.regions:
            _captured_producers(region, op, producers)
        op.erase()
        erased += 1
        work += [
            p for p in producers if (keep is None or p != keep) and is_unused(p) and is_droppable(p)
        ]
    return erased


def _captured_producers(
    region: ir.Region, within: ir.Operation, found: dict[ir.Operation, None]
) -> None:
    outside = within.block
    for block in region.blocks:
        for inner in block.operations:
            inner = inner.operation
            for value in inner.operands:
                producer = defining(value)
                if producer is not None and producer.block == outside:
                    found[producer] = None
            for nested in inner.regions:
                _captured_producers(nested, within, found)
