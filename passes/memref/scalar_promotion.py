"""Scalar promotion: what a loop loads and stores at the same place in each iteration it carries in registers.

    for j = 0 to n {                                 a = load s[0]
      a = load s[0]                                  b = for j = 0 to n carry (t = a) {
      store a + x[j], s[0]                   ->        yield t + x[j]
    }                                                }
                                                     store b, s[0]
Sums of a few columns are written so: each has a place, which a loop over rows adds to. What is left can be a
reduction over vectors. Vectors at the same place are carried alike, those of a mask, too. For innermost loops of
which nothing but loads and stores touches memory, and places that nothing else in the loop may touch.
What stays the same is computed in front of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir, scf
from lamina.passes.emit.loops import constant_of
from lamina.passes.linalg.analysis.structure import is_buffer
from lamina.passes.memref.bounds import is_in_bounds
from lamina.passes.memref.plain_loop import block_of, root, trips_of
from lamina.records import Record

_MOST = 16  # shape: values that a loop carries, half of the registers
_PURE = ("arith.", "math.", "vector.broadcast", "vector.shuffle")
_NOT_IN_VAIN = ("arith.div", "arith.rem", "arith.ceildiv", "arith.floordiv")
_MAY_BE_BESIDE = ("arith.", "math.", "vector.", "memref.load", "memref.store", "scf.yield")  # none has regions


def promote(loop: ir.Operation) -> ir.Operation:
    """The loop that carries what it can, or this one where it can't."""
    body = _simple_body(loop)
    accesses = [found for op in body if (found := _Access.of(op)) is not None]
    stored = {access.buffer for access in accesses if not access.is_load}
    if not any(access.is_load and access.buffer in stored for access in accesses):
        return loop
    hoist(loop)
    places = _promoted(loop, accesses)
    return _carrying(loop, places) if places else loop


def _simple_body(loop: ir.Operation) -> list[ir.Operation]:
    """The ops of an innermost loop of which nothing but loads and stores touches memory; else none."""
    found: list[ir.Operation] = []
    if loop.name == "scf.for":
        for view in loop.regions[0].blocks[0].operations:
            op = view.operation
            if not op.name.startswith(_MAY_BE_BESIDE):
                return []
            found.append(op)
    return found


def hoist(loop: ir.Operation) -> None:
    """What stays the same is computed, and loaded, in front of the loop."""
    body = _simple_body(loop)
    runs = bool(body) and bool(trips_of(loop))
    accesses = {op: found for op in body if (found := _Access.of(op))}
    written = {root(access.buffer) for access in accesses.values() if not access.is_load}
    written.update(root(value) for op in body for value in _other_buffers(op))
    for op in body:
        access = accesses.get(op)
        if access is not None:
            stays = runs and access.is_load and root(access.buffer) not in written
        else:
            stays = op.name.startswith(_PURE) and (runs or not op.name.startswith(_NOT_IN_VAIN))
        if stays and not any(_is_made_in(value, loop) for value in op.operands):
            op.move_before(loop)


