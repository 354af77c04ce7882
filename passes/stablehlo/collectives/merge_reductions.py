"""Sums of several small arrays over the same devices as one message.

    %a = stablehlo.all_reduce %x       // 16            %xy = concatenate %x, reshape(%y)    // 16 + 8
    %b = stablehlo.all_reduce %y       // 2x4    ->     %s = stablehlo.all_reduce %xy
                                                       %a = slice %s [0:16]
                                                       %b = reshape(slice %s [16:24])

A message takes some microseconds whatever it says, and a gradient has one for each weight. Elements are
combined in the order of the devices, each by itself, so that no bit of a result changes. Merged are those
of the same type, devices and combiner that do not need each other's results, each of at most `most` bytes:
copying larger ones takes longer than the message that is saved. The one message is where the last was; what
reads results of those before it, and stood between, comes after it.

example: test/passes/stablehlo/collectives/merge_reductions.mlir
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import is_pure
from lamina.passes.stablehlo.collectives.collective import (
    CHANNEL,
    combine,
    device_counts,
    groups_among,
    reducer,
)
from lamina.records import Record

_ALL_REDUCE = "stablehlo.all_reduce"


class MergeReductions(Pass):
    """The pass `stablehlo-merge-reductions`."""

    most: int = REFERENCE.message_bytes // 8  # bytes of an array
    together: int = REFERENCE.message_bytes  # bytes of a message

    only_with = frozenset(("stablehlo.all_reduce",))

    def run(self, module: ir.Module) -> None:
        devices = max(device_counts(module))
        blocks: dict[Any, list[ir.Operation]] = {}
        for op in find_ops(module, _ALL_REDUCE):
            if len(op.operands) == 1 and _bytes(op) <= self.most:
                blocks.setdefault(op.block, []).append(op)
        for block, reductions in blocks.items():
            if len(reductions) < 2:
                continue
            known = {op.results[0]: _kind(op, devices) for op in reductions}
            for found in list(_found(block, known, self.together)):
                _merge(found, devices)
                self.count("reductions", len(found.members))


class _Found(Record):
    """Reductions in one message, and what stands before the last of them and reads the others' results."""

    members: list[ir.Operation]
    readers: list[ir.Operation]


def _bytes(op: ir.Operation) -> int:
    of = op.operands[0].type
    return prod(of.shape) * dtype_of(of).itemsize


def _kind(op: ir.Operation, devices: int) -> tuple[Any, ...]:
    return dtype_of(op.operands[0].type), reducer(op), str(groups_among(op, devices))


class _Open:
    """A message that more may join. `waiting` are values that are there when it has come."""

    def __init__(self, op: ir.Operation) -> None:
        self.members, self.size = [op], _bytes(op)
        self.readers: list[ir.Operation] = []
        self.later: list[ir.Operation] = []
        """Readers since the last member: they may stay where they are."""
        self.waiting: set[ir.Value] = {op.results[0]}

    def join(self, op: ir.Operation) -> None:
        self.members.append(op)
        self.size += _bytes(op)
        self.readers += self.later
        self.later = []
        self.waiting.add(op.results[0])

    def closed(self) -> Iterator[_Found]:
        if len(self.members) > 1:
            yield _Found(self.members, self.readers)


def _found(block: Any, known: dict[ir.Value, tuple[Any, ...]], together: int) -> Iterator[_Found]:
    """The messages of a block, from its beginning."""
    one: _Open | None = None
    kind: tuple[Any, ...] = ()
    for inner in block.operations:
        op = inner.operation
        its_kind = known.get(op.results[0]) if op.name == _ALL_REDUCE else None
        waits = one is not None and not one.waiting.isdisjoint(_reads(op))
        if its_kind is not None:
            if one is not None and not waits and its_kind == kind and one.size + _bytes(op) <= together:
                one.join(op)
                continue
            if one is not None and (waits or its_kind != kind or len(one.members) > 1):
                yield from one.closed()
            one, kind = _Open(op), its_kind
        elif one is not None and waits:
            if is_pure(op):
                one.later.append(op)
                one.waiting.update(op.results)
            else:
                yield from one.closed()
                one = None
    if one is not None:
        yield from one.closed()


def _reads(op: ir.Operation) -> Iterator[ir.Value]:
    yield from op.operands
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _reads(inner.operation)


def _merge(found: _Found, devices: int) -> None:
    last = found.members[-1]
    with ir.InsertionPoint(last), last.location:
        sizes = [prod(op.operands[0].type.shape) for op in found.members]
        flat = [_reshaped(op.operands[0], [n]) for op, n in zip(found.members, sizes, strict=True)]
        whole = hlo.all_reduce(
            hlo.concatenate(flat, 0), groups_among(last, devices), CHANNEL, combine(last)
        )
        at, parts = 0, []
        for op, n in zip(found.members, sizes, strict=True):
            part = hlo.slice(whole, [at], [at + n], [1])
            parts.append(_reshaped(part, list(op.operands[0].type.shape)))
            at += n
    after: ir.Operation = last
    for reader in found.readers:
        reader.move_after(after)
        after = reader
    for op, part in zip(found.members, parts, strict=True):
        op.results[0].replace_all_uses_with(part)
        op.erase()


def _reshaped(value: ir.Value, shape: list[int]) -> ir.Value:
    return value if list(value.type.shape) == shape else hlo.reshape(value, shape)
