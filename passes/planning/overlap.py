"""Begin what devices say to each other, and compute what does not need it before waiting for it.

    %r = all_reduce(%g)                  %r = all_reduce(%g), begun
    %w = update(%p, %r)        =>        %h = backward(...)
    %h = backward(...)                   wait
    %s = all_reduce(%h)                  %w = update(%p, %r)
                                         %s = all_reduce(%h)

A device has at most one such call under way: the next is where it is waited for at the latest, so that devices meet in
the program's order. So do what has effects, and control flow. Nothing is moved over what reads what it overwrites, or
overwrites what it reads. A call is begun only where what is computed meanwhile touches as many bytes as are sent.
"""

from __future__ import annotations

from lamina.passes.planning.order import Touched, blocks_with_carries, kept_by_caller, touching
from lamina.passes.planning.program import Block, Branch, Call, Op, Program, Wait, While

_LEAST_BYTES = 1 << 15  # memory
"""That are sent: another thread does it, which takes some 20 us to wake up, the time of so many bytes."""
_FARTHEST = 256  # search: ops that are looked at for what may be computed meanwhile


def begin_early(program: Program) -> None:
    """Reorder each block of `program` in place."""
    kept = kept_by_caller(program)
    for block, carries in blocks_with_carries(program):
        if any(isinstance(op, Call) and op.meets for op in block.ops):
            block.ops[:] = _overlapped(block, carries, kept, program.bytes)


def _overlapped(
    block: Block, carries: dict[int, int], kept: set[int], sizes: dict[int, int]
) -> list[Op]:
    touched = touching(block, carries, kept)
    ordered: list[Op] = []
    position = 0
    while position < len(block.ops):
        op = block.ops[position]
        position += 1
        ordered.append(op)
        if not isinstance(op, Call) or not op.meets or op.inout:
            continue
        sent = sum(map(sizes.__getitem__, op.operands))
        if sent < _LEAST_BYTES:
            continue
        until = position
        while until < min(len(block.ops), position + _FARTHEST) and not _stays(block.ops[until]):
            until += 1
        meanwhile: list[Op] = []
        then: list[Op] = []
        behind: Touched = touched(op)
        for later in block.ops[position:until]:
            its = touched(later)
            if its.read & (behind.made | behind.overwritten) or its.overwritten & behind.read:
                then.append(later)
                behind.add(its)
            else:
                meanwhile.append(later)
        if sum(_bytes(other, sizes) for other in meanwhile) >= sent:
            op.begun = True
            ordered += [*meanwhile, Wait([*op.operands, *op.results]), *then]
            position = until
    return ordered


def _stays(op: Op) -> bool:
    """Whether nothing is moved over an op."""
    return isinstance(op, While | Branch) or (isinstance(op, Call) and op.has_effect)


def _bytes(op: Op, sizes: dict[int, int]) -> int:
    """What a call reads and writes."""
    if not isinstance(op, Call):
        return 0
    return sum(map(sizes.__getitem__, {*op.operands, *op.results}))
