"""The program a plan is made for: calls of kernels, control flow, views and constants on values.

Values are small integers, in SSA form: defined once, by an argument, an operation or a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

from lamina.records import Record


class Call(Record, frozen=False, eq=False):
    """A call of a kernel. `inout` maps an operand's position to the result that must share its
    buffer, `may_alias` to the results of which one may. One that `has_effect` keeps its place among
    others. `alone_ns` is about how long one takes that uses one core only, where that is known. Calls in
    a row that have the same `team`, other than 0, run at the same time. One that `meets` other devices is
    only begun, where it is `begun`, and a Wait follows. `tag` is the caller's handle on the operation."""

    kernel: str
    operands: list[int]
    results: list[int]
    inout: dict[int, int] = field(default_factory=dict)
    may_alias: dict[int, tuple[int, ...]] = field(default_factory=dict)
    has_effect: bool = False
    alone_ns: int = 0
    team: int = 0
    meets: bool = False
    begun: bool = False
    tag: Any = None


class View(Record, frozen=False, eq=False):
    """The same bytes under another type (a reshape)."""

    operand: int
    result: int
    tag: Any = None

    @property
    def operands(self) -> list[int]:
        return [self.operand]

    @property
    def results(self) -> list[int]:
        return [self.result]


class Constant(Record, frozen=False, eq=False):
    """A constant. With `fill` it is written into ordinary storage where it is defined; without,
    it is read-only data of the program."""

    result: int
    fill: bool = False
    tag: Any = None

    @property
    def operands(self) -> list[int]:
        return []

    @property
    def results(self) -> list[int]:
        return [self.result]


class Wait(Record, frozen=False, eq=False):
    """The call that was begun last is over from here on; `operands` are its operands and results."""

    operands: list[int]

    @property
    def results(self) -> list[int]:
        return []


class Block(Record, frozen=False, eq=False):
    """Operations in order; `yields` are the values handed to the enclosing operation."""

    arguments: list[int] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    yields: list[int] = field(default_factory=list)


class While(Record, frozen=False, eq=False):
    """While `cond` yields true (one boolean), replace the carry by what `body` yields. Both blocks
    take the carry; the results are its last value."""

    operands: list[int]
    cond: Block
    body: Block
    results: list[int]
    tag: Any = None


class Branch(Record, frozen=False, eq=False):
    """Run one of `blocks`, chosen by the value `selector`; the results are what it yields."""

    selector: int
    blocks: list[Block]
    results: list[int]
    tag: Any = None

    @property
    def operands(self) -> list[int]:
        return [self.selector]


Op = Call | View | Constant | Wait | While | Branch


class Program(Record, frozen=False, eq=False):
    """`body.arguments` are the arguments and `body.yields` the results. `bytes` holds each value's
    size. `donated` maps the position of an argument that may be overwritten to the results that
    could take its buffer over, best first; `promised` to the result that must."""

    body: Block
    bytes: dict[int, int]
    donated: dict[int, tuple[int, ...]] = field(default_factory=dict)
    promised: dict[int, int] = field(default_factory=dict)


def blocks_of(op: Op) -> list[Block]:
    """The blocks inside an operation, in the order in which they are numbered."""
    if isinstance(op, While):
        return [op.cond, op.body]
    if isinstance(op, Branch):
        return op.blocks
    return []


def walk(block: Block) -> Iterator[Op]:
    """Every operation under `block`, an operation before what is inside it."""
    for op in block.ops:
        yield op
        for inner in blocks_of(op):
            yield from walk(inner)


class Views:
    """Of the views in a block, whose bytes they are."""

    def __init__(self, block: Block) -> None:
        self._viewed: dict[int, int] = {}
        for op in block.ops:
            if isinstance(op, View):
                self._viewed[op.result] = self.root(op.operand)

    def root(self, value: int) -> int:
        """What a view views, through other views; any other value itself."""
        return self._viewed.get(value, value)

    def roots(self, values: Iterable[int]) -> set[int]:
        """The same for several values."""
        return set(map(self.root, values))


def teams_of(ops: list[Op]) -> Iterator[list[Op]]:
    """Operations in order; those that run at the same time together."""
    team: list[Op] = []
    number = 0
    for op in ops:
        of = op.team if isinstance(op, Call) else 0
        if team and (of != number or not of):
            yield team
            team = []
        number = of
        team.append(op)
    if team:
        yield team


def values_read(op: Op) -> set[int]:
    """Every value that `op`, or anything inside it, reads; those defined inside included."""
    read = set(op.operands)
    for inner in blocks_of(op):
        read |= values_read_in(inner)
    return read


def values_read_in(block: Block) -> set[int]:
    """Every value that anything under `block` reads, and what it yields."""
    read = set(block.yields)
    for op in walk(block):
        read.update(op.operands)
        for inner in blocks_of(op):
            read.update(inner.yields)
    return read
