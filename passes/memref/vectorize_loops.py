"""Write plain innermost loops over vectors, and leave the others to LLVM's vectoriser, if there are any.

    for j = 0 to 40 step 1 {                       for j = 0 to 32 step 16 {
      v = load x[i, j]                               v = vector.load x[i, j] : vector<16xf32>
      store v * s, y[i, j]                   ->      vector.store v * broadcast(s), y[i, j]
    }                                              }
                                                   v = vector.maskedload x[i, 32], 8 of 16 lanes ...
The vectoriser takes most of the time that LLVM needs for such a kernel, and passes over loops that are written so:
`lamina.vectors` on the module says that there is no other, and it need not run at all. Taken are loops in steps of
1 whose loads and stores are contiguous, forwards or backwards, or loads of the same element each time, around
element-wise arithmetic, or go to a column of short rows that follow each other, such as the coordinates of points:
whole rows are loaded and dealt into columns, and back (columns that few loads use, or not all are stored, lie apart).
What loops load and store at the same place each time they carry instead (scalar_promotion.py), and what they carry
must be free to be combined in any order. Short ones that add to the same few elements each time become vectors
that the loop around carries. All else is LLVM's, but for

- modules that only copy and fill, if not short rows, of which LLVM makes calls of the C library;
- long loops that do little but move elements of 64 bits that lie apart, or only move such of any width;
- loops whose iterations depend on each other, and borders, which take little of the time: these stay scalar.

What remains of a loop is done with a mask where vectors have 512 bits, else one by one; there, quotients by the same
number are products that are corrected (quotients.py). With `beside_vectors`, only modules that have or call loops
over vectors already are touched, or none but long ones; and loops that round to bf16 as the processor does.
On vectors of 512 bits elements that lie apart, as those of a column do, are gathered and scattered. Where the
processor is slow at that (without `gathers`), each lane loads and stores its own instead, and loads from places
that the loop computes, too. With `everywhere`, as in loops of the program that are one kernel, loops that move
elements are written over vectors, too.

example: test/passes/memref/vectorize_loops.mlir
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import ancestors, find_ops
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.memref.partial_results import in_partial_results
from lamina.passes.memref.plain_loop import (
    Apart,
    PlainLoop,
    Step,
    combiners_of,
    in_place,
    is_native,
    read_loop,
    trips_of,
)
from lamina.passes.memref.scalar_promotion import hoist, promote
from lamina.passes.memref.vector_loop import rest_has_masks, write_over_vectors

OF_VECTORS = "lamina.vectors"
"""On a module: no loop is left that LLVM could make one over vectors."""

IN_ORDER = "lamina.in_order"
"""On a module: vectors that are worked on side by side should stay so, op by op."""

SIMPLIFY = "lamina.simplify"
"""On a module that leaves LLVM's vectoriser nothing to do: some loops are not over vectors, and LLVM should make calls
of the C library of those that copy and fill, and move out of the others what stays the same."""

_MOVES = ("memref.load", "memref.store", "arith.addi")
_FOLLOWED = (
    "memref.load", "memref.store", "arith.index_cast", "arith.addi", "arith.subi", "arith.muli", "arith.maxsi",
    "arith.minsi", "arith.select",
)  # fmt: skip
_OF_VECTORS = ("vector.", "llvm.", "x86")
_MUCH = 64  # code: vectors
_LONG = 16  # code: vectors, too
_WIDE = 64  # bits
_ENOUGH, _LEAST_LANES = 4, 4  # shape: ops for each element
_UNROLLED = 32  # iterations, of which LLVM leaves no loop
_SMALL_PART = 4  # code: of the time of all loops


class VectorizeLoops(Pass):
    """See the module's docstring."""

    vector_bits: int = 256
    beside_vectors: bool = False
    prefetch: bool = False
    everywhere: bool = False
    gathers: bool = True

    def run(self, module: ir.Module) -> None:
        plain, left, over_vectors = self._read(module)  # what is left is for LLVM's vectoriser
        ahead = machine_of(module).ahead_bytes if self.prefetch else 0
        beside = self.beside_vectors and not all(map(_is_long, plain))
        if not over_vectors and not self.everywhere and (beside or _only_move(plain)):
            kept = [loop for loop in plain if _rounds(loop) or (not beside and _is_short_copy(loop))]
            left += [loop.op for loop in plain if loop not in kept]
            plain = kept
        scalar = [] if self.everywhere else _scalar_anyway(left, plain, self.vector_bits)
        left = [op for op in left if op not in scalar]
        for loop in plain:
            around, is_in_place = loop.op.parent.operation, in_place(loop)
            if write_over_vectors(
                loop,
                masked=self._masked,
                ahead=ahead,
                short_buffers=self.everywhere,
                whole=is_in_place,
            ):
                module.operation.attributes[IN_ORDER] = ir.UnitAttr.get()
            hoist(around)
            if is_in_place:
                in_partial_results(promote(around))
        if plain:
            self.count("loops over vectors", len(plain))
        if left:
            self.count("loops left to LLVM", len(left))
        else:
            module.operation.attributes[OF_VECTORS] = ir.UnitAttr.get()
            if scalar or any(_only_move([loop]) for loop in plain):
                module.operation.attributes[SIMPLIFY] = ir.UnitAttr.get()

    def _read(self, module: ir.Module) -> tuple[list[PlainLoop], list[ir.Operation], int]:
        """The innermost loops of a module that can be written over vectors, those that can't, and how many there are
        already."""
        plain: list[PlainLoop] = []
        left: list[ir.Operation] = []
        over_vectors = len(find_ops(module, "llvm.call"))  # what is called is
        apart = self._apart
        for op in list(_innermost_loops(module)):
            if any(view.operation.name.startswith(_OF_VECTORS) for view in op.regions[0].blocks[0].operations):
                over_vectors += 1
                continue
            op = promote(op)
            steps = [Step(view.operation) for view in op.regions[0].blocks[0].operations]
            loop = read_loop(op, steps, self.vector_bits)
            if loop is None:
                if apart != "never":
                    loop = read_loop(op, steps, self.vector_bits, apart=apart)
                is_taken = self.everywhere and apart == "gathered" and loop is not None
                if not is_taken and _moves_apart(op, steps, self.vector_bits):
                    continue
                if loop is not None and apart == "one by one" and not _does_enough(loop):
                    continue
            if loop is None or (in_place(loop) and not self._unrolls(loop)):
                left.append(op)
            elif not (self.everywhere and _copies_much(loop)):
                plain.append(loop)
        return plain, left, over_vectors

    @property
    def _masked(self) -> bool:
        return self.vector_bits == 512

    def _unrolls(self, loop: PlainLoop) -> bool:
        """Whether of a loop that is alone in another nothing but vectors is left."""
        around = loop.op.parent.regions[0].blocks[0].operations
        alone = all(view.operation == loop.op or not len(view.operation.regions) for view in around)
        assert loop.trips is not None
        return alone and (loop.trips % loop.lanes == 0 or rest_has_masks(loop, masked=self._masked))

    @property
    def _apart(self) -> Apart:
        if not self.gathers:
            return "one by one"
        return "gathered" if self.vector_bits == 512 else "never"