def _is_made_in(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether an iteration makes a value: there are no other blocks in the loop."""
    return block_of(value) == loop.regions[0].blocks[0]


class _Access(Record):
    """A load or store."""

    op: ir.Operation
    is_load: bool
    buffer: ir.Value
    indices: tuple[ir.Value, ...]
    mask: ir.Value | None
    type: ir.Type

    @classmethod
    def of(cls, op: ir.Operation) -> _Access | None:
        operands = list(op.operands)
        if op.name in ("memref.load", "vector.load"):
            return cls(op, True, operands[0], tuple(operands[1:]), None, op.results[0].type)
        if op.name in ("memref.store", "vector.store"):
            return cls(op, False, operands[1], tuple(operands[2:]), None, operands[0].type)
        if op.name == "vector.maskedload":
            return cls(op, True, operands[0], tuple(operands[1:-2]), operands[-2], op.results[0].type)
        if op.name == "vector.maskedstore":
            return cls(op, False, operands[0], tuple(operands[1:-2]), operands[-2], operands[-1].type)
        return None

    @property
    def place(self) -> tuple[object, ...]:
        indices = tuple(index if (n := constant_of(index)) is None else n for index in self.indices)
        return self.buffer, indices, self.mask, self.type

    @property
    def stored(self) -> ir.Value:
        return self.op.operands[self._stored_at]

    @property
    def _stored_at(self) -> int:
        return len(self.op.operands) - 1 if self.mask is not None else 0

    def copied_with(self, value: ir.Value) -> None:
        """The same store, of another value."""
        self.op.clone().operation.operands[self._stored_at] = value

    def is_apart(self, other: _Access) -> bool:
        """Whether this goes to other elements of the same memory: one index is another constant, by more than the
        elements of a vector."""
        if self.buffer != other.buffer:
            return root(self.buffer) != root(other.buffer)
        last = len(self.indices) - 1
        for number, pair in enumerate(zip(self.indices, other.indices, strict=True)):
            one, two = (constant_of(index) for index in pair)
            if one is None or two is None:
                continue
            widths = [1 if number < last else _elements(access.type) for access in (self, other)]
            if one + widths[0] <= two or two + widths[1] <= one:
                return True
        return False


def _elements(type_: ir.Type) -> int:
    return type_.shape[0] if isinstance(type_, ir.VectorType) else 1


def _promoted(loop: ir.Operation, accesses: Sequence[_Access]) -> list[list[_Access]]:
    """The accesses of each place that can be carried."""
    by_place: dict[tuple[object, ...], list[_Access]] = {}
    for access in accesses:
        by_place.setdefault(access.place, []).append(access)
    touched = {root(value) for view in loop.regions[0].blocks[0].operations for value in _other_buffers(view.operation)}
    found = [
        of_place
        for of_place in by_place.values()
        if of_place[0].is_load
        and not all(access.is_load for access in of_place)
        and not any(_is_made_in(value, loop) for value in _of_place(of_place[0]))
        and _is_there(loop, of_place[0])
        and root(of_place[0].buffer) not in touched
        and all(access in of_place or access.is_apart(of_place[0]) for access in accesses)
    ]
    return found if len(found) <= _MOST else []


def _of_place(access: _Access) -> tuple[ir.Value, ...]:
    masks = () if access.mask is None else (access.mask,)
    return access.buffer, *access.indices, *masks


def _other_buffers(op: ir.Operation) -> list[ir.Value]:
    """What an op that is no such access does something to."""
    return [] if _Access.of(op) is not None else [value for value in op.operands if is_buffer(value)]


def _is_there(loop: ir.Operation, access: _Access) -> bool:
    """Whether the elements may be loaded even if the loop does nothing."""
    if trips_of(loop):
        return True
    return not isinstance(access.type, ir.VectorType) and is_in_bounds(access.buffer, access.indices)


def _carrying(loop: ir.Operation, places: Sequence[Sequence[_Access]]) -> ir.Operation:
    """The loop in the place of this one that carries these places, which are loaded before it and stored after."""
    block = loop.regions[0].blocks[0]
    *body, end = [view.operation for view in block.operations]
    low, high, step, *initial = loop.operands
    with ir.InsertionPoint(loop), loop.location:
        loaded = [of_place[0].op.clone().results[0] for of_place in places]
        made = scf.ForOp(low, high, step, [*initial, *loaded])
        held = list(made.inner_iter_args)[len(initial) :]
        with ir.InsertionPoint(made.body):
            new_end = scf.YieldOp(list(made.inner_iter_args)).operation
    for argument, new in zip(block.arguments, made.body.arguments):
        argument.replace_all_uses_with(new)
    numbered = {access.op: (number, access) for number, of_place in enumerate(places) for access in of_place}
    for op in body:
        if op not in numbered:
            op.move_before(new_end)
            continue
        number, access = numbered[op]
        if access.is_load:
            op.results[0].replace_all_uses_with(held[number])
        else:
            held[number] = access.stored
    for number, value in enumerate([*end.operands, *held]):
        new_end.operands[number] = value
    results = list(made.results)
    with ir.InsertionPoint(loop), loop.location:
        for of_place, value in zip(places, results[len(initial) :], strict=True):
            next(access for access in reversed(of_place) if not access.is_load).copied_with(value)
    for old, new in zip(loop.results, results):
        old.replace_all_uses_with(new)
    for op in reversed(body):
        if op in numbered:
            op.erase()
    loop.erase()
    return made.operation
