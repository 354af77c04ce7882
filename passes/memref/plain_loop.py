"""Loops of which each iteration does the same to elements that lie side by side."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Literal, NamedTuple

from lamina.dialects.attributes import NATIVE
from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import constant_of
from lamina.passes.framework.find import is_inside
from lamina.passes.linalg.analysis.structure import is_buffer
from lamina.passes.memref.bounds import is_in_bounds
from lamina.records import Record

Kind = Literal["linear", "falling", "vector", "carried"]
"""What a value of a loop's body is: the loop's variable plus what stays the same, or what stays the same minus it;
one of the elements side by side; or what the iteration before has left. What stays the same is not noted."""

Place = tuple[ir.Value, ...]
"""A buffer and the indices of an element."""

Apart = Literal["never", "gathered", "one by one"]
"""How elements are loaded and stored that do not lie side by side. Those that are the same distance apart may be
gathered and scattered by an instruction; one by one, they may be loaded from anywhere."""


class Step:
    """An op of a loop's body, asked once for what is looked at often."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self.name: str = op.name
        self.operands: tuple[ir.Value, ...] = tuple(op.operands)
        self.results: tuple[ir.Value, ...] = tuple(op.results)

    @functools.cached_property
    def attributes(self) -> dict[str, ir.Attribute]:
        attributes = self.op.attributes
        return {name: attributes[name] for name in attributes}

    @property
    def place(self) -> Place:
        """Where a load or store does it."""
        return self.operands[1:] if self.name == "memref.store" else self.operands


class Interleaved(NamedTuple):
    """What loads and stores have in common whose elements make up rows that follow each other in memory, one row to an
    iteration: red, green and blue of each pixel, the coordinates of each point."""

    buffer: ir.Value
    around: tuple[ir.Value, ...]
    """The indices up to and with the loop's variable."""
    columns: int
    """Elements in a row."""


class PlainLoop(Record):
    """A loop that can be written over vectors."""

    op: ir.Operation
    body: tuple[Step, ...]
    """What differs from one iteration to the next, but for the yield."""
    same: tuple[Step, ...]
    """What does not, and can be done once in front of the loop."""
    kinds: dict[ir.Value, Kind]
    combiners: tuple[Step, ...]
    """What makes of each carried value the next one."""
    trips: int | None
    lanes: int
    own: frozenset[ir.Value]
    """Buffers of one element that no iteration leaves anything in."""
    strides: dict[Step, int]
    """Of loads and stores whose elements are gathered or scattered, how far these lie apart."""
    one_by_one: frozenset[Step]
    """Loads and stores of which each lane does its own."""
    backwards: frozenset[Step]
    """Loads and stores of elements that lie side by side, the first iteration's last."""
    interleaved: dict[Step, tuple[Interleaved, int]]
    """Loads and stores that go to a column of rows which are interleaved, and which column that is. What is stored is
    whole rows."""

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
        "absf absi atan2 cbrt ceil copysign cos ctlz ctpop cttz exp expm1 floor fma log log1p powf round roundeven"
        " rsqrt sin sqrt tan tanh trunc"
    ).split()
)  # fmt: skip
_NOT_IN_LANES = frozenset(
    f"arith.{name}"
    for name in (
        "addui_extended ceildivsi ceildivui divsi divui floordivsi mulsi_extended mului_extended"
        " remf remsi remui"
    ).split()
)  # fmt: skip
_DIVISIONS = frozenset(f"arith.{name}" for name in "divsi divui remsi remui".split())
_FREE = frozenset(
    f"arith.{name}" for name in "addi andi maximumf maxsi maxui minimumf minsi minui muli ori xori".split()
)
_FREE_IF = {"arith.addf": "reassoc", "arith.mulf": "reassoc"}
_TEMPORARY = ("memref.alloc", "memref.alloca")
_LEAST_LANES = 4  # shape
_FEW = 4  # shape
_APART = (32, 64)
_MOST_COLUMNS = 4  # shape: of more, shuffles take longer than what they save
_WIDTHS = (8, 16, 32, 64)
_FARTHEST = 1 << 24  # range: places of lanes are words


