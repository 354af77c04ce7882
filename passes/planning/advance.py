"""Run a call that ends the lives of more bytes than it makes as soon as it can do so.

    %dy = backward(...)                  %dy = backward(...)
    ... the layers below ...      =>     %new = update(%p, %x, %dy)
    %new = update(%p, %x, %dy)           ... the layers below ...

A training step written as a gradient and then an optimiser's step has all updates at its end: until
then every layer's activations and their gradients would be kept for them. Calls that have effects
keep their places.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.passes.planning.program import (
    Block,
    Call,
    Constant,
    Op,
    Program,
    View,
    Views,
    blocks_of,
    values_read,
)

_Place = tuple[int, ...]
"""In a block, ordered as tuples are: what is put behind `p` is at `(*p, 0)`, `(*p, 1)` and so on."""

_START: _Place = (-1,)
_DEEPEST = 16  # places, so that comparing them takes little
_SMALL = 64  # search: bytes
_ROUNDS = 3
"""Of several late readers of a value, each round finds the last."""


def advance_last_readers(program: Program) -> None:
    """Reorder each block of `program` in place."""
    _advance(program.body, program.bytes)


def _advance(block: Block, sizes: dict[int, int]) -> None:
    for op in block.ops:
        for inner in blocks_of(op):
            _advance(inner, sizes)
    lives = _Lives(block, sizes)
    for _ in range(_ROUNDS):
        order = _advanced(block, lives)
        if order == list(range(len(order))):
            return
        block.ops[:] = [block.ops[position] for position in order]


def _advanced(block: Block, lives: _Lives) -> list[int]:
    """The positions of a block's ops in a better order."""
    lives.end_with(block.ops)
    made_at: dict[int, _Place] = {}
    read_at: dict[int, _Place] = {}
    behind: dict[_Place, int] = {}
    places: list[_Place] = []
    for position, op in enumerate(block.ops):
        place: _Place = (position,)
        freed = lives.freed_by(position, op)
        if lives.gains_early(op, freed):
            needed = [made_at.get(value, _START) for value in op.operands]
            ready = max([_START, *needed, *(read_at.get(value, _START) for value in freed)])
            if ready != (position - 1,) and len(ready) < _DEEPEST:
                behind[ready] = behind.get(ready, -1) + 1
                place = (*ready, behind[ready])
        made_at.update(dict.fromkeys(op.results, place))
        for value in lives.read_by(op):
            read_at[value] = max(place, read_at.get(value, _START))
        places.append(place)
    return sorted(range(len(places)), key=places.__getitem__)


class _Lives:
    """What of the arena each op of a block takes, reads, and is the last to need."""

    def __init__(self, block: Block, sizes: dict[int, int]) -> None:
        self._sizes: dict[int, int] = {}  # of the values that the arena holds
        self._read: dict[int, set[int]] = {}
        self._last_reader: dict[int, int] = {}
        views = Views(block)
        for op in block.ops:
            if isinstance(op, View):
                continue
            self._read[id(op)] = views.roots(values_read(op))
            if not isinstance(op, Constant):
                self._sizes.update((value, sizes[value]) for value in op.results)
        for value in block.yields:
            self._sizes.pop(views.root(value), None)

    def end_with(self, ops: Sequence[Op]) -> None:
        """Take the ops to be in this order."""
        for position, op in enumerate(ops):
            self._last_reader.update(dict.fromkeys(self.read_by(op), position))

    def read_by(self, op: Op) -> set[int]:
        """What an op reads; views read nothing."""
        return self._read.get(id(op), set())

    def freed_by(self, position: int, op: Op) -> set[int]:
        """What lives until an op has read it."""
        return {
            value
            for value in self.read_by(op)
            if value in self._sizes and self._last_reader[value] == position
        }

    def gains_early(self, op: Op, freed: set[int]) -> bool:
        """Whether less is kept when an op comes as soon as it can: it frees more bytes than its
        results have, or those are so small that what waits for them counts for more."""
        if isinstance(op, View):
            return True
        if not isinstance(op, Call) or op.has_effect or op.inout:
            return False
        taken = sum(self._sizes.get(value, 0) for value in op.results)
        return sum(map(self._sizes.__getitem__, freed)) > taken or 0 < taken <= _SMALL
