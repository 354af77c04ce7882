"""Cut innermost loops with long bodies into several over a chunk that stays in the first cache.

    for j = 0 to n {                            for c = 0 to n step 1024 {
      ... 200 ops, then                           for j = 0 to 1024 { ... 200 ops; t[j] = v }
      ... 200 that use v of them, x[j]     ->     for j = 0 to 1024 { ... 200 ops on t[j], x[c + j] }
    }                                           }
Memory is walked once, however long the chain of ops is, and each loop is one that LLVM compiles in time: its
time grows faster than a block, and what it vectorises itself waits for itself where it is long. A loop is cut
where the fewest values are alive; they go through temporaries of one chunk. What is loaded from side by side,
or follows from the position, is loaded or computed again. Stores stay at the end, behind all loads, as one
argument may be another's place.

Before that, ops that need only one value that is computed move to where they are used first, so that fewer
are alive. Loops that carry values, or have other loops or branches inside, are left alone.

example: test/passes/memref/cut_long_loops.mlir
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from math import ceil

from lamina.dialects.vendors import arith, ir, memref, scf
from lamina.passes.emit.copies import copied
from lamina.passes.emit.loops import constant_of, index, load, store
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.memref.interleave_factor import side_by_side
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.memref.plain_loop import Step, read_loop

_LEAST_CHUNK, _MOST_CHUNK = 128, 1024  # code
_CHUNK = 1 / 3  # of the first cache, for all temporaries, as others read what is in memory
_OPS_OF_DIVISION = 8  # of integers: what one becomes later
_WHOLE_VECTORS = 64  # elements that are whole vectors, whatever their type

_DIVISIONS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui")


class CutLongLoops(Pass):
    """See the module's docstring."""

    vector_bits: int = 256
    most_vectors: int = 2048  # code
    """Ops on vectors of a loop that `memref-vectorize-loops` writes, with those on vectors side by side: LLVM's
    time for each of 12,000 is 2.5 times as long as for one of 2,000."""
    most_left: int = 64  # code
    """Of another loop: what LLVM vectorises takes 1.1 to 16 times as long where it is longer."""
    gathers: bool = True
    """As of `memref-vectorize-loops`."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "scf.for"):
            block = op.regions[0].blocks[0]
            if len(op.results) or next(islice(block.operations, self.most_left, None), None) is None:
                continue  # it carries values, or is short, as most are
            if constant_of(op.operands[2]) != 1:
                continue
            body = [Step(view.operation) for view in block.operations]
            if not _is_straight(body):
                continue
            plain = read_loop(op, body, self.vector_bits, apart="never" if self.gathers else "one by one")
            most = self.most_left
            divisions = sum(step.name.startswith(_DIVISIONS) for step in body)
            most = max(1, most * len(body) // (len(body) + (_OPS_OF_DIVISION - 1) * divisions))
            if plain is not None:
                registers = 32 if self.vector_bits == 512 else 16
                most = self.most_vectors // max(2, side_by_side(plain, registers).vectors)
            chain = _Chain(op, body[:-1])
            if len(chain.steps) > most:
                parts = chain.cut(most)
                self.count("loops", len(parts))
                _Writer(chain, parts, int(_CHUNK * machine_of(op).l1_bytes)).write()


def _is_straight(body: Sequence[Step]) -> bool:
    """Whether a loop's body has nothing but plain ops, and stores at the end."""
    stores = [number for number, step in enumerate(body) if not step.results]
    at_end = stores == list(range(stores[0], len(body)))
    return at_end and all(
        step.name.startswith(("arith.", "math.", "memref.load", "memref.store")) and not len(step.op.regions)
        for step in body[:-1]
    )


