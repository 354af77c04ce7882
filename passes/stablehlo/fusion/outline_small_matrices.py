"""Make one kernel of ops that do the same to each of many small matrices.

    %lu:3 = custom_call @lamina.lapack.getrf(%a)    func.func private @fused_triangular_solve_0(%a, %b)
    %p = broadcast_in_dim %lu#2                       attributes {lamina.kind = "library",
    %y = gather %b, %p                         ->       lamina.library = "lamina.small_matrices",
    %z = triangular_solve %lu#0, %y                     lamina.reason = "getrf, rows, 2 trsm of ..."}
    %x = triangular_solve %lu#0, %z

The backend gives each matrix a vector lane and keeps what passes from op to op there: a system of
equations is solved without its factors ever being in memory. Ops join the kernel of one of their
operands unless what they need outside depends on it. Left alone are matrices of more than 32 rows
or columns and batches of less than four, which LAPACK or loops do.

example: test/passes/stablehlo/fusion/outline_small_matrices.mlir
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import field

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import KIND, LIBRARY, REASON
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import copied
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import is_pure, is_unused
from lamina.passes.stablehlo.analysis.kernel_functions import Kernels
from lamina.passes.stablehlo.analysis.small_matrices import (
    SMALL_MATRICES,
    SmallMatrices,
    numbers_of,
)
from lamina.passes.stablehlo.fusion import fuse_ops
from lamina.records import Record

_NAMES = ("stablehlo.custom_call", "stablehlo.triangular_solve", "stablehlo.cholesky")
_MOST_NUMBERS = REFERENCE.l2_bytes * 3 // 8 // 64  # for each matrix of the batch, of which 64 bytes are done at once


class OutlineSmallMatrices(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.cholesky", "stablehlo.custom_call", "stablehlo.triangular_solve"))

    def run(self, module: ir.Module) -> None:
        kernels = Kernels(module)
        for op in [inner.operation for inner in module.body.operations]:
            if op.name == "func.func" and KIND not in op.attributes:
                self._regions(op, kernels)
        self.count("kernels", len(kernels))

    def _regions(self, op: ir.Operation, kernels: Kernels) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in [view.operation for view in block.operations]:
                    if len(inner.regions):
                        self._regions(inner, kernels)
                if any(view.operation.name in _NAMES for view in block.operations):
                    _Block(block).outline(kernels)


class _Group(Record, frozen=False, eq=False):
    """Ops that become one kernel, by their positions in the block."""

    number: int
    batch: int
    element: str
    numbers: int
    """Elements of its arrays, for each matrix."""
    members: dict[int, SmallMatrices] = field(default_factory=dict)
    depends: int = 0
    """The groups whose results it needs, by way of other ops, as the bits of a number."""


class _Block:
    """The groups of a block."""

    def __init__(self, block: ir.Block) -> None:
        self._ops = [inner.operation for inner in block.operations]
        self._makers = {r: position for position, op in enumerate(self._ops) for r in op.results}
        self._needs = self._all_needs()
        self._groups: list[_Group] = []
        self._group_of: dict[int, _Group] = {}
        self._depends = [0] * len(self._ops)
        """The groups that an op outside of groups depends on."""

    def outline(self, kernels: Kernels) -> None:
        """Replace each group by a call of a kernel."""
        for position, op in enumerate(self._ops):
            small = SmallMatrices.of(op)
            if small is None or not self._place(position, small):
                self._depends[position] = self._bits(self._needs[position])
        if not self._groups:
            return
        order = self._in_order()
        terminator = self._ops[-1]
        # All kernels first: a call's results take the place of values that kernels are made from.
        calls = {group: self._outline(group, kernels) for group in self._groups}
        now: dict[ir.Value, ir.Value] = {}
        for node in order:
            if isinstance(node, _Group):
                callee, arguments, results = calls[node]
                with ir.InsertionPoint(terminator), self._root(node).location:
                    given = [now.get(value, value) for value in arguments]
                    called = hlo.call(callee, given, [value.type for value in results])
                for old, new in zip(results, called):
                    old.replace_all_uses_with(new)
                    now[old] = new
            else:
                self._ops[node].move_before(terminator)
        smalls = (small for group in self._groups for small in group.members.values())
        views = {view.results[0] for small in smalls for view in small.views}
        for position in reversed(range(len(self._ops))):
            op = self._ops[position]
            if position in self._group_of or _is_in(op, views) and is_unused(op):
                op.erase()

    def _all_needs(self) -> list[list[int]]:
        """The positions of what must come before each op; effects keep their order."""
        found = []
        effect: int | None = None
        for position, op in enumerate(self._ops):
            values = [*op.operands, *(fuse_ops.captured(op) if len(op.regions) else ())]
            needs = {self._makers[value] for value in values if value in self._makers}
            if not is_pure(op):
                needs |= set() if effect is None else {effect}
                effect = position
            found.append(sorted(needs))
        return found

    # ---- which ops
    def _place(self, position: int, small: SmallMatrices) -> bool:
        """Put an op into a group, if that makes no cycle."""
        numbers = numbers_of(self._ops[position].results, small.batch)
        inputs = [self._makers[value] for value in small.operands if value in self._makers]
        makers = {self._group_of[need].number for need in inputs if need in self._group_of}
        for number in sorted(makers, reverse=True):
            group = self._groups[number]
            fits = small.batch == group.batch and (small.element or group.element) == group.element
            through = [need for need in inputs if self._group_of.get(need) is not group]
            if not fits or group.numbers + numbers > _MOST_NUMBERS:
                continue
            if not self._reaches(self._bits(through), group):
                self._join(position, small, group, inputs, numbers)
                return True
        if not small.is_worth_a_kernel:
            return False
        numbers += numbers_of(small.operands, small.batch)
        group = _Group(len(self._groups), small.batch, small.element, 0)
        self._groups.append(group)
        self._join(position, small, group, inputs, numbers)
        return True

    def _join(
        self, position: int, small: SmallMatrices, group: _Group, inputs: list[int], numbers: int
    ) -> None:
        group.members[position] = small
        group.numbers += numbers
        group.depends |= self._bits(inputs) & ~(1 << group.number)
        self._needs[position] = inputs  # not its views, which may need the group
        self._group_of[position] = group

    def _bits(self, needs: Iterable[int]) -> int:
        """The groups that ops are of or depend on."""
        found = 0
        for need in needs:
            group = self._group_of.get(need)
            found |= self._depends[need] if group is None else 1 << group.number
        return found

    def _reaches(self, groups: int, wanted: _Group) -> bool:
        seen = 0
        while groups & ~seen:
            number = (groups & ~seen).bit_length() - 1
            seen |= 1 << number
            groups |= self._groups[number].depends
        return bool(seen >> wanted.number & 1)

    # ---- their kernels
    def _in_order(self) -> list[int | _Group]:
        """Ops and groups, makers before users, else as the ops came; without the terminator."""

        def node_of(position: int) -> int | _Group:
            return self._group_of.get(position, position)

        needs: dict[int | _Group, set[int | _Group]] = {}
        last: dict[int | _Group, int] = {}
        for position in range(len(self._ops) - 1):
            node = node_of(position)
            last[node] = position
            found = needs.setdefault(node, set())
            found.update(n for n in map(node_of, self._needs[position]) if n is not node)
        users: dict[int | _Group, list[int | _Group]] = {node: [] for node in needs}
        for node, before in needs.items():
            for other in before:
                users[other].append(node)
        waiting = {node: len(before) for node, before in needs.items()}
        ready = [last[node] for node in needs if not waiting[node]]
        heapq.heapify(ready)
        order = []
        while ready:
            node = node_of(heapq.heappop(ready))
            order.append(node)
            for user in users[node]:
                waiting[user] -= 1
                if not waiting[user]:
                    heapq.heappush(ready, last[user])
        return order

    def _root(self, group: _Group) -> ir.Operation:
        return self._ops[max(group.members)]

    def _outline(
        self, group: _Group, kernels: Kernels
    ) -> tuple[str, list[ir.Value], list[ir.Value]]:
        """The name of a group's kernel, what it is given and what it gives."""
        members = sorted(group.members.items())
        inside = {self._ops[position].results[0] for position, _ in members}
        arguments: dict[ir.Value, None] = {}
        for _, small in members:
            for value in small.operands:
                if self._group_of.get(self._makers.get(value, -1)) is not group:
                    arguments[value] = None
        views = {view.results[0] for _, small in members for view in small.views}
        results = [
            result
            for position, _ in members
            for result in self._ops[position].results
            if any(not _stays_inside(use.owner.operation, inside, views) for use in result.uses)
        ]
        root = self._root(group)
        with kernels.insertion_point(), root.location:
            function, block = hlo.function(
                "", [v.type for v in arguments], [v.type for v in results], "private"
            )
        attributes = function.attributes
        attributes[KIND] = ir.StringAttr.get("library")
        attributes[LIBRARY] = ir.StringAttr.get(SMALL_MATRICES)
        attributes[REASON] = ir.StringAttr.get(_reason(group, root))
        now = dict(zip(arguments, block.arguments))
        with ir.InsertionPoint(block), root.location:
            for position, small in members:
                for op in [*small.views, self._ops[position]]:
                    if op.results[0] in now:
                        continue
                    copied(op, now)
            hlo.return_([now[value] for value in results])
        return kernels.add(function, root.name.split(".")[-1]), list(arguments), results


def _stays_inside(user: ir.Operation, members: set[ir.Value], views: set[ir.Value]) -> bool:
    """Whether a user of a value is in the kernel, or a view that only ops of the kernel use."""
    if _is_in(user, members):
        return True
    return _is_in(user, views) and all(
        _stays_inside(use.owner.operation, members, views) for use in user.results[0].uses
    )


def _is_in(op: ir.Operation, first_results: set[ir.Value]) -> bool:
    return len(op.results) > 0 and op.results[0] in first_results


def _reason(group: _Group, root: ir.Operation) -> str:
    counts = Counter(small.routine for small in group.members.values())
    what = ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts.items())
    matrix = "x".join(map(str, list(root.operands[0].type.shape)[-2:]))
    return f"{what} of {matrix} {group.batch} times, one in each vector lane"
