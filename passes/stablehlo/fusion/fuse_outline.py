"""How `stablehlo-fuse` turns groups into kernel functions and calls of them."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import INOUT, KIND, LIBRARY, MATRIX_PRODUCTS, MAY_ALIAS, REASON
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import CONSTANT
from lamina.passes.stablehlo.analysis.kernel_functions import Kernels
from lamina.passes.stablehlo.analysis.lapack import Lapack
from lamina.passes.stablehlo.analysis.scalar_work import is_scalar_op
from lamina.passes.stablehlo.fusion import fuse_ops
from lamina.passes.stablehlo.fusion.fuse_graph import ON_OUTER, Group
from lamina.passes.stablehlo.fusion.fuse_grouping import Grouping, Member, Sources
from lamina.passes.stablehlo.fusion.fuse_ops import SeenValue
from lamina.passes.stablehlo.fusion.fuse_parts import is_cut_out_in_place
from lamina.passes.stablehlo.fusion.fuse_reasons import reason
from lamina.passes.stablehlo.fusion.fuse_scalars import Callees, is_called


class Outliner:
    """Rewrites one block as its groups say."""

    def __init__(
        self,
        block: ir.Block,
        grouping: Grouping,
        kernels: Kernels,
        callees: Callees | None = None,
        solved_in_place: bool = True,
    ) -> None:
        """`callees`: what kernels of scalars call, where they may."""
        self._block = block
        self._callees = callees
        self._solved_in_place = solved_in_place
        self._grouping = grouping
        self._kernels = kernels
        self._ops = grouping.ops
        self._seen = grouping.seen
        self._now: dict[SeenValue, ir.Value] = {}
        """What stands for a value of the old block in the new one."""
        self._orders: dict[Group, list[Member]] = {}
        self._known_sources: dict[Group, dict[Member, Sources]] = {}

    def run(self) -> None:
        """Replace the ops of each group by one call, in an order in which all values are made
        before they are read."""
        groups = self._grouping.graph.groups()
        arguments = {g: self._arguments(g) for g in groups if g.kind != "main"}
        stored = self._stored(groups, arguments)
        terminator = self._ops[-1]
        constants = [op.op for op in self._seen if op.name == CONSTANT]
        order = list(_in_order(groups))
        # All kernels first: a call's results take the place of values that kernels are made from.
        callees = {
            group: self._outline(group, arguments[group], stored.get(group, []))
            for group in order
            if group.kind != "main"
        }
        for group in order:
            if group.kind == "main":
                self._move(group, terminator)
            else:
                with ir.InsertionPoint(terminator):
                    self._call(callees[group], arguments[group], stored.get(group, []), group)
        for op in reversed(self._seen):
            if not op.stays_in_main or op.name == fuse_ops.BARRIER:
                op.op.erase()
        _constants_first(self._block, constants)

    def _arguments(self, group: Group) -> list[SeenValue]:
        """What a group reads from memory, each once; an update takes its operands as they come."""
        found: dict[SeenValue, None] = {}
        sources = self._sources(group)
        is_library = group.library is not None
        overwritten: list[SeenValue] = []
        for member in self._members(group):
            kept = self._overwritten(member)
            overwritten += [value for value, _ in sources[member][:kept]]
            for value, inside in sources[member][kept:]:
                if inside is None and (is_library or not value.cloned):
                    found[value] = None
        return [*overwritten, *found]

    def _overwritten(self, member: Member) -> int:
        """How many of a member's first operands its results overwrite: those of an update."""
        op = self._ops[member[0]]
        return fuse_ops.inout_operands(op) if op.name in fuse_ops.UPDATES else 0

    def _sources(self, group: Group) -> dict[Member, Sources]:
        """For each member of a group, where its operands are from."""
        known = self._known_sources.get(group)
        if known is None:
            known = {member: self._grouping.sources(group, member) for member in group.members}
            self._known_sources[group] = known
        return known

    def _members(self, group: Group) -> list[Member]:
        """A group's members, makers before readers, in an order that only its own ops decide:
        equal groups become equal kernels wherever in the program their ops stood."""
        known = self._orders.get(group)
        if known is not None:
            return known
        if len(group.members) == 1:
            known = self._orders[group] = list(group.members)
            return known
        inner = {
            member: [inside for _, inside in operands if inside is not None]
            for member, operands in self._sources(group).items()
        }
        read = {inside for operands in inner.values() for inside in operands}
        order: dict[Member, None] = {}
        for root in _sorted(group):
            if root in read:
                continue
            work = [(root, iter(inner[root]))]
            while work:
                member, operands = work[-1]
                for following in operands:
                    if following not in order:
                        work.append((following, iter(inner[following])))
                        break
                else:
                    order[member] = None
                    work.pop()
        known = self._orders[group] = list(order)
        return known

    def _stored(
        self, groups: list[Group], arguments: dict[Group, list[SeenValue]]
    ) -> dict[Group, list[SeenValue]]:
        """The values each group must store, in their order."""
        read: dict[SeenValue, None] = {}
        for group in groups:
            if group.kind == "main":
                ((position, _),) = group.members
                values = [*self._seen[position].operands, *self._grouping.captured(position)]
            else:
                values = arguments[group]
            read |= dict.fromkeys(values)
        stored: dict[Group, list[SeenValue]] = {}
        for position in sorted(self._grouping.owner):
            owner = self._grouping.owner[position]
            owner = owner.find()
            if owner.kind != "main":
                results = self._seen[position].results
                if owner.kind != "update":  # each result of an update is one of its operands
                    results = tuple([r for r in results if r in read])
                stored.setdefault(owner, []).extend(results)
        return stored

    def _move(self, group: Group, terminator: ir.Operation) -> None:
        ((position, _),) = group.members
        op = self._ops[position]
        if op.name == fuse_ops.BARRIER:
            for result, operand in zip(self._seen[position].results, op.operands):
                result.value.replace_all_uses_with(operand)
                self._now[result] = operand
        elif op != terminator and op.name != CONSTANT:
            op.move_before(terminator)

    def _call(
        self, callee: str, arguments: list[SeenValue], stored: list[SeenValue], group: Group
    ) -> None:
        with self._root(group).location:
            operands = [self._now.get(seen, seen.value) for seen in arguments]
            results = hlo.call(callee, operands, [value.type for value in stored])
        for old, new in zip(stored, results):
            old.value.replace_all_uses_with(new)
            self._now[old] = new

    def _root(self, group: Group) -> ir.Operation:
        """The op a kernel is named after: its last reduction or contraction, or its last op."""
        if len(group.members) == 1:
            ((position, _),) = group.members
            return self._ops[position]
        positions = {position for position, _ in group.members}
        heavy = [p for p in positions if not self._seen[p].joins_loops]
        return self._ops[max(heavy or positions)]

    def _outline(self, group: Group, arguments: list[SeenValue], stored: list[SeenValue]) -> str:
        """The kernel function of a group; returns its name."""
        key = self._key(group, arguments, stored)
        name = self._kernels.names_of_groups.get(key)
        if name is None:
            name = self._kernels.names_of_groups[key] = self._make(group, arguments, stored)
        return name

    def _key(
        self, group: Group, arguments: list[SeenValue], stored: list[SeenValue]
    ) -> Hashable:
        """Equal for groups whose kernels would be."""
        sources = self._sources(group)
        members = self._members(group)
        numbers = {value: number for number, value in enumerate(arguments)}
        index = {member: number for number, member in enumerate(members)}
        is_library = group.library is not None
        parts: list[Hashable] = []
        for member in members:
            position, place = member
            part: list[Hashable] = [self._seen[position].key, place == ON_OUTER]
            overwritten = self._overwritten(member)
            for number, (value, inside) in enumerate(sources[member]):
                if inside is not None:
                    part.append((index[inside], value.number))
                elif number < overwritten:
                    part.append(number)
                elif is_library or not value.cloned:
                    part.append(numbers[value])
                else:
                    part.append(value.constant_key)
            parts.append(tuple(part))
        results = [(index[_stored_member(group, v)], v.number) for v in stored]
        types = tuple([value.type for value in arguments])
        return (group.kind, group.library, group.shape, types, tuple(parts), tuple(results))

    def _make(self, group: Group, arguments: list[SeenValue], stored: list[SeenValue]) -> str:
        root = self._root(group)
        with self._kernels.insertion_point(), root.location:
            function, block = hlo.function(
                "", [v.type for v in arguments], [v.type for v in stored], "private"
            )
        attributes = function.attributes
        kind = self._kind(group, arguments)
        attributes[KIND] = ir.StringAttr.get(kind)
        of_module = function.parent.attributes
        if group.library:
            attributes[LIBRARY] = ir.StringAttr.get(group.library)
        elif MATRIX_PRODUCTS in of_module and root.name == "stablehlo.dot_general":
            attributes[MATRIX_PRODUCTS] = of_module[MATRIX_PRODUCTS]
        attributes[REASON] = ir.StringAttr.get(reason(group, self._ops))
        given = dict(zip(arguments, block.arguments))
        made = self._fill(block, group, given, self._callees if kind == "scalar" else None)
        with ir.InsertionPoint(block), root.location:
            hlo.return_([made[_stored_member(group, v)][v.number] for v in stored])
        each = self._argument_attributes(group, arguments, stored)
        if any(each):
            attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(given) for given in each])
        return self._kernels.add(function, root.name.split(".")[-1])

    def _kind(self, group: Group, arguments: list[SeenValue]) -> str:
        if group.kind != "loop" or any(value.shape for value in arguments):
            return group.kind
        ops = (self._ops[position] for position, _ in group.members)
        if self._callees is None:
            is_scalar = all(map(is_scalar_op, ops))
        else:
            is_scalar = all(is_scalar_op(op) or is_called(op) for op in ops)
        return "scalar" if is_scalar else group.kind

    def _fill(
        self,
        block: ir.Block,
        group: Group,
        given: dict[SeenValue, ir.Value],
        callees: Callees | None,
    ) -> dict[Member, list[ir.Value]]:
        made: dict[Member, list[ir.Value]] = {}
        constants: dict[SeenValue, ir.Value] = {}
        with ir.InsertionPoint(block) as end:
            for member in self._members(group):
                operands = []
                overwritten = self._overwritten(member)
                for number, (value, inside) in enumerate(self._sources(group)[member]):
                    if inside is not None:
                        operands.append(made[inside][value.number])
                    elif number < overwritten:
                        operands.append(block.arguments[number])
                    elif _is_cloned(value, group):
                        if value not in constants:
                            constant = value.value.owner.operation.clone(end).operation
                            constants[value] = constant.results[0]
                        operands.append(constants[value])
                    else:
                        operands.append(given[value])
                op = self._ops[member[0]]
                if callees is not None and not is_scalar_op(op):
                    made[member] = callees.call(op, operands)
                    continue
                clone = op.clone(end).operation
                for number, operand in enumerate(operands):
                    clone.operands[number] = operand
                made[member] = list(clone.results)
        return made

    def _argument_attributes(
        self, group: Group, arguments: list[SeenValue], stored: list[SeenValue]
    ) -> list[dict[str, ir.Attribute]]:
        each: list[dict[str, ir.Attribute]] = [{} for _ in arguments]
        if group.kind == "update":
            for number, value in enumerate(stored):
                each[value.number][INOUT] = _i32(number)
        elif group.kind == "loop" and (len(stored) == 1 or not group.cuts):  # each part writes all results
            elsewhere = self._read_elsewhere(group)
            for number, value in enumerate(arguments):
                same = [r for r, result in enumerate(stored) if result.type == value.type]
                if same and value not in elsewhere:
                    each[number][MAY_ALIAS] = ir.DenseI64ArrayAttr.get(same)
        elif group.kind == "library" and self._solved_in_place:
            self._let_library_overwrite(group, arguments, stored, each)
        return each

    def _let_library_overwrite(
        self, group: Group, arguments: list[SeenValue], stored: list[SeenValue],
        each: list[dict[str, ir.Attribute]],
    ) -> None:  # fmt: skip
        op = self._seen[next(iter(group.members))[0]]
        routine = Lapack.of(op.op)
        if routine is None or routine.in_place is None:
            return
        operand, result = op.operands[routine.in_place[0]], op.results[routine.in_place[1]]
        if op.operands.count(operand) == 1 and result in stored and result.type == operand.type:
            place = ir.DenseI64ArrayAttr.get([stored.index(result)])
            each[arguments.index(operand)][MAY_ALIAS] = place

    def _read_elsewhere(self, group: Group) -> set[SeenValue]:
        """Values that a group reads at another index than that of the point it computes."""
        found = set()
        for position, place in group.members:
            op = self._seen[position]
            exact = (place == ON_OUTER and op.elementwise) or is_cut_out_in_place(op, place)
            for value in op.operands:
                if not exact or value.shape != group.shape:
                    found.add(value)
        return found