class _Chain:
    """The ops of a loop's body in the order that they are cut in."""

    def __init__(self, op: ir.Operation, body: Sequence[Step]) -> None:
        self.op = op
        self.variable = op.regions[0].blocks[0].arguments[0]
        self.makers = {value: step for step in body for value in step.results}
        self._moving = {self.variable}
        """What differs from one iteration to the next."""
        self._even = {self.variable}
        """Of that, the places that are one further each time, or one less."""
        self.free: dict[ir.Value, Step] = {}
        """What any part gets for itself, by the steps that make it."""
        computed = [step for step in body if not self._note_free(step)]
        self.steps = self._sunk(computed)

    def _note_free(self, step: Step) -> bool:
        """Whether a part gets a step's result for itself: it loads from side by side, or goes by the loop's
        variable alone."""
        if any(value in self._moving for value in step.operands):
            self._moving.update(step.results)
        is_index = len(step.results) == 1 and _is_index(step.results[0])
        if is_index and step.name in ("arith.addi", "arith.subi") and _count(step.operands, self._even) == 1:
            if _count(step.operands, self._moving) == 1:
                self._even.update(step.results)
        loads = step.name == "memref.load" and self._loads_near(step)
        if not loads and not is_index and step.name not in ("arith.constant", "arith.index_cast"):
            return False
        known = (value in self.free or value not in self.makers for value in step.operands)
        if all(known):
            self.free[step.results[0]] = step
        return step.results[0] in self.free

    def _loads_near(self, step: Step) -> bool:
        """Whether a load is of one element, or of the next ones in turn: others may cost a cache line each."""
        buffer, *at = step.operands
        moving = [number for number, value in enumerate(at) if value in self._moving]
        if not moving:
            return True
        strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
        return len(moving) == 1 and at[moving[0]] in self._even and strides[moving[0]] == 1

    def needs(self, step: Step) -> list[ir.Value]:
        """The values that steps compute and this one reads."""
        return [v for v in dict.fromkeys(step.operands) if v in self.makers and v not in self.free]

    def _sunk(self, steps: Sequence[Step]) -> list[Step]:
        """The steps, each that needs at most one of the others in front of the first that needs it."""
        users: dict[Step, list[Step]] = {step: [] for step in steps}
        for step in steps:
            for value in self.needs(step):
                users[self.makers[value]].append(step)
        place: dict[Step, int] = {}
        for number, step in reversed(list(enumerate(steps))):
            moves = len(self.needs(step)) <= 1 and users[step]
            place[step] = min(place[user] for user in users[step]) if moves else number
        return sorted(steps, key=place.__getitem__)

    def cut(self, most: int) -> list[list[Step]]:
        """Parts of so many steps at most, between which few bytes are alive."""
        alive = self._alive()
        count = len(self.steps)
        parts, start = [], 0
        while count - start > most:
            least = max(start + most // 2, count - most * (ceil((count - start) / most) - 1))
            at = min(range(min(least, start + most), start + most + 1), key=lambda n: (alive[n], -n))
            parts.append(self.steps[start:at])
            start = at
        return [*parts, self.steps[start:]]

    def _alive(self) -> list[int]:
        """The bytes alive in front of each step."""
        last = {value: number for number, step in enumerate(self.steps) for value in self.needs(step)}
        changes = [0] * (len(self.steps) + 2)
        for number, step in enumerate(self.steps):
            for value in step.results:
                changes[number + 1] += element_bytes(value.type)
                changes[last.get(value, number) + 1] -= element_bytes(value.type)
        alive = [0]
        for change in changes[1:]:
            alive.append(alive[-1] + change)
        return alive


def _count(values: Iterable[ir.Value], of: set[ir.Value]) -> int:
    return sum(value in of for value in values)


def _is_index(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IndexType)


class _Slots:
    """Temporaries for the values that parts hand on. One is written by no part that reads it."""

    def __init__(self, chain: _Chain, parts: Sequence[Sequence[Step]]) -> None:
        made = {value: n for n, part in enumerate(parts) for step in part for value in step.results}
        last = {value: n for n, part in enumerate(parts) for step in part for value in chain.needs(step)}
        self.types: list[ir.Type] = []
        self.of: dict[ir.Value, int] = {}
        free_after: list[int] = []
        for value, number in made.items():
            until = last.get(value, number)
            if until == number:
                continue
            for slot, after in enumerate(free_after):
                if after < number and self.types[slot] == value.type:
                    break
            else:
                slot = len(free_after)
                free_after.append(0)
                self.types.append(value.type)
            free_after[slot] = until
            self.of[value] = slot

    def chunk(self, trips: int | None, most_bytes: int) -> int:
        """How many elements are in the cache: if possible, some that leave no rest."""
        each = max(1, sum(map(element_bytes, self.types)))
        most = max(_LEAST_CHUNK, min(_MOST_CHUNK, most_bytes // each // _WHOLE_VECTORS * _WHOLE_VECTORS))
        if trips is None:
            return most
        if trips <= most:
            return trips
        even = (n for n in range(most, most // 2, -_WHOLE_VECTORS) if trips % n == 0)
        return next(even, most)


class _Writer:
    def __init__(self, chain: _Chain, parts: Sequence[Sequence[Step]], most_bytes: int) -> None:
        self._chain, self._parts = chain, parts
        low, high = (constant_of(value) for value in list(chain.op.operands)[:2])
        self._trips = None if low is None or high is None else high - low
        self._slots = _Slots(chain, parts)
        self._chunk = self._slots.chunk(self._trips, most_bytes)

    def write(self) -> None:
        op = self._chain.op
        low, high, _ = op.operands
        with ir.InsertionPoint(op), op.location:
            self._buffers = [
                memref.AllocOp(ir.MemRefType.get([self._chunk], type_), [], []).result
                for type_ in self._slots.types
            ]
            if self._trips == self._chunk:
                self._write_parts(low, index(self._chunk))
            else:
                chunks = scf.ForOp(low, high, index(self._chunk), [])
                with ir.InsertionPoint(chunks.body):
                    start = chunks.induction_variable
                    length = index(self._chunk)
                    if self._trips is None or self._trips % self._chunk:
                        rest = arith.SubIOp(high, start).result
                        length = arith.MinSIOp(rest, length).result
                    self._write_parts(start, length)
                    scf.YieldOp([])
        op.erase()

    def _write_parts(self, start: ir.Value, length: ir.Value) -> None:
        for steps in self._parts:
            loop = scf.ForOp(index(0), length, index(1), [])
            with ir.InsertionPoint(loop.body):
                self._write_part(steps, start, loop.induction_variable)
                scf.YieldOp([])

    def _write_part(self, steps: Sequence[Step], start: ir.Value, place: ir.Value) -> None:
        chain, slots = self._chain, self._slots
        known = {chain.variable: arith.AddIOp(start, place).result}
        here = dict.fromkeys(value for step in steps for value in step.results)
        for value in _needed(chain, steps):
            if value in chain.free:
                copied(chain.free[value].op, known)
            elif value not in here:
                known[value] = load(self._buffers[slots.of[value]], [place])
        for step in steps:
            copied(step.op, known)
        for value in here:
            if value in slots.of:
                store(known[value], self._buffers[slots.of[value]], [place])


def _needed(chain: _Chain, steps: Iterable[Step]) -> list[ir.Value]:
    """What steps read of what the loop's body makes, after what that needs itself."""
    found: dict[ir.Value, None] = {}

    def visit(value: ir.Value) -> None:
        if value in found or value not in chain.makers:
            return
        if value in chain.free:
            for operand in chain.free[value].operands:
                visit(operand)
        found[value] = None

    for step in steps:
        for value in step.operands:
            visit(value)
    return list(found)
