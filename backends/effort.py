"""Which kernels are worth optimising: those that do more than a little work in a call of the program, and those that
do much are worth all that LLVM can do.

LLVM takes ten milliseconds to make fast code of a small kernel and two to make any. What a kernel
of a few hundred operations can gain by it is less than what the call of the program takes. Of loops that are over
vectors already it makes better ones in three times the time, by a tenth at most.
"""

from __future__ import annotations

import math
from collections import defaultdict

from lamina.backends.cost import Counter, trip_count
from lamina.dialects.attributes import KIND, string_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.find import find_ops

WORK = "lamina.work"
"""The attribute; where it says "little", a kernel is compiled fast, where it says "much", with care."""
LITTLE, MUCH = "little", "much"
_LITTLE, _MUCH = 1024.0, float(1 << 25)  # code: operations in a call of the program
_TRANSCENDENTAL = 32.0  # operations of a call of exp or the like
_WORD = 4.0  # bytes that are moved in the time of an operation
_CONTRACTS = "output"  # the kind of what is computed in blocks, which is worth care
_KINDS = ("loop", "input", "rows", "output", "update")  # no others gain or lose much


def note_work(fused: ir.Module, counter: Counter) -> None:
    """Write `lamina.work = "little"` onto each kernel of a fused module that does no more than
    some 1,000 operations in a call of the program, however often it is called, and "much" where it is tens of
    millions and it is a contraction. A loop of which it is not known how often it runs is taken to run forever."""
    times: dict[str, float] = defaultdict(float)
    _count_calls(counter.functions["main"].regions[0].blocks[0], 1.0, times)
    _count_calls_of_scalars(counter, times)
    for name, count in times.items():
        function = counter.functions[name]
        attributes = function.attributes
        if KIND not in attributes or attributes[KIND].value not in _KINDS:
            continue
        cost = counter.kernel(name)
        work = cost.flops + _TRANSCENDENTAL * cost.transcendentals + cost.bytes_accessed / _WORD
        if count * work <= _LITTLE:
            attributes[WORK] = ir.StringAttr.get(LITTLE, fused.context)
        elif count * work >= _MUCH and attributes[KIND].value == _CONTRACTS:
            attributes[WORK] = ir.StringAttr.get(MUCH, fused.context)


def _count_calls_of_scalars(counter: Counter, times: dict[str, float]) -> None:
    """Add what kernels of scalars call."""
    for name, count in list(times.items()):
        function = counter.functions[name]
        if string_of(function, KIND) == "scalar":
            for call in find_ops(function, "func.call"):
                times[call.attributes["callee"].value] += count


def _count_calls(block: ir.Block, times: float, found: dict[str, float]) -> None:
    for view in block.operations:
        op = view.operation
        if op.name == "func.call":
            found[op.attributes["callee"].value] += times
        elif op.name == "stablehlo.while":
            count = trip_count(op)
            each = times * (math.inf if count is None else max(count, 1))
            for region in op.regions:
                _count_calls(region.blocks[0], each, found)
        elif op.name in ("stablehlo.if", "stablehlo.case"):
            for region in op.regions:
                _count_calls(region.blocks[0], times, found)
