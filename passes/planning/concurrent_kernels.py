"""Concurrent kernels: long ones that use one core each, and do not need each other, run at the same time.

    %a = loop(%x)                 %y = reverse(%x)
    %y = reverse(%x)       =>     %a = loop(%x)   } one team
    %b = loop(%y)                 %b = loop(%y)   }

What comes between them goes in front where it needs none of them, else behind. Two directions of a
recurrent network take the time of one. Nothing is moved over an effect or control flow, nor over a
reader of what it overwrites; a kernel that would overwrite what another of the team reads stays alone.
"""

from __future__ import annotations

from lamina.passes.framework.machine import REFERENCE
from lamina.passes.planning.order import blocks_with_carries, kept_by_caller, touching
from lamina.passes.planning.program import (
    Block,
    Branch,
    Call,
    Op,
    Program,
    Wait,
    While,
)

LEAST_NS = 2 * REFERENCE.task_ns
"""Of a kernel that is worth another thread."""
_FARTHEST = 256  # search: ops from the first kernel of a team to the last


def form_teams(program: Program) -> None:
    """Reorder each block of `program` in place, and number the teams of its calls."""
    teams = 0
    kept = kept_by_caller(program)
    for block, carries in blocks_with_carries(program):
        if sum(map(_is_long, block.ops)) > 1:
            teams = _form_in_block(block, _Former(block, carries, kept), teams)


def _is_long(op: Op) -> bool:
    return isinstance(op, Call) and op.alone_ns >= LEAST_NS and not op.has_effect


class _Former:
    """Forms the teams of one block."""

    def __init__(self, block: Block, carries: dict[int, int], kept: set[int]) -> None:
        self._ops = block.ops
        self._touched = touching(block, carries, kept)

    def team_from(self, start: int) -> tuple[list[Op], list[Op], list[Op]]:
        """What goes in front of a team whose first is at `start`, the team, and what goes behind."""
        first = self._touched(self._ops[start])
        behind = first.copy()
        front: list[Op] = []
        team: list[Op] = [self._ops[start]]
        back: list[Op] = []
        found = front[:], team[:], back[:]
        for op in self._ops[start + 1 : start + _FARTHEST]:
            if isinstance(op, While | Branch | Wait) or (isinstance(op, Call) and op.has_effect):
                break
            touched = self._touched(op)
            if touched.read & behind.made or touched.overwritten & behind.read:
                back.append(op)
            elif not _is_long(op):
                front.append(op)
                continue
            elif touched.read & behind.overwritten:
                back.append(op)
            else:
                team.append(op)
                found = front[:], team[:], back[:]
            behind.add(touched)
        return found


def _form_in_block(block: Block, former: _Former, teams: int) -> int:
    position = 0
    while position < len(block.ops):
        if _is_long(block.ops[position]):
            front, team, back = former.team_from(position)
            if len(team) > 1:
                teams += 1
                for call in team:
                    assert isinstance(call, Call)
                    call.team = teams
                ordered = [*front, *team, *back]
                block.ops[position : position + len(ordered)] = ordered
                position += len(front) + len(team) - 1
        position += 1
    return teams
