"""Loops of which each iteration does the same to elements that lie side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lamina.dialects.vendors import ir
from lamina.passes.linalg.structure import is_buffer

Kind = Literal["linear", "vector", "carried"]
"""What a value of a loop's body is: the loop's variable plus what stays the same, one of the elements
side by side, or what the iteration before has left. What stays the same is not noted."""

Place = tuple[ir.Value, ...]
"""A buffer and the indices of an element."""


@dataclass(frozen=True)
class PlainLoop:
    """A loop that can be written over vectors."""

    op: ir.Operation
    body: tuple[ir.Operation, ...]
    """What differs from one iteration to the next, but for the yield."""
    same: tuple[ir.Operation, ...]
    """What does not, and can be done once in front of the loop."""
    kinds: dict[ir.Value, Kind]
    combiners: tuple[ir.Operation, ...]
    """What makes of each carried value the next one."""
    trips: int | None
    lanes: int

    @property
    def bounds(self) -> tuple[ir.Value, ir.Value]:
        return self.op.operands[0], self.op.operands[1]

    @property
    def variable(self) -> ir.Value:
        return self.op.regions[0].blocks[0].arguments[0]


# Done to each lane alone, by an instruction or by code without branches.
_MATH = frozenset(
    f"math.{name}"
    for name in (
        "absf absi atan2 cbrt ceil copysign cos exp expm1 floor fma log log1p powf round roundeven rsqrt"
        " sin sqrt tan tanh trunc"
    ).split()
)  # fmt: skip
_NOT_IN_LANES = frozenset(
    f"arith.{name}"
    for name in (
        "addui_extended ceildivsi ceildivui divsi divui floordivsi mulsi_extended mului_extended"
        " remf remsi remui"
    ).split()
)  # fmt: skip
_FREE = frozenset(
    f"arith.{name}" for name in "addi andi maxsi maxui minsi minui muli ori xori".split()
)
_FREE_IF = {
    "arith.addf": "reassoc", "arith.mulf": "reassoc",
    "arith.maximumf": "nsz", "arith.minimumf": "nsz",
}  # fmt: skip
_LEAST_LANES = 4
_FEW = 4


def read_loop(
    op: ir.Operation, ops: Sequence[ir.Operation], vector_bits: int
) -> PlainLoop | None:
    """A loop with these ops in it, or None where it is not plain."""
    if op.name != "scf.for" or constant_of(op.operands[2]) != 1:
        return None
    trips = _trips(op)
    variable, *carried = op.regions[0].blocks[0].arguments
    *ops, end = ops
    kinds: dict[ir.Value, Kind] = dict.fromkeys(carried, "carried")
    kinds[variable] = "linear"
    body: list[ir.Operation] = []
    same: list[ir.Operation] = []
    combiners: list[ir.Operation] = []
    for argument, value in zip(carried, end.operands, strict=True):
        combiner = _combiner(argument, value)
        if combiner is None:
            return None
        combiners.append(combiner)
    for inner in ops:
        found = [kinds.get(value) for value in inner.operands]
        if not any(found):
            if not _can_move(inner, trips):
                return None
            same.append(inner)
            continue
        if not _is_plain(inner, found, kinds, combiners):
            return None
        body.append(inner)
    bits = {width for inner in body for width in _widths(inner)}
    if 0 in bits or not bits or _interfere(body, same):
        return None
    lanes = vector_bits // max(bits)
    while trips is not None and lanes > trips:
        lanes //= 2
    if lanes < _LEAST_LANES:
        return None
    return PlainLoop(op, tuple(body), tuple(same), kinds, tuple(combiners), trips, lanes)


def in_place(loop: PlainLoop) -> bool:
    """Whether a short loop does something to the same elements in each iteration of one around it."""
    around = loop.op.parent
    if loop.trips is None or loop.trips > _FEW * loop.lanes or around.name != "scf.for":
        return False
    outer = around.regions[0].blocks[0]
    loaded = {place_of(op) for op in loop.body if op.name == "memref.load"}
    stored = {place_of(op) for op in loop.body if op.name == "memref.store"}
    stays = {value for place in loaded & stored for value in place}
    for op in reversed(loop.body):
        if any(result in stays for result in op.results):
            stays.update(op.operands)
    return bool(loaded & stored) and not any(_block_of(value) == outer for value in stays)


def _block_of(value: ir.Value) -> ir.Block:
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def constant_of(value: ir.Value) -> int | None:
    """The number that a value of type index is, if that is known."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    return ir.IntegerAttr(value.owner.operation.attributes["value"]).value


