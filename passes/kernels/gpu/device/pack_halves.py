"""Do two 16-bit floats of a register at a time, or take them apart where they lie.

Vectors are loaded as words of 32 bits, each of which holds two neighbours. GPUs do arithmetic on both f16 of a word by
one instruction, so that where two neighbours have the same done to them, one op on a vector of two does it:

    %a = vector.extract %v[0]         %p = vector.shuffle %v, %v [0, 1]
    %b = vector.extract %v[1]         %s = vector.broadcast %m
    %c = arith.subf %a, %m      ->    %q = arith.subf %p, %s
    %d = arith.subf %b, %m            %c = vector.extract %q[0]
                                      %d = vector.extract %q[1]

Operands are neighbours, or the same for both. The greatest and least of f16 that are widened first are taken before.
The results have the bits that they had. What makes two f32 of two bf16, once `math-expand-small-floats` has spelt
that out, makes them of their word: a shift and a mask. Leaves alone what is done to one of two neighbours only, or to
both in different blocks.

example: test/passes/kernels/gpu/device/pack_halves.mlir
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

_EXTREMES = frozenset(("arith.maximumf", "arith.minimumf"))
_PACKED = _EXTREMES | {"arith.addf", "arith.subf", "arith.mulf", "arith.negf", "math.absf", "math.fma"}
_SHIFT, _MASK = 16, -1 << 16


class PackHalves(Pass):
    """See the module's docstring."""

    only_with = frozenset(("vector.extract",))

    def run(self, module: ir.Module) -> None:
        pairs: list[tuple[ir.Operation, ir.Operation]] = []
        for pair in _neighbours(module):
            if isinstance(pair[0].results[0].type, ir.BF16Type):
                self.count("words of bf16", _take_bits(*pair))
            else:
                pairs.append(pair)
        self.count("packed ops", _Packing().run(pairs))


