"""Compute product spaces again for each direction in which they are reduced, instead of keeping them.

    e[i, j] = exp(x[i] * y[j])                     e[i, j] = exp(x[i] * y[j])
    r[i] = sum over j of e[i, j]           ->      r[i] = sum over j of e[i, j]
    c[j] = sum over i of e[i, j]                   f[j, i] = exp(x[i] * y[j])
                                                   c[j] = sum over i of f[j, i]

One kernel computes e and reduces it without storing it, but only over the same dimensions: sums along
rows and along columns, as the gradient of sum_j f(x_i, y_j) has them, would share an array in memory.
What reductions over the same dimensions need, down to values that are much smaller than the space, is
cloned for them. Where it is made of broadcasts alone, the dimensions that are reduced are the last of
the clone: then several sums keep no more than a row. Leaves alone spaces below `least_bytes`, what
costs more than `max_cost` exponentials for each array that would be stored, what is more than
`max_ops`, and what others need in memory anyway.

example: test/passes/stablehlo/algebra/recompute_products.mlir
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import field

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import is_splat
from lamina.dialects.types import byte_size, dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import copied, remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    COSTLY,
    computes_elements,
    defining,
    in_order,
    ints,
    is_pure,
    is_unused,
    size_of,
    splat_of,
)
from lamina.records import Record

_REDUCE = "stablehlo.reduce"
_BROADCAST, _IOTA = "stablehlo.broadcast_in_dim", "stablehlo.iota"
_MOVES = frozenset((_BROADCAST, _IOTA, CONSTANT))
_GROWTH = 8
"""A space has so many times the elements of what it is made from, or more."""
_CHEAP, _POWER = 0.04, 2.2  # rounding: of an operation of an instruction or two, and of a power, in exponentials

Key = tuple[tuple[int, ...], tuple[int, ...], ir.Block]


class RecomputeProducts(Pass):
    """The pass `stablehlo-recompute-products`."""

    only_with = frozenset(("stablehlo.reduce",))

    least_bytes: int = REFERENCE.l2_bytes // 2
    max_ops: int = 96  # code
    max_cost: float = 2.0  # rounding
    """For each array that is not stored. (Storing and reading it took 0.17 ns an element on one core,
    an exponential and a division 0.27; on several cores memory is shared.)"""

    def run(self, module: ir.Module) -> None:
        classes: dict[Key, _Class] = {}
        for op in find_ops(module, _REDUCE):
            space = op.operands[0].type
            if len(op.results) == 1 and space.has_static_shape and self._is_large(space):
                key = tuple(space.shape), tuple(ints(op, "dimensions")), op.block
                classes.setdefault(key, _Class()).reductions.append(op)
        blocks: dict[ir.Block, list[_Class]] = defaultdict(list)
        for (*_, block), found in classes.items():
            blocks[block].append(found)
        for together in blocks.values():
            self._separate(together)

    def _is_large(self, of: ir.Type) -> bool:
        return byte_size(of) >= self.least_bytes

    def _separate(self, classes: list[_Class]) -> None:
        """Let no two classes need a space that nobody else needs."""
        stored: set[ir.Value] = set()
        while True:
            for found in classes:
                found.read(stored)
            owners: set[ir.Operation] = set()
            for found in classes:
                owners.update(found.members, found.reductions)
            needed = {
                value
                for found in classes
                for op in found.members
                for value in op.results
                if self._is_large(value.type) and not _is_free(op)
                and any(_needs(use.owner.operation, owners) for use in value.uses)
            }  # fmt: skip
            if needed <= stored:
                break
            stored |= needed
        needed_by = Counter(op for found in classes for op in found.members)
        # Those that turn first: what is left to the last of the others is shared no more.
        for found in sorted(reversed(classes), key=lambda found: found.order is None):
            if not found.is_closed or len(found.members) > self.max_ops:
                continue
            order = found.order
            reads = self._reads(found, needed_by)
            if found.cost <= self.max_cost * reads if reads else order is not None:
                needed_by.subtract(found.members.keys())
                found.clone(order)
                self.count("classes")

    def _reads(self, found: _Class, needed_by: Counter[ir.Operation]) -> int:
        """How many arrays a class would read that it and another one need."""
        shared = {
            op
            for op in found.members
            if needed_by[op] > 1 and self._is_large(op.results[0].type) and not _is_free(op)
        }
        inside = {op for op in found.members if op not in shared}.union(found.reductions)
        return sum(any(use.owner.operation in inside for use in op.results[0].uses) for op in shared)


class _Class(Record, frozen=False, eq=False):
    """Reductions of one space over the same dimensions, and what makes their operands."""

    reductions: list[ir.Operation] = field(default_factory=list)
    members: dict[ir.Operation, None] = field(default_factory=dict)
    is_closed: bool = False
    """Whether all that the members read from elsewhere is much smaller than the space."""

    def read(self, stored: set[ir.Value]) -> None:
        """Find the members, which stop at what is stored."""
        self.members, self.is_closed = {}, True
        for reduction in self.reductions:
            space = reduction.operands[0]
            work = [space]
            while work:
                value = work.pop()
                op = defining(value)
                if op is not None and op in self.members:
                    continue
                if size_of(value.type) * _GROWTH <= size_of(space.type):
                    continue
                if op is None or value in stored or op.block != reduction.block or not _is_made(op):
                    self.is_closed = False
                    continue
                self.members[op] = None
                work += op.operands

    @property
    def cost(self) -> float:
        """What the members cost for one element, in exponentials."""
        return sum(_cost(op) for op in self.members)

    @property
    def order(self) -> list[int] | None:
        """The dimensions of the space, those that are reduced last; None if they are, or if what makes
        the space can't be made in that order."""
        shape, reduced = self._space.shape, ints(self.reductions[0], "dimensions")
        order = [*(d for d in range(len(shape)) if d not in reduced), *reduced]
        if order == sorted(order) or not all(_can_be_turned(op, shape, order) for op in self.members):
            return None
        return order

    @property
    def _space(self) -> ir.Type:
        return self.reductions[0].operands[0].type

    def clone(self, order: list[int] | None) -> None:
        """Give the reductions members of their own, with their dimensions in this order."""
        known: dict[ir.Value, ir.Value] = {}
        mine = in_order(self.members)
        for reduction in in_order(self.reductions):
            with ir.InsertionPoint(reduction):
                for op in mine:
                    if op.results[0] not in known and op.is_before_in_block(reduction):
                        copied(op, known) if order is None else _turned(op, order, known)
            reduction.operands[0] = known[reduction.operands[0]]
            if order is not None:
                kept = len(order) - len(ints(reduction, "dimensions"))
                reduction.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(range(kept, len(order)))
        for op in reversed(mine):
            if is_unused(op):
                op.erase()


