"""Put the readers of a value before the operation that overwrites it in place.

    %new = update(%old, ...)          %x = read(%old)
    %x = read(%old)             =>    %new = update(%old, ...)

Without this the update would have to copy `%old` first: in a loop, the whole array each time
around. An update is moved only past operations that do not depend on it; where a later reader of
the old value needs the new one too, the order is left alone and the copy is due.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from lamina.passes.planning.program import (
    Block,
    Call,
    Op,
    Program,
    View,
    Views,
    While,
    blocks_of,
    values_read,
    walk,
)
from lamina.records import Record

# A bound on the work per program: moving an update costs the length of the way it moves.
_BUDGET = 500_000


def sink_updates(program: Program) -> None:
    """Reorder each block of `program` in place."""
    budget = _BUDGET
    for block, carries in blocks_with_carries(program):
        budget = _sink_in_block(block, carries, budget)


def blocks_with_carries(program: Program) -> list[tuple[Block, dict[int, int]]]:
    """Every block with its carries: yielded value -> the block argument it will overwrite."""
    body = program.body
    donated = {
        body.yields[results[0]]: body.arguments[position]
        for position, results in program.donated.items()
        if results
    }
    return _blocks(body, donated)


def _blocks(block: Block, carries: dict[int, int]) -> list[tuple[Block, dict[int, int]]]:
    found = [(block, carries)]
    for op in block.ops:
        for inner in blocks_of(op):
            overwrites = {}
            if isinstance(op, While) and inner is op.body:
                overwrites = dict(zip(inner.yields, inner.arguments, strict=True))
            found += _blocks(inner, overwrites)
    return found


def overwritten(op: Op, carries: dict[int, int]) -> set[int]:
    """The values whose storage `op` would like to write its results into."""
    if not isinstance(op, Call):
        return set()
    old = {op.operands[position] for position in op.inout}
    old.update(carries[result] for result in op.results if result in carries)
    return old


class Touched(Record, frozen=False):
    """What ops make, read and overwrite, views as what they view."""

    made: set[int]
    read: set[int]
    overwritten: set[int]

    def add(self, other: Touched) -> None:
        self.made |= other.made
        self.read |= other.read
        self.overwritten |= other.overwritten

    def copy(self) -> Touched:
        return Touched(set(self.made), set(self.read), set(self.overwritten))


def kept_by_caller(program: Program) -> set[int]:
    """The arguments that are the caller's: who would overwrite one gets a copy."""
    given = enumerate(program.body.arguments)
    return {value for position, value in given if position not in program.donated}


def touching(block: Block, carries: dict[int, int], kept: set[int]) -> Callable[[Op], Touched]:
    """What an op of a block touches, less what is `kept`."""
    views = Views(block)
    return lambda op: Touched(
        set(op.results), views.roots(values_read(op)), views.roots(overwritten(op, carries)) - kept
    )


def _sink_in_block(block: Block, carries: dict[int, int], budget: int) -> int:
    updates = [op for op in block.ops if overwritten(op, carries)]
    if not updates:
        return budget
    ops = block.ops
    reads = {id(op): values_read(op) for op in ops}
    place = {id(op): position for position, op in enumerate(ops)}
    readers: dict[int, list[Op]] = defaultdict(list)
    views: dict[int, list[int]] = defaultdict(list)
    for op in ops:
        if isinstance(op, View):
            views[op.operand].append(op.result)
        else:
            for value in reads[id(op)]:
                readers[value].append(op)

    for update in updates:
        if budget <= 0:
            break
        old = _with_views(overwritten(update, carries), views)
        start = place[id(update)]
        last = max(
            (place[id(op)] for value in old for op in readers[value] if op is not update),
            default=-1,
        )
        if last < start:
            continue
        budget -= last - start
        tainted = set(update.results)
        before: list[Op] = []
        after: list[Op] = [update]
        has_effect = _has_effect(update)
        for op in ops[start + 1 : last + 1]:
            if reads[id(op)] & tainted or (has_effect and _has_effect(op)):
                tainted.update(op.results)
                after.append(op)
                has_effect = has_effect or _has_effect(op)
            else:
                before.append(op)
        if any(reads[id(op)] & old for op in after[1:]):
            continue
        for position, op in enumerate(before + after, start):
            ops[position] = op
            place[id(op)] = position
    return budget


def _has_effect(op: Op) -> bool:
    """Whether there is an effect in an op: these stay in order."""
    inner = (nested for block in blocks_of(op) for nested in walk(block))
    return any(isinstance(one, Call) and one.has_effect for one in (op, *inner))


def _with_views(values: set[int], views: dict[int, list[int]]) -> set[int]:
    found, todo = set(), list(values)
    while todo:
        value = todo.pop()
        if value not in found:
            found.add(value)
            todo += views[value]
    return found