def read_loop(
    op: ir.Operation, steps: Sequence[Step], vector_bits: int, *, apart: Apart = "never"
) -> PlainLoop | None:
    """A loop of these steps, or None where it is not plain. `apart` says what becomes of elements that lie apart."""
    if op.name != "scf.for" or constant_of(op.operands[2]) != 1:
        return None
    trips = trips_of(op)
    variable, *carried = op.regions[0].blocks[0].arguments
    *steps, end = steps
    kinds: dict[ir.Value, Kind] = dict.fromkeys(carried, "carried")
    kinds[variable] = "linear"
    body: list[Step] = []
    same: list[Step] = []
    combiners = combiners_of(op, steps, end)
    if combiners is None:
        return None
    own = _own_scalars(steps)
    strides: dict[Step, int] = {}
    one_by_one: set[Step] = set()
    backwards: set[Step] = set()
    interleaved = _interleaved(steps, variable)
    for inner in steps:
        found = [kinds.get(value) for value in inner.operands]
        if inner.name == "memref.load" and inner.operands[0] in own:
            found = ["vector"]
        if not any(found):
            if not _can_move(inner, trips):
                return None
            same.append(inner)
            continue
        if not _is_plain(inner, found, kinds, combiners, own):
            if _is_backwards(inner, kinds):
                backwards.add(inner)
            elif inner in interleaved and kinds.get(inner.operands[0]) != "carried":
                pass
            elif apart == "one by one" and _is_for_each_lane(inner, kinds):
                one_by_one.add(inner)
            elif apart == "gathered" and (stride := _stride(inner, kinds)) is not None:
                strides[inner] = stride
            else:
                return None
            kinds.update(dict.fromkeys(inner.results, "vector"))
        body.append(inner)
    bits = {width for inner in body for width in _widths(inner)}
    if 0 in bits or not bits or _interfere(body, same, own):
        return None
    lanes = vector_bits // max(bits)
    while trips is not None and lanes > trips:
        lanes //= 2
    if lanes < _LEAST_LANES:
        return None
    return PlainLoop(
        op, tuple(body), tuple(same), kinds, combiners, trips, lanes, own, strides,
        frozenset(one_by_one), frozenset(backwards), interleaved,
    )  # fmt: skip


def in_place(loop: PlainLoop) -> bool:
    """Whether a short loop does something to the same elements in each iteration of one around it, and
    nothing else there uses their buffer: that loop can keep them in registers."""
    around = loop.op.parent
    if loop.trips is None or loop.trips > _FEW * loop.lanes or around.name != "scf.for":
        return False
    outer = around.regions[0].blocks[0]
    loaded = {step.place for step in loop.body if step.name == "memref.load"}
    stored = {step.place for step in loop.body if step.name == "memref.store"}
    if any(_is_used_beside(loop.op, buffer, around) for buffer, *_ in loaded & stored):
        return False
    stays = {value for place in loaded & stored for value in place}
    for step in reversed(loop.body):
        if any(result in stays for result in step.results):
            stays.update(step.operands)
    return bool(loaded & stored) and not any(block_of(value) == outer for value in stays)


def _is_used_beside(loop: ir.Operation, buffer: ir.Value, around: ir.Operation) -> bool:
    """Whether ops in the loop around, but outside of this one, use a buffer."""
    users = (use.owner.operation for use in buffer.uses)
    return any(is_inside(user, around) and not is_inside(user, loop) for user in users)


def block_of(value: ir.Value) -> ir.Block:
    """The block that a value is made in, or is an argument of."""
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def trips_of(op: ir.Operation) -> int | None:
    """How often a loop in steps of one runs, if that is known."""
    low, high = constant_of(op.operands[0]), constant_of(op.operands[1])
    return None if low is None or high is None else max(0, high - low)


def combiners_of(op: ir.Operation, steps: Sequence[Step], end: Step) -> tuple[Step, ...] | None:
    """What makes of each value that a loop of these steps carries the next one; None where one has an order."""
    makers = {value: step for step in steps for value in step.results}
    carried = list(op.regions[0].blocks[0].arguments)[1:]
    found = [combiner_of(*pair, makers.get(pair[1])) for pair in zip(carried, end.operands, strict=True)]
    combiners = tuple(step for step in found if step is not None)
    return combiners if len(combiners) == len(found) else None


def combiner_of(carried: ir.Value, value: ir.Value, maker: Step | None) -> Step | None:
    """The op that combines a carried value with another, in an order that is free."""
    if maker is None or carried not in maker.operands:
        return None
    if len(list(carried.uses)) != 1 or len(list(value.uses)) != 1:
        return None
    if maker.name in _FREE:
        return maker
    flags = str(maker.attributes.get("fastmath"))
    return maker if maker.name in _FREE_IF and _FREE_IF[maker.name] in flags else None


def _own_scalars(steps: Sequence[Step]) -> frozenset[ir.Value]:
    """The buffers of one element that only these use, which write it before they read it."""
    found: set[ir.Value] = set()
    for step in steps:
        if step.name != "memref.store":
            continue
        buffer = step.operands[1]
        if any(size != 1 for size in buffer.type.shape):
            continue
        if not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name in _TEMPORARY:
            inside = [other for other in steps if buffer in other.operands]
            if inside[0] is step and len(inside) == len(list(buffer.uses)):
                found.add(buffer)
    return frozenset(found)