def place_of(op: ir.Operation) -> Place:
    """Where a load or store does it."""
    operands = list(op.operands)
    return tuple(operands[1:] if op.name == "memref.store" else operands)


def _trips(op: ir.Operation) -> int | None:
    low, high = constant_of(op.operands[0]), constant_of(op.operands[1])
    return None if low is None or high is None else max(0, high - low)


def _combiner(carried: ir.Value, value: ir.Value) -> ir.Operation | None:
    """The op that combines a carried value with another, in an order that is free."""
    if isinstance(value.owner, ir.Block) or len(list(carried.uses)) != 1:
        return None
    op = value.owner.operation
    if carried not in list(op.operands) or len(list(value.uses)) != 1:
        return None
    if op.name in _FREE:
        return op
    flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    return op if op.name in _FREE_IF and _FREE_IF[op.name] in flags else None


def _can_move(op: ir.Operation, trips: int | None) -> bool:
    """Whether an op on what stays the same can be done in front of the loop, even in vain."""
    if op.name == "memref.load":
        return bool(trips) or len(op.operands) == 1
    if not op.name.startswith(("arith.", "math.")) or len(op.regions):
        return False
    return bool(trips) or op.name not in _NOT_IN_LANES


def _is_plain(
    op: ir.Operation,
    found: Sequence[Kind | None],
    kinds: dict[ir.Value, Kind],
    combiners: Sequence[ir.Operation],
) -> bool:
    """Whether an op on operands of these kinds can be done to vectors; notes what it makes."""
    if "carried" in found:
        return op in combiners
    name = op.name
    if name in ("memref.load", "memref.store"):
        buffer, *indices = place_of(op)
        which = [kinds.get(index) for index in indices]
        strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
        if not which or any(which[:-1]) or which[-1] != "linear" or strides[-1] != 1:
            return False
        if name == "memref.load":
            kinds[op.results[0]] = "vector"
        return True
    if len(op.results) != 1 or len(op.regions):
        return False
    if _is_linear(op, found):
        kinds[op.results[0]] = "linear"
    elif name in _MATH or (name.startswith("arith.") and name not in _NOT_IN_LANES):
        kinds[op.results[0]] = "vector"
    else:
        return False
    return True


def _is_linear(op: ir.Operation, found: Sequence[Kind | None]) -> bool:
    if op.name == "arith.addi":
        return sorted(map(str, found)) == ["None", "linear"]
    if op.name == "arith.subi":
        return list(found) == ["linear", None]
    is_cast = op.name == "arith.trunci" or (
        op.name == "arith.index_cast" and isinstance(op.operands[0].type, ir.IndexType)
    )
    return is_cast and list(found) == ["linear"]


def _widths(op: ir.Operation) -> list[int]:
    """The bits of what decides how many lanes an op has; 0 for what has no vectors."""
    if op.name == "memref.store":
        return [_width(op.operands[0].type, stored=True)]
    type_ = op.results[0].type
    if isinstance(type_, ir.IndexType):
        return []
    width = _width(type_, stored=op.name == "memref.load")
    return [] if width == 1 else [width]


def _width(type_: ir.Type, *, stored: bool) -> int:
    if isinstance(type_, (ir.F32Type, ir.F64Type)):
        return type_.width
    if isinstance(type_, ir.IntegerType) and type_.width in (8, 16, 32, 64):
        return type_.width
    is_truth = isinstance(type_, ir.IntegerType) and type_.width == 1
    return 1 if is_truth and not stored else 0  # in memory a truth is a byte, in vectors a bit


def _interfere(body: Sequence[ir.Operation], same: Sequence[ir.Operation]) -> bool:
    """Whether an iteration may touch what another writes."""
    accesses = [op for op in (*body, *same) if op.name in ("memref.load", "memref.store")]
    written = {_root(place_of(op)[0]): place_of(op) for op in body if op.name == "memref.store"}
    return any(written.get(_root(place[0]), place) != place for place in map(place_of, accesses))


def _root(buffer: ir.Value) -> ir.Value:
    """The memory that a buffer is; temporaries that are views of one region have none in common."""
    while not isinstance(buffer.owner, ir.Block):
        op = buffer.owner.operation
        if op.name == "memref.view" or not len(op.operands) or not is_buffer(op.operands[0]):
            break
        buffer = op.operands[0]
    return buffer