def _can_be_turned(op: ir.Operation, shape: Sequence[int], order: list[int]) -> bool:
    """Whether the result of an op can be made with its dimensions in this order."""
    if list(op.results[0].type.shape) != list(shape):
        return False
    if op.name == _BROADCAST:
        dims = [order.index(d) for d in ints(op, "broadcast_dimensions")]
        return dims == sorted(dims)
    return True


def _turned(op: ir.Operation, order: list[int], known: dict[ir.Value, ir.Value]) -> None:
    """A copy of an op with the dimensions of its result in this order."""
    with op.location:
        of = op.results[0].type
        shape = [of.shape[d] for d in order]
        if op.name == CONSTANT:
            known[op.results[0]] = hlo.full(splat_of(op.results[0]), shape, dtype_of(of))
            return
        if op.name == _IOTA:
            dimension = order.index(op.attributes["iota_dimension"].value)
            known[op.results[0]] = hlo.iota(shape, dtype_of(of), dimension)
            return
        changed = {}
        if op.name == _BROADCAST:
            dims = [order.index(d) for d in ints(op, "broadcast_dimensions")]
            changed["broadcast_dimensions"] = ir.DenseI64ArrayAttr.get(dims)
        operands = [known.get(value, value) for value in op.operands]
        turned = ir.RankedTensorType.get(shape, of.element_type)
        known[op.results[0]] = remade(op, [turned], operands, **changed).result


def _needs(user: ir.Operation, owners: set[ir.Operation]) -> bool:
    """Whether an op is none of these, nor dead, as the first of what was computed again may be."""
    return user not in owners and not (len(user.results) and is_unused(user) and is_pure(user))


def _is_made(op: ir.Operation) -> bool:
    if op.name == CONSTANT:
        return is_splat(op)
    return computes_elements(op) or op.name in _MOVES


def _is_free(op: ir.Operation) -> bool:
    """Whether it is never stored: fusion computes it wherever it is read."""
    return op.name in _MOVES


def _cost(op: ir.Operation) -> float:
    if op.name in _MOVES:
        return 0.0
    if op.name == "stablehlo.power":
        return _POWER
    return 1.0 if op.name in COSTLY else _CHEAP