def _innermost_loops(module: ir.Module) -> Iterator[ir.Operation]:
    """The loops that have no other inside."""
    around: set[ir.Operation] = set()
    for op in find_ops(module, "scf.for", "scf.while"):  # inner ones first
        if op not in around:
            yield op
        around.update(ancestors(op))


def _scalar_anyway(left: Sequence[ir.Operation], plain: Sequence[PlainLoop], vector_bits: int) -> list[ir.Operation]:
    """Of loops that are left, those of which LLVM's vectoriser would make none over vectors: each iteration needs what
    the one before has left, or stores where a table says, perhaps twice at one place. And all, where what they do is
    a small part of what the others do even so: the borders of an array."""
    scalar = [op for op in left if _is_in_turn(op)]
    others = [op for op in left if op not in scalar]
    if not others or any(trips_of(op) is None for op in others):
        return scalar
    rest = sum(map(_steps, others)) * vector_bits // _WIDE
    return list(left) if rest * _SMALL_PART <= sum(_steps(loop.op) for loop in plain) else scalar


def _is_in_turn(op: ir.Operation) -> bool:
    """Whether the iterations of a loop can't be done side by side."""
    if op.name != "scf.for":
        return True
    *steps, end = (Step(view.operation) for view in op.regions[0].blocks[0].operations)
    chooses = any(step.name == "arith.select" for step in steps)  # as the least and its place are found
    if not chooses and combiners_of(op, steps, end) is None:
        return True
    looked_up: set[ir.Value] = set()
    for inner in find_ops(op, *_FOLLOWED):
        if inner.name == "memref.store":
            if not looked_up.isdisjoint(list(inner.operands)[2:]):
                return True
        elif inner.name == "memref.load" or not looked_up.isdisjoint(inner.operands):
            looked_up.update(inner.results)
    return False