def _can_move(step: Step, trips: int | None) -> bool:
    """Whether an op on what stays the same can be done in front of the loop, even in vain."""
    if step.name == "memref.load":
        return bool(trips) or is_in_bounds(step.operands[0], step.operands[1:])
    if not step.name.startswith(("arith.", "math.")) or len(step.op.regions):
        return False
    return bool(trips) or step.name not in _NOT_IN_LANES


def _is_plain(
    step: Step,
    found: Sequence[Kind | None],
    kinds: dict[ir.Value, Kind],
    combiners: Sequence[Step],
    own: frozenset[ir.Value],
) -> bool:
    """Whether an op on operands of these kinds can be done to vectors; notes what it makes."""
    if "carried" in found:
        return step in combiners
    name = step.name
    if name in ("memref.load", "memref.store"):
        buffer, *indices = step.place
        which = [kinds.get(index) for index in indices]
        if buffer not in own and not _is_contiguous(ir.MemRefType(buffer.type), which, "linear"):
            return False
        if name == "memref.load":
            kinds[step.results[0]] = "vector"
        return True
    if len(step.results) != 1 or len(step.op.regions):
        return False
    if (kind := _counted(step, found)) is not None:
        kinds[step.results[0]] = kind
    elif has_vectors(name) or _divides_by_constant(step):
        kinds[step.results[0]] = "vector"
    elif name == "arith.remf" and step.results[0].type.width <= 32:  # wider ones have no formula
        kinds[step.results[0]] = "vector"
    else:
        return False
    return True


def has_vectors(name: str) -> bool:
    """Whether an element-wise op does each lane of vectors alone, and fast."""
    return name in _MATH or (name.startswith("arith.") and name not in _NOT_IN_LANES)


def _divides_by_constant(step: Step) -> bool:
    """Whether integers are divided by a number of which LLVM makes shifts, or products where vectors have them."""
    by = constant_of(step.operands[1]) if step.name in _DIVISIONS else None
    if by in (None, 0, -1):
        return False
    return 0 < _width(step.results[0].type, stored=False) <= 32 or by & (by - 1) == 0


def _is_contiguous(type_: ir.MemRefType, which: Sequence[Kind | None], kind: Kind) -> bool:
    """Whether elements lie side by side where indices go from one to the next, of which one is of this kind."""
    strides, _ = type_.get_strides_and_offset()
    walked = [place for place, kind in enumerate(which) if kind is not None]
    return (
        len(walked) == 1
        and which[walked[0]] == kind
        and strides[walked[0]] == strides[-1] == 1
        and all(size == 1 for size in type_.shape[walked[0] + 1 :])
    )


def _stride(step: Step, kinds: dict[ir.Value, Kind]) -> int | None:
    """How far apart the elements are that a load or store goes to, where processors have an
    instruction for such."""
    if step.name not in ("memref.load", "memref.store"):
        return None
    buffer, *indices = step.place
    type_ = ir.MemRefType(buffer.type)
    strides, _ = type_.get_strides_and_offset()
    walked = [(stride, kinds[i]) for stride, i in zip(strides, indices, strict=True) if i in kinds]
    if step.name == "memref.store" and kinds.get(step.operands[0]) == "carried":
        return None
    if not walked or _width(type_.element_type, stored=True) not in _APART:
        return None
    known = all(kind == "linear" and 0 < stride < _FARTHEST for stride, kind in walked)
    return sum(stride for stride, _ in walked) if known else None


def _interleaved(steps: Sequence[Step], variable: ir.Value) -> dict[Step, tuple[Interleaved, int]]:
    """Loads and stores of columns of interleaved rows, with the columns: loads that use half of each row, and stores
    of all of it."""
    found: dict[Step, tuple[Interleaved, int]] = {}
    columns: dict[tuple[str, Interleaved], set[int]] = {}
    for step in steps:
        place = _column(step, variable) if step.name in ("memref.load", "memref.store") else None
        if place is not None:
            found[step] = place
            columns.setdefault((step.name, place[0]), set()).add(place[1])
    enough = {
        (name, rows)
        for (name, rows), of_rows in columns.items()
        if len(of_rows) * (1 if name == "memref.store" else 2) >= rows.columns
    }
    return {step: place for step, place in found.items() if (step.name, place[0]) in enough}


def _column(step: Step, variable: ir.Value) -> tuple[Interleaved, int] | None:
    """The rows that an access goes to a column of: the loop's variable is an index, those after it are constants, and
    the row that they say a place in is contiguous and follows the row of the iteration before."""
    buffer, *indices = step.place
    if indices.count(variable) != 1:
        return None
    at = indices.index(variable)
    type_ = ir.MemRefType(buffer.type)
    strides, _ = type_.get_strides_and_offset()
    column, size = 0, 1
    for index, extent, stride in reversed(list(zip(indices, type_.shape, strides, strict=True))[at + 1 :]):
        constant = constant_of(index)
        if constant is None or stride != size:
            return None
        column += constant * stride
        size *= extent
    if strides[at] != size or not 1 < size <= _MOST_COLUMNS or _width(type_.element_type, stored=True) not in _WIDTHS:
        return None
    if isinstance(type_.element_type, ir.IntegerType) and type_.element_type.width == 1:
        return None
    return Interleaved(buffer, tuple(indices[: at + 1]), size), column