def _in_order(groups: list[Group]) -> Iterator[Group]:
    """The groups, producers first, else as the ops came."""
    last = {g: max(position for position, _ in g.members) for g in groups}
    waiting = {g: len(g.producers) for g in groups}
    ready = [(last[g], g.number, g) for g in groups if not waiting[g]]
    heapq.heapify(ready)
    while ready:
        group = heapq.heappop(ready)[2]
        yield group
        for consumer in group.consumers:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                heapq.heappush(ready, (last[consumer], consumer.number, consumer))


def _sorted(group: Group) -> list[Member]:
    return sorted(group.members, key=lambda member: (member[0], member[1].domain))


def _is_cloned(value: SeenValue, group: Group) -> bool:
    """Whether a group has its own copy of a constant; libraries read theirs from memory."""
    return value.cloned and group.library is None


def _stored_member(group: Group, value: SeenValue) -> Member:
    place = None if value.maker is None else group.stored_at(value.maker)
    assert value.maker is not None and place is not None, f"{value.value} is not its group's"
    return value.maker, place


def _i32(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)


def _constants_first(block: ir.Block, constants: list[ir.Operation]) -> None:
    """Erase constants that only kernels read, and put the others where all can read them."""
    for op in constants:
        if next(iter(op.results[0].uses), None) is None:
            op.erase()
        else:
            first = block.operations[0].operation
            if first != op:
                op.move_before(first)
