"""Compute cheap values again where they are needed late, instead of keeping them through the peak.

    %t = tanh %a                                    %t = tanh %a
    %g = multiply %a, %t                            %g = multiply %a, %t
    ... use of %g; the peak of memory ...   ->      ... use of %g; the peak of memory ...
    %w = dot_general %g, %dy                        %h = multiply %a, %t
    %d = subtract %a, %t                            %w = dot_general %h, %dy
                                                    %d = subtract %a, %t

Between the forward and the backward half of a gradient lie the residuals of all layers. One that a
few cheap element-wise ops make from others, which are kept anyway, or from small ones is let go:
fusion puts the second computation into the kernels that read it. Leaves alone programs whose peak
is below `least_peak` bytes, values below `least_bytes`, and what takes more than `max_ops` ops.

example: test/passes/stablehlo/algebra/recompute_residuals.mlir
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from itertools import accumulate
from operator import itemgetter

from lamina.dialects.attributes import KIND
from lamina.dialects.types import byte_size
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import copied
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.analysis.facts import CHEAP, CONSTANT, computes_elements

_ROUNDS = 3
_NEAR = 64  # search
"""Ops. Uses within this distance share what is computed again; what it takes may live so much longer."""
_SMALL = 16  # memory
"""A value of a 16th of the bytes may be kept for a large one."""
_VIEW = "stablehlo.reshape"
_FREE = frozenset((_VIEW, CONSTANT, "stablehlo.broadcast_in_dim", "stablehlo.iota"))
"""Not stored: fusion computes these wherever they are read."""
_AGAIN = CHEAP | {"stablehlo.divide"}


class RecomputeResiduals(Pass):
    """The pass `stablehlo-recompute-residuals`."""

    least_peak: int = 4 << 20  # memory
    least_bytes: int = 1 << 16  # memory
    max_ops: int = 8  # search

    def run(self, module: ir.Module) -> None:
        for op in [inner.operation for inner in module.body.operations]:
            if op.name == "func.func" and KIND not in op.attributes:
                for block in op.regions[0].blocks:
                    self._block(block)

    def _block(self, block: ir.Block) -> None:
        sizes = _Sizes()
        all_ = [sizes[v.type] for op in block.operations for v in op.operation.results]
        if sum(size for size in all_ if size >= self.least_bytes) < self.least_peak:
            return
        lives = _Lives(block, sizes)
        for _ in range(_ROUNDS):
            at, peak = lives.peak()
            if peak < self.least_peak:
                return
            # Users first: what they are computed from again may then be let go, too.
            values = reversed(lives.across(at, self.least_bytes))
            let_go = sum(self._let_go(value, at, lives) for value in values)
            self.count("values", let_go)
            if not let_go:
                return

    def _let_go(self, value: ir.Value, at: int, lives: _Lives) -> bool:
        """Give the uses of a value after position `at` values of their own, if that is cheap."""
        clusters = list(_clusters([use for use in lives.uses[value] if use[0] > at]))
        cones = [self._cone(value, at, cluster[0][0], lives) for cluster in clusters]
        if not all(cones):
            return False
        for cluster, cone in zip(clusters, cones, strict=True):
            lives.compute_again(value, cone, cluster)
        return True

    def _cone(self, value: ir.Value, at: int, place: int, lives: _Lives) -> list[int]:
        """The positions of the ops that make a value from what is at hand at `place`; none if they
        are too many or too costly."""
        small = lives.bytes[value] // _SMALL
        members: set[int] = set()
        work = [value]
        costs = 0
        while work:
            position = lives.maker.get(work.pop())
            if position is None:
                return []
            if position in members:
                continue
            members.add(position)
            op = lives.ops[position]
            if op.name not in _FREE:
                costs += 1
                if costs > self.max_ops or op.name not in _AGAIN or not computes_elements(op):
                    return []
            work += [
                operand
                for operand in op.operands
                if not lives.is_at_hand(operand, at, place, small)
            ]
        return sorted(members)


_Use = tuple[int, ir.Operation, int]
"""An operand that is a value or a view of it: the position of the op of the block around it, the op
that has it, and its number."""


def _clusters(uses: list[_Use]) -> Iterator[list[_Use]]:
    """Uses in order, cut where two neighbours are far from each other."""
    cluster: list[_Use] = []
    for use in uses:
        if cluster and use[0] > cluster[-1][0] + _NEAR:
            yield cluster
            cluster = []
        cluster.append(use)
    yield cluster


class _Lives:
    """Where the values of a block are made and used. A view is a use of nothing, and has the uses
    of what it views for its own."""

    def __init__(self, block: ir.Block, sizes: _Sizes) -> None:
        self.ops = [inner.operation for inner in block.operations]
        self.maker: dict[ir.Value, int] = {}
        self.uses: dict[ir.Value, list[_Use]] = {value: [] for value in block.arguments}
        self.bytes: dict[ir.Value, int] = {}
        self._viewed: dict[ir.Value, ir.Value] = {}
        self._returned: set[ir.Value] = set()
        self._first_at: dict[int, ir.Operation] = {}  # of the ops computed again, by their use
        for position, op in enumerate(self.ops):
            name = op.name
            if name == _VIEW:
                self._viewed[op.results[0]] = self._root(op.operands[0])
            else:
                self._note_uses(position, op)
            for result in op.results:
                self.maker[result] = position
                self.uses[result] = []
                self.bytes[result] = 0 if name in _FREE else sizes[result.type]
        self._returned.update(map(self._root, self.ops[-1].operands))

    def _root(self, value: ir.Value) -> ir.Value:
        return self._viewed.get(value, value)

    def _note_uses(self, position: int, op: ir.Operation) -> None:
        uses_of, viewed = self.uses, self._viewed
        for number, value in enumerate(op.operands):
            uses = uses_of.get(viewed.get(value, value) if viewed else value)
            if uses is not None:
                uses.append((position, op, number))
        if len(op.regions):
            for region in op.regions:
                for block in region.blocks:
                    for inner in block.operations:
                        self._note_uses(position, inner.operation)

    def peak(self) -> tuple[int, int]:
        """Where the values that are alive take most bytes, and how many."""
        change = [0] * (len(self.ops) + 1)
        sizes, all_uses = self.bytes, self.uses
        for value, made in self.maker.items():
            size = sizes[value]
            if size and (uses := all_uses[value]) and value not in self._returned:
                change[made] += size
                change[uses[-1][0] + 1] -= size
        alive = list(accumulate(change))
        peak = max(alive)
        return alive.index(peak), peak

    def across(self, at: int, least: int) -> list[ir.Value]:
        """The values of `least` bytes or more that are made before a position and used after it."""
        return [
            value
            for value, made in self.maker.items()
            if made < at
            and self.bytes[value] >= least
            and (uses := self.uses[value])
            and uses[-1][0] > at
            and value not in self._returned
        ]

    def is_at_hand(self, value: ir.Value, at: int, place: int, small: int) -> bool:
        """Whether a value that lives at `at` may be read at `place`, behind it, at no cost to speak of."""
        root = self._root(value)
        last = self.uses[root][-1][0] if self.uses.get(root) else -1
        if root not in self.maker:  # an argument, which may be overwritten after its last use
            return last >= place
        if root in self._returned:
            return True
        size = self.bytes[root]
        return 0 < size <= small or (size > 0 and last > at and last + _NEAR >= place)

    def compute_again(self, value: ir.Value, cone: list[int], uses: list[_Use]) -> None:
        """Clone the ops of a cone before the first of `uses`, which get the clone of `value`."""
        position = uses[0][0]
        before = self._first_at.get(position, self.ops[position])
        copies: dict[ir.Value, ir.Value] = {}
        with ir.InsertionPoint(before):
            clones = [copied(self.ops[member], copies) for member in cone]
            for _, op, number in uses:
                op.operands[number] = self._copy_of(op.operands[number], copies)
        self._first_at[position] = clones[0]
        self.uses[value] = [use for use in self.uses[value] if use not in uses]
        for clone in clones:
            for number, operand in enumerate(clone.operands):
                known = self.uses.get(self._root(operand))
                if known is not None:
                    insort(known, (position, clone, number), key=itemgetter(0))

    def _copy_of(self, value: ir.Value, copies: dict[ir.Value, ir.Value]) -> ir.Value:
        """The clone of a value, or of a view of it."""
        if value not in copies:
            view = self.ops[self.maker[value]]
            self._copy_of(view.operands[0], copies)
            copied(view, copies)
        return copies[value]


class _Sizes(dict[ir.Type, int]):
    """The bytes of values by their types; 0 where that is not known."""

    def __missing__(self, of: ir.Type) -> int:
        is_known = isinstance(of, ir.RankedTensorType) and of.has_static_shape
        self[of] = size = byte_size(of) if is_known else 0
        return size