def _is_for_each_lane(step: Step, kinds: dict[ir.Value, Kind]) -> bool:
    """Whether lanes can load their elements, or store them at places that differ, one after the other."""
    if step.name not in ("memref.load", "memref.store"):
        return False
    is_load = step.name == "memref.load"
    buffer, *indices = step.place
    type_ = ir.MemRefType(buffer.type)
    which = {kinds[index] for index in indices if index in kinds}
    if not is_load and kinds.get(step.operands[0]) == "carried":
        return False
    allowed = {"linear", "falling", "vector"} if is_load else {"linear", "falling"}
    return _width(type_.element_type, stored=True) > 0 and which <= allowed


def _is_backwards(step: Step, kinds: dict[ir.Value, Kind]) -> bool:
    if step.name not in ("memref.load", "memref.store"):
        return False
    if step.name == "memref.store" and kinds.get(step.operands[0]) == "carried":
        return False
    buffer, *indices = step.place
    return _is_contiguous(ir.MemRefType(buffer.type), [kinds.get(index) for index in indices], "falling")


_OTHER_WAY: dict[Kind | None, Kind] = {"linear": "falling", "falling": "linear"}


def _counted(step: Step, found: Sequence[Kind | None]) -> Kind | None:
    """The kind of the result if it counts up or down as the loop's variable does."""
    if step.name in ("arith.addi", "arith.subi") and None in found:
        first, second = found
        if first in _OTHER_WAY:
            return first
        if second in _OTHER_WAY:
            return second if step.name == "arith.addi" else _OTHER_WAY[second]
        return None
    is_cast = step.name == "arith.trunci" or (
        step.name == "arith.index_cast" and isinstance(step.operands[0].type, ir.IndexType)
    )
    return found[0] if is_cast and found[0] in _OTHER_WAY else None


def _widths(step: Step) -> list[int]:
    """The bits of what decides how many lanes an op has; 0 for what has no vectors."""
    if step.name == "memref.store":
        return [_width(step.operands[0].type, stored=True)]
    type_ = step.results[0].type
    if isinstance(type_, ir.IndexType):
        return []
    width = _width(type_, stored=step.name == "memref.load")
    return [] if width == 1 else [width]


def is_native(value: ir.Value) -> bool:
    """Whether a value of bf16 was rounded as the processor does it."""
    return not isinstance(value.owner, ir.Block) and NATIVE in value.owner.operation.attributes


def _width(type_: ir.Type, *, stored: bool) -> int:
    if isinstance(type_, (ir.BF16Type, ir.F32Type, ir.F64Type)):
        return type_.width
    if isinstance(type_, ir.IntegerType) and type_.width in (8, 16, 32, 64):
        return type_.width
    if isinstance(type_, ir.IntegerType) and type_.width == 1:
        return 8 if stored else 1  # in memory a truth is a byte (llvm-elements-as-bytes), in vectors a bit
    return 0


def _interfere(body: Sequence[Step], same: Sequence[Step], own: frozenset[ir.Value]) -> bool:
    """Whether an iteration may touch what another writes. What stays the same is read before the first."""
    written: dict[ir.Value, set[Place]] = {}
    for step in body:
        if step.name == "memref.store" and step.place[0] not in own:
            written.setdefault(root(step.place[0]), set()).add(step.place)
    if not written:
        return False
    if any(step.name == "memref.load" and root(step.place[0]) in written for step in same):
        return True
    return any(
        place != other and not _is_apart(place, other)
        for place in {step.place for step in body if step.name in ("memref.load", "memref.store")}
        for other in written.get(root(place[0]), ())
    )


def _is_apart(first: Place, second: Place) -> bool:
    """Whether places of a buffer are never the same, whatever the iteration: an index is another constant."""
    if first[0] != second[0]:
        return False
    constants = ((constant_of(one), constant_of(other)) for one, other in zip(first[1:], second[1:], strict=True))
    return any(None not in pair and pair[0] != pair[1] for pair in constants)


def root(buffer: ir.Value) -> ir.Value:
    """The memory that a buffer is; temporaries that are views of one region have none in common."""
    while not isinstance(buffer.owner, ir.Block):
        op = buffer.owner.operation
        if op.name == "memref.view" or not len(op.operands) or not is_buffer(op.operands[0]):
            break
        buffer = op.operands[0]
    return buffer
