"""Cut slices out of the parts of a concatenation where it is otherwise not needed.

    %0 = stablehlo.concatenate %a, %b, dim = 0         %0 = stablehlo.slice %a [2:4, 0:3]
    %1 = stablehlo.slice %0 [2:9, 0:3]           ->    %1 = stablehlo.slice %b [0:5, 0:3]
                                                       %2 = stablehlo.concatenate %0, %1, dim = 0

So a crop of a padded image copies what it keeps, and an array that is padded by reflection or rolled along
two dimensions is put together once: slices of the concatenation along the first dimension are what the one
along the second consists of, and `stablehlo-fuse` makes one kernel of concatenations of concatenations. Looks
through reverses and through what is repeated along other dimensions. Leaves alone what is read in any other
way, too, since that has to be put together in memory anyway, and what would come in many parts.

example: test/passes/stablehlo/piecewise/take_parts.mlir
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import defining, has_one_use, ints
from lamina.passes.stablehlo.fusion.fuse_parts import MOST_PARTS
from lamina.passes.stablehlo.piecewise.parts_of_values import Box, Parts

_CONCATENATE, _SLICE, _REVERSE, _BROADCAST = (
    f"stablehlo.{name}" for name in ("concatenate", "slice", "reverse", "broadcast_in_dim")
)
_VIEWS = (_SLICE, _REVERSE, _BROADCAST)


class TakeParts(Pass):
    """The pass `stablehlo-take-parts`."""

    only_with = frozenset(("stablehlo.concatenate",))

    def run(self, module: ir.Module) -> None:
        if not find_ops(module, _SLICE):
            return
        apart: set[ir.Operation] = set()
        views: list[ir.Operation] = []
        for op in find_ops(module, _CONCATENATE):
            chains = _chains(op)
            if chains is not None:
                apart.add(op)
                views += [chain[-1] for chain in chains if chain]
        dead: list[ir.Operation] = []  # users first
        for view in reversed(views):
            if view in dead:
                continue
            with ir.InsertionPoint(view), view.location:
                taken = _Taken(apart).whole(view.results[0])
            view.results[0].replace_all_uses_with(taken)
            _note_dead(view, dead)
            self.count("slices")
        for op in dead:
            op.erase()


def _chains(op: ir.Operation) -> list[list[ir.Operation]] | None:
    """The views by way of which a concatenation is read, one after the other for each use; None if it should
    stay. Several all end in one other concatenation."""
    dim = op.attributes["dimension"].value
    chains: list[list[ir.Operation]] = []
    ends: set[ir.Operation | None] = set()
    for use in op.results[0].uses:
        chain, end = _chain(use.owner.operation, op.block, dim)
        chains.append(chain)
        ends.add(end)
    if None in ends or not any(view.name == _SLICE for chain in chains for view in chain):
        return None
    if len(chains) > 1 and not _is_one_concatenation(ends, dim):
        return None
    return chains if _count(op) * len(chains) <= MOST_PARTS else None


def _chain(
    user: ir.Operation, block: ir.Block, dim: int
) -> tuple[list[ir.Operation], ir.Operation | None]:
    """The views from a use on, and what reads the last; None if they do not come in parts, or it is done more
    often."""
    chain: list[ir.Operation] = []
    while user.name in _VIEWS and user.block == block:
        if not _comes_in_parts(user, dim) or not has_one_use(user.results[0]):
            return chain, None
        chain.append(user)
        user = next(iter(user.results[0].uses)).owner.operation
    return chain, user if user.block == block else None


def _is_one_concatenation(ends: Iterable[ir.Operation | None], dim: int) -> bool:
    (end, *others) = ends
    return (
        not others and end is not None and end.name == _CONCATENATE and end.attributes["dimension"].value != dim
    )


def _comes_in_parts(view: ir.Operation, dim: int) -> bool:
    """Whether parts of an array along a dimension are parts of its view along it."""
    if view.name == _SLICE:
        return ints(view, "strides")[dim] == 1
    if view.name == _BROADCAST:
        before, after = view.operands[0].type.shape, view.results[0].type.shape
        same = ints(view, "broadcast_dimensions") == list(range(len(after)))
        return same and before[dim] == after[dim]
    return True


def _count(op: ir.Operation) -> int:
    """How many parts a concatenation has, those of concatenations in it for themselves."""
    found = 0
    for value in op.operands:
        inner = defining(value)
        while inner is not None and inner.name in _VIEWS:
            inner = defining(inner.operands[0])
        found += _count(inner) if inner is not None and inner.name == _CONCATENATE else 1
    return found


class _Taken(Parts):
    """Views of concatenations that are taken apart, of others as they are."""

    def __init__(self, apart: set[ir.Operation]) -> None:
        super().__init__()
        self._apart = apart

    def whole(self, value: ir.Value) -> ir.Value:
        op = defining(value)
        made = None
        if op is not None and op.name in _VIEWS and self._above(op) is not None:
            made = self.made_by(op, tuple((0, size, 1) for size in value.type.shape))
        return value if made is None else made

    def made_by(self, op: ir.Operation, box: Box) -> ir.Value | None:
        """A part of what a view or a concatenation makes, put together from what lies in one part each."""
        together = self._above(op)
        if together is None:
            return super().made_by(op, box) if op.name in _VIEWS else None
        dim = together.attributes["dimension"].value
        low, high, step = box[dim]
        boundaries = [at for at in _boundaries(op, dim) if low < at < high]
        if step != 1 or not boundaries:
            return super().made_by(op, box)
        pieces = itertools.pairwise([low, *boundaries, high])
        boxes = [(*box[:dim], (*piece, 1), *box[dim + 1 :]) for piece in pieces]
        return hlo.concatenate([self.part(op.results[0], one) for one in boxes], dim)

    def _above(self, op: ir.Operation) -> ir.Operation | None:
        """The concatenation to take apart that an op is, or looks at."""
        above: ir.Operation | None = op
        while above is not None and above.name in _VIEWS:
            above = defining(above.operands[0])
        return above if above is not None and above in self._apart else None


def _boundaries(op: ir.Operation, dim: int) -> list[int]:
    """Where parts of a concatenation along a dimension begin in it, or in a view of it."""
    size = op.results[0].type.shape[dim]
    if op.name == _CONCATENATE:
        return list(itertools.accumulate(value.type.shape[dim] for value in op.operands))[:-1]
    above = defining(op.operands[0])
    assert above is not None
    found = _boundaries(above, dim)
    if op.name == _SLICE:
        start = ints(op, "start_indices")[dim]
        found = [at - start for at in found]
    elif op.name == _REVERSE and dim in ints(op, "dimensions"):
        found = [size - at for at in reversed(found)]
    return [at for at in found if 0 < at < size]


def _note_dead(op: ir.Operation, dead: list[ir.Operation]) -> None:
    """Adds an op that nothing reads any more, and the views and concatenations that only such ops read."""
    if op in dead or any(use.owner.operation not in dead for use in op.results[0].uses):
        return
    dead.append(op)
    for value in op.operands:
        maker = defining(value)
        if maker is not None and maker.name in (*_VIEWS, _CONCATENATE):
            _note_dead(maker, dead)
