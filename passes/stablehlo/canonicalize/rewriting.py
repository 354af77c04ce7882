"""Rewriting by rules: look at each op, replace it if a rule knows something better for it, and look
again at what that could have changed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import islice

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import CONSTANT, defining, is_droppable, is_unused
from lamina.records import Record

Rule = Callable[[ir.Operation], "ir.Value | Sequence[ir.Value] | None"]
"""Gives the values that replace an op's results, or None. It builds new ops at the ambient
insertion point, which is just before the op, and changes nothing else."""

Rules = Mapping[str, Sequence[Rule]]
"""Rules by the name of the op that they look at."""

_LOOKS = 8  # at an op, on average
_RESHAPE = "stablehlo.reshape"
_ONLY_CONSTANTS = frozenset((CONSTANT,))
_Block = ir.Block


def needs_operand_of(*names: str) -> Callable[[Rule], Rule]:
    """Says of a rule that it gives None for an op that has no operand made by an op of these names,
    so that it need not be asked."""

    def mark(rule: Rule) -> Rule:
        _needed[rule] = frozenset(f"stablehlo.{name}" for name in names)
        return rule

    return mark


def decided_by_constants(rule: Rule) -> Rule:
    """Says of a rule that it gives None for an op without a constant among its operands, and that
    whether it does for others only these constants decide: it is asked once about equal ones."""
    _needed[rule] = _ONLY_CONSTANTS
    _decided.add(rule)
    return rule


def builds_chains(rule: Rule) -> Rule:
    """Says of a rule that what it gives is made of new ops several deep, each of which is to be looked at."""
    _chains.add(rule)
    return rule


_chains: set[Rule] = set()
_MOST_OF_A_CHAIN = 32  # search: ops
_needed: dict[Rule, frozenset[str]] = {}
_decided: set[Rule] = set()


def rewrite(
    module: ir.Module, rules: Rules, of_constants: Mapping[str, Rule] | None = None
) -> Counter[str]:
    """Apply rules until none applies, operands before users; returns how often each one did.

    A rule of `of_constants` is asked last, and not for an op with an operand that another op makes.
    Ops that become unused on the way are erased. Rules must make programs smaller or more
    canonical, so that they end; the number of looks is bounded all the same.
    """
    return _Rewriter(rules, of_constants or {}).run(module.operation.regions[0])


class _Rewriter:
    """`_queue` holds ops to look at, in order, each in a cell, which `_pending` finds by the op's first
    result: an op's own hash changes with its operands. The cell of an op that is erased is emptied
    before, since a handle on it is good for nothing."""

    def __init__(self, rules: Rules, of_constants: Mapping[str, Rule]) -> None:
        names = rules.keys() | of_constants.keys()
        self._rules = {
            name: _RulesOfName.of(rules.get(name, ()), of_constants.get(name)) for name in names
        }
        self._queue: deque[list[ir.Operation]] = deque()
        self._pending: dict[ir.Value, list[ir.Operation]] = {}
        self._applied: Counter[str] = Counter()
        self._hopeless: set[tuple[object, ...]] = set()

    def run(self, region: ir.Region) -> Counter[str]:
        self._enter(region)
        looks = _LOOKS * len(self._queue)
        while self._queue and looks:
            for op in self._queue.popleft():
                del self._pending[op.results[0]]
                looks -= 1
                successor: ir.Operation | None = op
                while successor is not None:
                    successor = self._look_at(successor)
        return self._applied

    def _forget(self, op: ir.Operation) -> None:
        if op.name in self._rules and len(op.results):
            self._pending.pop(op.results[0], []).clear()

    def _enter(self, region: ir.Region) -> None:
        for block in region.blocks:
            for inner in block.operations:
                op = inner.operation
                self._add(op, op.name)
                if len(op.regions):
                    for nested in op.regions:
                        self._enter(nested)

    def _add(self, op: ir.Operation, name: str) -> None:
        if name in self._rules and len(results := op.results):
            first = results[0]
            if first not in self._pending:
                cell = self._pending[first] = [op]
                self._queue.append(cell)

    def _look_at(self, op: ir.Operation) -> ir.Operation | None:
        """Replace an op if a rule applies; returns the new op in its place, to be looked at too."""
        known = self._rules.get(op.name)
        if known is None:
            return None
        operands = list(op.operands)
        makers = tuple(["" if type(owner := v.owner) is _Block else owner.name for v in operands])
        rules = known.asked.get(makers)
        if rules is None:
            rules = known.asked[makers] = known.applicable(set(makers) - {""})
        if not rules:
            return None
        constants = _constants_of(op, operands, makers) if _decided.issuperset(rules) else None
        if constants in self._hopeless:
            return None
        with ir.InsertionPoint(op), op.location:
            for rule in rules:
                found = rule(op)
                if found is not None:
                    break
        if found is None:
            if constants is not None:
                self._hopeless.add(constants)
            return None
        self._applied[rule.__name__.strip("_")] += 1
        values = [found] if isinstance(found, ir.Value) else list(found)
        for result in op.results:
            users = [use.owner.operation for use in result.uses]
            self._add_around(users)
            for user in users:
                if user.name == _RESHAPE:  # rules look through these
                    self._add_around([use.owner.operation for use in user.results[0].uses])
        for value in operands:
            users = [use.owner.operation for use in islice(value.uses, 3)]
            if len(users) == 2:  # of which one is left: some rules ask for that
                self._add_around(users)
        makers_of = [maker for value in values if (maker := defining(value)) is not None]
        self._add_around(_chain(makers_of) if rule in _chains else makers_of)
        successor = replace(op, values, forget=self._forget)
        if successor is not None:
            self._forget(successor)
        return successor

    def _add_around(self, ops: Iterable[ir.Operation]) -> None:
        """Look again at ops and at what makes their operands."""
        rules, pending = self._rules, self._pending
        for op in ops:
            self._add(op, op.name)
            for value in op.operands:
                owner = value.owner
                if type(owner) is not _Block and (name := owner.name) in rules:
                    maker = owner.operation
                    if maker.results[0] not in pending:
                        self._add(maker, name)


def _chain(ops: list[ir.Operation]) -> list[ir.Operation]:
    """Ops and what makes their operands, and so on, the nearest first."""
    found = list(ops)
    for op in found:
        makers = (defining(value) for value in op.operands)
        found += [maker for maker in makers if maker is not None and maker not in found]
        if len(found) > _MOST_OF_A_CHAIN:
            break
    return found


def _constants_of(
    op: ir.Operation, operands: Sequence[ir.Value], makers: Sequence[str]
) -> tuple[object, ...] | None:
    """An op's name and its constant operands, which decide some rules."""
    try:
        return op.name, *(
            value.owner.attributes["value"] if maker == CONSTANT else None
            for value, maker in zip(operands, makers)
        )
    except TypeError:  # the bindings can't hold complex elements
        return None


