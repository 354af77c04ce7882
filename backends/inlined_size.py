"""How many operations a program has once its calls are inlined: a few lines can call for billions."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.find import ancestors, find_ops

MOST_OPERATIONS = 1_000_000  # code
_CALLEES = {"func.call": "callee", "stablehlo.composite": "decomposition"}


def check_inlined_size(module: ir.Module, most: int = MOST_OPERATIONS) -> None:
    """Raises CompileError for a module whose functions, each written out wherever it is called, have more
    operations than `most` together. Those in regions of others are not counted."""
    views = [view.operation for view in module.body.operations]
    functions = {
        op.attributes["sym_name"].value: op
        for op in views
        if op.name == "func.func" and op.regions[0].blocks
    }
    if len(functions) < 2:
        return
    calls: dict[str, list[str]] = {name: [] for name in functions}
    for call in find_ops(module, *_CALLEES):
        callee = call.attributes[_CALLEES[call.name]].value
        *_, function = ancestors(call)
        caller = function.attributes["sym_name"].value
        if callee in functions and caller in functions:
            calls[caller].append(callee)
    own = {
        name: sum(len(block.operations) for block in op.regions[0].blocks)
        for name, op in functions.items()
    }
    totals = _totals(calls, own, most)
    largest = max(totals, key=totals.__getitem__)
    if totals[largest] > most:
        raise CompileError.at(
            functions[largest],
            f"@{largest} has more than {most} operations with its calls inlined",
            "write what repeats as a loop, or raise the setting program_operations",
        )


def _totals(calls: Mapping[str, list[str]], own: Mapping[str, int], most: int) -> dict[str, int]:
    """The operations of each function with its calls inlined, those beyond `most` not counted exactly.
    Calls that lead back are left out: they are refused later."""
    totals: dict[str, int] = {}
    begun: set[str] = set()
    for root in calls:
        pending = [root]
        while pending:
            name = pending[-1]
            if name in totals:
                pending.pop()
            elif name in begun:
                total = own[name] + sum(totals.get(callee, 0) for callee in calls[name])
                totals[name] = min(total, most + 1)
                pending.pop()
            else:
                begun.add(name)
                pending += [callee for callee in calls[name] if callee not in begun]
    return totals
