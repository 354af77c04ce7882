"""Rules of `stablehlo-simplify` for slices, pads and updates of slices: what is cut out again, or never
read, is not put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import (
    constant_starts,
    defining,
    has_one_use,
    ints,
    made_by,
    splat_of,
)
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of

_MOST_UPDATES = 64  # search
"""Updates behind one slice that are looked at: a chain of n has n slices often."""


class _Cut(NamedTuple):
    """What a slice takes."""

    start: list[int]
    limit: list[int]
    strides: list[int]

    @property
    def shape(self) -> list[int]:
        return [-(-(end - start) // step) for start, end, step in zip(*self)]

    def lies_in(self, low: Sequence[int], high: Sequence[int]) -> bool:
        """Whether it takes nothing outside a box."""
        return all(a <= start and end <= b for start, end, a, b in zip(self.start, self.limit, low, high))

    def misses(self, low: Sequence[int], high: Sequence[int]) -> bool:
        """Whether it takes nothing of a box."""
        return any(end <= a or b <= start for start, end, a, b in zip(self.start, self.limit, low, high))

    def of(self, value: ir.Value, low: Sequence[int]) -> ir.Value:
        """The slice of what has its first element at `low`."""
        start = [begin - a for begin, a in zip(self.start, low)]
        return hlo.slice(value, start, [end - a for end, a in zip(self.limit, low)], self.strides)


@needs_operand_of("slice", "broadcast_in_dim", "concatenate", "pad", "dynamic_update_slice")
def _slice(op: ir.Operation) -> ir.Value | None:
    """Of a slice -> one slice; of what is put together -> of the part in which it lies; of a scalar
    broadcast -> a smaller broadcast."""
    cut = _Cut(*(ints(op, name) for name in ("start_indices", "limit_indices", "strides")))
    return _cut_out(op.operands[0], cut)


def slice_of(value: ir.Value, start: list[int], limit: list[int], strides: list[int]) -> ir.Value:
    """A slice, of what the sliced array is made of if it lies in one part of it."""
    cut = _Cut(start, limit, strides)
    found = _cut_out(value, cut)
    return hlo.slice(value, *cut) if found is None else found


def _cut_out(value: ir.Value, cut: _Cut) -> ir.Value | None:
    producer = defining(value)
    if producer is None:
        return None
    match producer.name:
        case "stablehlo.slice":
            first, by = ints(producer, "start_indices"), ints(producer, "strides")
            begin = [f + s * b for f, s, b in zip(first, cut.start, by)]
            step = [s * b for s, b in zip(cut.strides, by)]
            end = [b + max(n - 1, 0) * t + (n > 0) for b, n, t in zip(begin, cut.shape, step)]
            return hlo.slice(producer.operands[0], begin, end, step)
        case "stablehlo.broadcast_in_dim" if not producer.operands[0].type.shape:
            return hlo.broadcast_in_dim(producer.operands[0], cut.shape, ())
        case "stablehlo.concatenate":
            return _of_concatenation(producer, cut)
        case "stablehlo.pad":
            return _of_pad(producer, cut)
        case "stablehlo.dynamic_update_slice":
            return _of_update(producer, cut)
    return None


def _of_concatenation(concatenation: ir.Operation, cut: _Cut) -> ir.Value | None:
    dim = concatenation.attributes["dimension"].value
    low = [0] * len(cut.start)
    for part in concatenation.operands:
        size = part.type.shape[dim]
        if size and low[dim] <= cut.start[dim] and cut.limit[dim] <= low[dim] + size:
            return cut.of(part, low)
        low[dim] += size
    return None


def _of_pad(pad: ir.Operation, cut: _Cut) -> ir.Value | None:
    operand, value = pad.operands
    if any(ints(pad, "interior_padding")):
        return None
    low = ints(pad, "edge_padding_low")
    high = [a + size for a, size in zip(low, operand.type.shape)]
    if cut.misses(low, high):
        return hlo.broadcast_in_dim(value, cut.shape, ())
    if cut.lies_in(low, high):
        return cut.of(operand, low)
    if max(cut.strides) > 1 or not has_one_use(pad.results[0]):
        return None
    start = [max(a, begin) for a, begin in zip(low, cut.start)]
    limit = [min(b, end) for b, end in zip(high, cut.limit)]
    rest = _Cut(start, limit, cut.strides).of(operand, low)
    before = [a - begin for a, begin in zip(start, cut.start)]
    return _padded(rest, value, before, [end - b for end, b in zip(cut.limit, limit)])


def _of_update(update: ir.Operation | None, cut: _Cut) -> ir.Value | None:
    value = None
    for _ in range(_MOST_UPDATES):
        if update is None or update.name != "stablehlo.dynamic_update_slice":
            break
        operand, part, *starts = update.operands
        low = constant_starts(starts, operand.type.shape, part.type.shape)
        if low is None:
            break
        high = [a + size for a, size in zip(low, part.type.shape)]
        if cut.lies_in(low, high):
            return cut.of(part, low)
        if not cut.misses(low, high):
            break
        value, update = operand, defining(operand)
    return None if value is None else hlo.slice(value, *cut)


def _pad(op: ir.Operation) -> ir.Value | None:
    """By less than nothing -> what is cut off is not read."""
    low, high = ints(op, "edge_padding_low"), ints(op, "edge_padding_high")
    if min([*low, *high, 0]) >= 0 or any(ints(op, "interior_padding")):
        return None
    operand, value = op.operands
    shape = operand.type.shape
    start = [max(-a, 0) for a in low]
    limit = [size - max(-b, 0) for size, b in zip(shape, high)]
    if any(begin > end for begin, end in zip(start, limit)):
        return None
    rest = slice_of(operand, start, limit, [1] * len(shape))
    return _padded(rest, value, [max(a, 0) for a in low], [max(b, 0) for b in high])


def _padded(operand: ir.Value, value: ir.Value, low: list[int], high: list[int]) -> ir.Value:
    return hlo.pad(operand, value, low, high, [0] * len(low)) if any(low) or any(high) else operand


def _dynamic_slice(op: ir.Operation) -> ir.Value | None:
    """At constant starts, clamped as the op does -> a slice; of everything -> the operand."""
    operand, *starts = op.operands
    shape, sizes = operand.type.shape, op.result.type.shape
    if list(shape) == list(sizes):
        return operand
    begin = constant_starts(starts, shape, sizes)
    if begin is None:
        return None
    return hlo.slice(operand, begin, [b + s for b, s in zip(begin, sizes)])


def _dynamic_update_slice(op: ir.Operation) -> ir.Value | None:
    """Of everything -> the update; of nothing, or with what is there -> the operand."""
    operand, update, *starts = op.operands
    if operand.type == update.type:
        return update
    low = constant_starts(starts, operand.type.shape, update.type.shape)
    return operand if 0 in update.type.shape or _is_there(update, operand, low) else None


@needs_operand_of("pad")
def _add(op: ir.Operation) -> ir.Value | None:
    """Of an array with zeros in a box, and of zeros around a box, as gradients of updates are -> the array
    with that box, and zero added to both."""
    for one, other in (op.operands, list(op.operands)[::-1]):
        update, pad = made_by(one, "stablehlo.dynamic_update_slice"), made_by(other, "stablehlo.pad")
        if update is None or pad is None or any(ints(pad, "interior_padding")):
            continue
        operand, zeros, *starts = update.operands
        part, around = pad.operands
        low = constant_starts(starts, operand.type.shape, zeros.type.shape)
        if zeros.type != part.type or low != ints(pad, "edge_padding_low"):
            continue
        if _is_zero(zeros) and _is_zero(around):
            if _is_there(part, operand, low):
                return _plus(operand, around)
            if has_one_use(operand):
                return hlo.dynamic_update_slice(_plus(operand, around), _plus(part, around), starts)
            return _plus(hlo.dynamic_update_slice(operand, part, starts), around)
    return None


def _is_there(part: ir.Value, whole: ir.Value, low: Sequence[int] | None) -> bool:
    """Whether a value is what lies at a place of an array."""
    cut = made_by(part, "stablehlo.slice")
    if cut is None or cut.operands[0] != whole or max(ints(cut, "strides"), default=1) > 1:
        return False
    return low == ints(cut, "start_indices")


def _plus(value: ir.Value, number: ir.Value) -> ir.Value:
    return hlo.add(value, hlo.broadcast_in_dim(number, value.type.shape, ()))


def _is_zero(value: ir.Value) -> bool:
    """Whether a value is zero, for floats the positive one."""
    number = splat_of(value)
    return number is not None and not number and not np.signbit(np.real(number).astype(np.float64))


RULES: dict[str, tuple[Rule, ...]] = {
    "stablehlo.slice": (_slice,),
    "stablehlo.pad": (_pad,),
    "stablehlo.dynamic_slice": (_dynamic_slice,),
    "stablehlo.dynamic_update_slice": (_dynamic_update_slice,),
    "stablehlo.add": (_add,),
}