def _neighbours(module: ir.Module) -> Iterator[tuple[ir.Operation, ir.Operation]]:
    """The two elements of each word that are taken from a vector of 16-bit floats in the same block."""
    found: dict[tuple[ir.Value, ir.Block, int], ir.Operation] = {}
    for op in find_ops(module, "vector.extract"):
        places = list(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
        if len(places) == len(op.operands) == 1 and isinstance(op.results[0].type, (ir.F16Type, ir.BF16Type)):
            found.setdefault((op.operands[0], op.block, places[0]), op)
    for (source, block, place), low in found.items():
        high = found.get((source, block, place + 1))
        if place % 2 == 0 and high is not None and ir.VectorType(source.type).shape[0] % 2 == 0:
            yield low, high


class _Packing:
    """Of f16: from the elements of vectors on to what is done to them."""

    def __init__(self) -> None:
        self.places: dict[ir.Value, int] = {}
        """Of ops in their blocks, by what they make: ops are other keys once they read something else."""
        self.packed: dict[tuple[ir.Value, ir.Value], ir.Value] = {}
        """By the two halves."""
        self.done: dict[ir.Value, ir.Operation] = {}

    def run(self, pairs: list[tuple[ir.Operation, ir.Operation]]) -> int:
        """Beginning with two elements each; the number of ops on both."""
        for low, high in pairs:
            place, source = _place(low), low.operands[0]
            with self._before(low, high):
                word = vector.ShuffleOp(source, source, [place, place + 1]).result
            self.packed[low.results[0], high.results[0]] = word
        waiting = list(self.packed)
        while waiting:
            low, high = waiting.pop()
            for pair in list(self._alike(low, high)):
                if not any(op.results[0] in self.done for op in pair):
                    waiting.append(self._pack(*pair))
        for op in self.done.values():  # nothing reads them any more
            op.erase()
        return len(self.done) // 2

    def _alike(self, low: ir.Value, high: ir.Value) -> Iterator[tuple[ir.Operation, ir.Operation]]:
        """Ops that do the same to both halves, and to what else they are given."""
        others: dict[tuple[str, int, ir.Block], ir.Operation] = {
            (op.name, place, op.block): op for op, place in _readers(high)
        }
        for op, place in _readers(low):
            other = others.get((op.name, place, op.block))
            if other is None or op == other:
                continue
            operands = [(_narrow(a), _narrow(b)) for a, b in zip(op.operands, other.operands, strict=True)]
            if all((a, b) in self.packed or a == b and isinstance(a.type, ir.F16Type) for a, b in operands):
                yield op, other

    def _pack(self, low: ir.Operation, high: ir.Operation) -> tuple[ir.Value, ir.Value]:
        """Both ops as one: what is made of them then. The first one's operands are there, and so are their words."""
        half = ir.F16Type.get(low.context)
        pair = ir.VectorType.get([2], half)
        with self._before(low, high):
            operands = []
            for a, b in zip(low.operands, high.operands, strict=True):
                a, b = _narrow(a), _narrow(b)
                operands.append(vector.BroadcastOp(pair, a).result if a == b else self.packed[a, b])
            word = remade(low, [pair], operands).result
            halves = [vector.ExtractOp(word, [], [place]).result for place in range(2)]
            of = low.results[0].type
            found = halves if of == half else [arith.ExtFOp(of, value).result for value in halves]
        for op, value in zip((low, high), found, strict=True):
            op.results[0].replace_all_uses_with(value)
            self.done[op.results[0]] = op
        self.packed[halves[0], halves[1]] = word
        return halves[0], halves[1]

    @contextmanager
    def _before(self, *ops: ir.Operation) -> Iterator[None]:
        first = min(ops, key=self._place)
        with ir.InsertionPoint(first), first.location:
            yield

    def _place(self, op: ir.Operation) -> int:
        if op.results[0] not in self.places:
            self.places |= {
                other.results[0]: place for place, other in enumerate(op.block.operations) if len(other.results)
            }
        return self.places[op.results[0]]


def _readers(half: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """Ops that can be done on words, with the operand that is this half of one."""
    for use in half.uses:
        op = use.owner.operation
        if op.name in _PACKED:
            yield op, use.operand_number
        elif op.name == "arith.extf" and isinstance(op.results[0].type, ir.F32Type):
            for wide in op.results[0].uses:
                if wide.owner.operation.name in _EXTREMES:
                    yield wide.owner.operation, wide.operand_number


def _narrow(value: ir.Value) -> ir.Value:
    """What an f32 was widened from, if from f16."""
    op = value.owner
    if isinstance(op, ir.Block) or op.name != "arith.extf":
        return value
    (operand,) = op.operands
    return operand if isinstance(operand.type, ir.F16Type) else value


def _take_bits(low: ir.Operation, high: ir.Operation) -> bool:
    """Both bf16, where f32 are made of them, as bits of their word; whether there is such a place."""
    shifts = [list(_shifted(op.results[0])) for op in (low, high)]
    if not all(shifts):
        return False
    source = low.operands[0]
    word = ir.IntegerType.get_signless(32)
    words = ir.VectorType.get([ir.VectorType(source.type).shape[0] // 2], word)
    with ir.InsertionPoint.after(source.owner), low.location:
        bits = vector.ExtractOp(vector.BitCastOp(words, source).result, [], [_place(low) // 2]).result
        found = (
            arith.ShLIOp(bits, arith.ConstantOp(word, _SHIFT).result).result,
            arith.AndIOp(bits, arith.ConstantOp(word, _MASK).result).result,
        )
    for ops, value in zip(shifts, found, strict=True):
        for op in ops:
            op.results[0].replace_all_uses_with(value)
            op.erase()
    return True


def _shifted(value: ir.Value) -> Iterator[ir.Operation]:
    """Ops that make the bits of an f32 of a bf16: its own, moved up by 16."""
    for bits in _users(value, "arith.bitcast"):
        for wide in _users(bits.results[0], "arith.extui"):
            for shift in _users(wide.results[0], "arith.shli"):
                by = shift.operands[1].owner
                if shift.operands[0] != wide.results[0] or isinstance(by, ir.Block):
                    continue
                if by.name == "arith.constant" and ir.IntegerAttr(by.attributes["value"]).value == _SHIFT:
                    yield shift


def _users(value: ir.Value, name: str) -> list[ir.Operation]:
    return [op for use in value.uses if (op := use.owner.operation).name == name]


def _place(extract: ir.Operation) -> int:
    (place,) = ir.DenseI64ArrayAttr(extract.attributes["static_position"])
    return place
