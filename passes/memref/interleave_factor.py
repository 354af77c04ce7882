"""The interleave factor of a loop: how many vectors it works on op by op, one after the other.

Short bodies then wait for fewer branches. In long ones each op waits for the one before: a processor works
on some hundred ops that wait, so it finds the next vectors by itself only where they are that near. Long
chains get as many vectors as leave it nothing to wait for; what few registers are left for then spills.
"""

from __future__ import annotations

from typing import NamedTuple

from lamina.dialects.vendors import ir
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.memref.plain_loop import PlainLoop

_COST = {"math.sqrt": 4, "math.fma": 1, "math.absf": 1, "math.copysign": 1, "arith.divf": 4}
_OF_FUNCTION = 20
_IN_FUNCTION = 10  # of them, those that wait for each other
_PER_COLUMN = 2  # of those beside it in interleaved rows
# Up to which cost of a body so many vectors side by side pay: to wait for fewer branches, and where
# something is carried for fewer results.
_SEVERAL = ((4, 6), (2, 14))
_SEVERAL_CARRIED = ((4, 14), (2, 40))
_NO_LOOP, _NO_LOOP_COST = 8, 24  # code: as many, if that is all there is
_NO_LOOP_IN_REGISTERS = 96  # where buffers, of which each element has a name then, become registers
_MANY = 8  # code: of which one more may be left over
_WORTH = 1.25  # rounding: as many vectors are summed beside each other


class SideBySide(NamedTuple):
    """How many vectors, and whether that is because each op of one waits for the one before."""

    vectors: int
    for_chain: bool


def side_by_side(loop: PlainLoop, registers: int, short_buffers: bool = False) -> SideBySide:
    """How many vectors a loop works on side by side, where there are so many registers. With
    `short_buffers`, it may be that a loop around this one keeps what it works on in registers."""
    cost, chain = _costs(loop)
    levels = _SEVERAL_CARRIED if loop.combiners else _SEVERAL
    count = next((n for n, most in levels if cost <= most), 1)
    in_chain = _for_chain(loop, cost, chain, registers)
    count = _that_fit(
        loop, cost, max(count, in_chain), _NO_LOOP_IN_REGISTERS if short_buffers else _NO_LOOP_COST
    )
    return SideBySide(count, 1 < count <= in_chain)


def _that_fit(loop: PlainLoop, cost: float, count: int, most: int) -> int:
    """As many of these as divide what there is to do; or all, if they cost no more than `most`."""
    if loop.trips is None:
        return count
    vectors = loop.trips // loop.lanes
    if 0 < vectors <= _NO_LOOP and vectors * cost <= most:
        return vectors
    if loop.combiners and vectors >= 2 * count:
        return count
    least = 2 if vectors >= _MANY else 1
    while count > least and (vectors < count or vectors % count):
        count //= 2
    return count


def _for_chain(loop: PlainLoop, cost: float, chain: float, registers: int) -> int:
    """How many vectors keep a processor from waiting, as far as there are registers for what they hold."""
    if REFERENCE.ops_in_flight * chain < _WORTH * (cost + REFERENCE.ops_ahead):
        return 1
    wanted = REFERENCE.ops_in_flight * chain / cost
    held = _most_alive(loop)
    count = 1
    while count * 1.5 <= wanted and count * 2 * held <= registers:
        count *= 2
    return count


def _costs(loop: PlainLoop) -> tuple[float, float]:
    """The cost of a body, and of those of its ops of which each waits for the one before."""
    until: dict[ir.Value, float] = {}
    factors: dict[ir.Value, float] = {}
    total = longest = 0.0
    for step in loop.body:
        if loop.kinds.get((step.results or step.operands)[0]) in ("linear", "falling"):
            continue
        own = waits = loop.lanes if step in loop.one_by_one else _COST.get(step.name, 1)
        if step in loop.interleaved:
            own = waits = _PER_COLUMN * (loop.interleaved[step][0].columns - 1)
        if step.name.startswith("math.") and step.name not in _COST:
            own, waits = _OF_FUNCTION, _IN_FUNCTION
        before = [until.get(value, 0.0) for value in step.operands]
        if step.name in ("arith.addf", "arith.subf"):
            product = next((n for n, value in enumerate(step.operands) if value in factors), None)
            if product is not None:  # they are one op
                own = 0
                before[product] = factors[step.operands[product]]
        total += own
        for result in step.results:
            until[result] = waits + max(before, default=0.0)
            longest = max(longest, until[result])
            if step.name == "arith.mulf":
                factors[result] = max(before, default=0.0)
    return total, longest


def _most_alive(loop: PlainLoop) -> int:
    """The most registers of vectors that a body's values take at a time; truths have their own."""
    last = {value: step for step in loop.body for value in step.operands}

    def takes_one(value: ir.Value) -> bool:
        is_truth = isinstance(value.type, ir.IntegerType) and value.type.width == 1
        return value in last and loop.kinds.get(value) == "vector" and not is_truth

    alive = most = 0
    for step in loop.body:
        alive += sum(map(takes_one, step.results))
        most = max(most, alive)
        alive -= sum(last[value] is step and takes_one(value) for value in dict.fromkeys(step.operands))
    return most