class _RulesOfName(Record):
    """The rules for ops of one name, with the names one of which must make an operand, if any."""

    rules: tuple[tuple[Rule, frozenset[str] | None], ...]
    of_constants: Rule | None
    needed: frozenset[str] | None
    """By any of the rules; None where one needs nothing."""
    asked: dict[tuple[str, ...], list[Rule]] = field(default_factory=dict)
    """The applicable ones for operands made by ops of these names, "" for arguments."""

    @classmethod
    def of(cls, rules: Sequence[Rule], of_constants: Rule | None) -> _RulesOfName:
        needs = [_needed.get(rule) for rule in rules]
        together = None if None in needs else frozenset().union(*needs)  # type: ignore[arg-type]
        return cls(tuple(zip(rules, needs)), of_constants, together)

    def applicable(self, makers: set[str]) -> list[Rule]:
        """The rules to ask about an op whose operands ops of these names make."""
        found = []
        if self.needed is None or not self.needed.isdisjoint(makers):
            found = [
                rule
                for rule, needed in self.rules
                if needed is None or not needed.isdisjoint(makers)
            ]
        if self.of_constants is not None and makers <= _ONLY_CONSTANTS:
            found.append(self.of_constants)
        return found


Forget = Callable[[ir.Operation], None]


def replace(
    op: ir.Operation, values: Sequence[ir.Value], forget: Forget | None = None
) -> ir.Operation | None:
    """Put values in the place of an op's results and erase it, and operands nobody else uses.

    Returns the op that made the first value, if it was inserted just before. `forget` is told of
    each op that goes, and of those in it.
    """
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    successor = defining(values[0]) if values else None
    if successor is not None and not _is_next(successor, op):
        successor = None
    erase(op, keep=successor, forget=forget)
    return successor


def _is_next(first: ir.Operation, second: ir.Operation) -> bool:
    if first.block != second.block:
        return False
    position = ir.InsertionPoint.after(first).ref_operation
    return position is not None and position.operation == second


def erase(
    op: ir.Operation, keep: ir.Operation | None = None, forget: Forget | None = None
) -> int:
    """Erase an unused op, and what only it used; returns how many ops went."""
    erased, work = 0, [op]
    while work:
        op = work.pop()
        producers = {d: None for value in op.operands if (d := defining(value)) is not None}
        # What regions capture counts as used by the op.
        for region in op.regions:
            _captured_producers(region, op, producers)
        if forget is not None:
            forget(op)
            for region in op.regions:
                _tell_of_inner(region, forget)
        op.erase()
        erased += 1
        work += [
            p for p in producers if (keep is None or p != keep) and is_unused(p) and is_droppable(p)
        ]
    return erased


def _captured_producers(
    region: ir.Region, within: ir.Operation, found: dict[ir.Operation, None]
) -> None:
    outside = within.block
    for block in region.blocks:
        for inner in block.operations:
            inner = inner.operation
            for value in inner.operands:
                producer = defining(value)
                if producer is not None and producer.block == outside:
                    found[producer] = None
            for nested in inner.regions:
                _captured_producers(nested, within, found)


def _tell_of_inner(region: ir.Region, forget: Forget) -> None:
    for block in region.blocks:
        for inner in block.operations:
            forget(inner.operation)
            for nested in inner.regions:
                _tell_of_inner(nested, forget)