def _steps(op: ir.Operation) -> int:
    """How many ops a loop does, with those around it; loops of which it isn't known how often they run count once."""
    trips = [trips_of(around) or 1 for around in (op, *ancestors(op)) if around.name == "scf.for"]
    return len(op.regions[0].blocks[0].operations) * math.prod(trips)


def _rounds(loop: PlainLoop) -> bool:
    """Whether a loop rounds to bf16 as the processor does, which LLVM is not let see: it would make it one over four
    elements."""
    return any(step.name == "arith.truncf" and is_native(step.results[0]) for step in loop.body)


def _only_move(loops: Sequence[PlainLoop]) -> bool:
    return len(loops) > 0 and all(step.name in _MOVES for loop in loops for step in loop.body)


def _is_copy(loop: PlainLoop) -> bool:
    """Whether a loop only copies or fills elements that lie side by side."""
    return _only_move([loop]) and not (loop.strides or loop.one_by_one or loop.backwards or loop.interleaved)


def _moves_apart(op: ir.Operation, steps: list[Step], vector_bits: int) -> bool:
    """Whether a loop does little but move elements of 64 bits that lie apart: over vectors these would be gathered
    and scattered one after the other, and with LLVM's vectoriser it takes twice as long to compile. (Of narrower ones,
    more to a vector, LLVM's loops took 0.95 of the time.) Up to half of the elements may be read where a table says,
    as the rows of an image that is rolled are. What only moves elements from apart to apart gains nothing of any
    width."""
    loop = read_loop(op, steps, vector_bits, apart="gathered")
    if loop is None:
        loop = read_loop(op, steps, vector_bits, apart="one by one")
    if loop is None or loop.combiners or (loop.trips is not None and loop.trips < _UNROLLED):
        return False
    apart = loop.one_by_one or loop.strides.keys()
    by_table = [step for step in apart if any(loop.kinds.get(index) == "vector" for index in step.place[1:])]
    if 2 * len(by_table) > len(apart):
        return False
    done = _done(loop)
    if not done and all(step in apart for step in loop.body if step.name in ("memref.load", "memref.store")):
        return True
    if loop.lanes * _WIDE > vector_bits:
        return False
    return all(step.name.startswith("arith.") for step in done) and len(done) <= 2 * len(apart)


def _done(loop: PlainLoop) -> list[Step]:
    """What a loop does to its elements."""
    return [
        step
        for step in loop.body
        if step.name not in _MOVES and not any(isinstance(result.type, ir.IndexType) for result in step.results)
    ]


def _does_enough(loop: PlainLoop) -> bool:
    """Whether a loop does so much to elements which its lanes load one by one that this pays, or has many lanes."""
    is_narrow = loop.lanes <= _LEAST_LANES and not loop.combiners
    return not is_narrow or len(_done(loop)) >= _ENOUGH * len(loop.one_by_one)


def _is_long(loop: PlainLoop) -> bool:
    return loop.trips is None or loop.trips >= _LONG * loop.lanes


def _copies_much(loop: PlainLoop) -> bool:
    """Whether the C library is faster at what a loop does."""
    moved = [step.name for step in loop.body if step.name in ("memref.load", "memref.store")]
    return _is_copy(loop) and moved == ["memref.load", "memref.store"] and (loop.trips or 0) >= _MUCH * loop.lanes


def _is_short_copy(loop: PlainLoop) -> bool:
    """Whether a loop copies or fills a row for which calling the C library takes long."""
    return _is_copy(loop) and loop.trips is not None and loop.trips < _MUCH * loop.lanes
