"""Choose the loop nest of each bufferised `linalg.generic`: order, cache blocks, parallel tasks.

The innermost loop walks contiguous memory: a dimension scores for each operand where it is the
fastest-varying one, and loses for each where it strides. Reductions over that dimension accumulate
in registers; when a parallel dimension wins instead (a sum down columns), the reduction goes
outside it and the outputs are blocked so that they stay in cache, or in registers. Transposing accesses get square
blocks, large ones that write whole lines past the caches blocks of few rows read (`transposes`), and
those of few rows vectors of each (`interleaving`).
Work above `parallel_cost` (estimated nanoseconds on one core) is split over the leading
loops, no task smaller than `task_cost`; rows are cut in blocks where they are too few for that. Each output
element is computed whole by one task, so results don't depend on the number of threads.

Ops inside other loops stay serial. Ops that already have a nest keep it.

example: test/passes/linalg/choose_loops.mlir
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.linalg.loop_nest import LOOPS, Loop, LoopNest, write_nest
from lamina.passes.linalg.parallel import split, total_cost
from lamina.passes.linalg.structure import (
    Generic,
    generics_on_buffers,
    read_generic,
    stride_along,
    strides_of,
)
from lamina.passes.linalg.transposes import deals, goes_past_caches, turns_tiles

_COLUMN_BLOCK = 1024  # elements of an accumulated row kept in the first-level cache
_LEAST_COLUMN_BLOCK = 64
_ROW_BLOCK = 4096  # elements, where rows are too few to be the tasks
_COLUMN_TASKS = 8
_REGISTER_BYTES = 256
"""Of an accumulated row that stays in registers: four lines of each row, which processors fetch ahead
as well as whole rows; eight or sixteen they do not."""
_LINE_BYTES = 64
_CACHED_BYTES = 1 << 21
_LEAST_ROWS = 32
_MOST_IN_REGISTERS = 4  # ops on an element
_SQUARE_BLOCK = 64
_BLOCK_PAST_CACHES = (32, 512)
"""Of a transposing copy: few rows are read on and on, and two or four lines written of each."""


class ChooseLoops(Pass):
    """See the module's docstring."""

    parallel_cost: float = 30_000.0
    task_cost: float = 10_000.0

    def run(self, module: ir.Module) -> None:
        for op in generics_on_buffers(module):
            if LOOPS not in op.attributes:
                self._choose(read_generic(op))

    def _choose(self, generic: Generic) -> None:
        outermost = generic.op.parent.name == "func.func"
        cost = total_cost(generic) if outermost else 0.0
        loops = _order(generic, outermost and cost >= self.parallel_cost)
        tasks, grain = 0, 1
        if outermost:
            tasks, grain = self._split(generic, loops, cost)
            # Numbered with others, one by one, elements of rows would be nothing that vectors can do.
            row = max((n for n, loop in enumerate(loops) if generic.extents[loop.dimension] != 1), default=0)
            if 0 < row < tasks:
                long = generic.extents[loops[row].dimension] > _ROW_BLOCK
                if long:
                    block = Loop(loops[row].dimension, _ROW_BLOCK)
                    loops = (*loops[:row], block, *loops[row:])
                tasks, grain = self._split(generic, loops[: row + long], cost)
        write_nest(generic.op, LoopNest(loops, tasks, grain))

    def _split(self, generic: Generic, loops: Sequence[Loop], cost: float) -> tuple[int, int]:
        leading = itertools.takewhile(
            lambda i: self._can_be_task(generic, loops, i), itertools.count()
        )
        counts = [-(-generic.extents[loops[i].dimension] // loops[i].step) for i in leading]
        return split(counts, cost, self.parallel_cost, self.task_cost)

    @staticmethod
    def _can_be_task(generic: Generic, loops: Sequence[Loop], level: int) -> bool:
        if level >= len(loops) or generic.reductions[loops[level].dimension]:
            return False
        return all(loop.dimension != loops[level].dimension for loop in loops[:level])


def _order(generic: Generic, in_tasks: bool) -> tuple[Loop, ...]:
    rank = generic.rank
    if not rank:
        return ()
    # Dimensions of one element go last, where they vanish: in front, tasks are numbered by them.
    parallel = sorted(
        (d for d in range(rank) if not generic.reductions[d]), key=lambda d: generic.extents[d] == 1
    )
    reduced = [d for d in range(rank) if generic.reductions[d]]
    inner = _innermost(generic)
    if not reduced:
        order = [d for d in parallel if d != inner and generic.extents[d] != 1] + [inner]
        order += [d for d in parallel if d != inner and generic.extents[d] == 1]
        strided = _strided_fastest(generic, inner)
        blocks = _blocks(generic, strided, inner)
        covered = {loop.dimension for loop in blocks}
        return (*(Loop(d) for d in order if d not in covered), *blocks)
    if generic.reductions[inner]:
        return tuple(Loop(d) for d in [*parallel, *(d for d in reduced if d != inner), inner])
    outer = [d for d in parallel if d != inner]
    block = _COLUMN_BLOCK
    if in_tasks and not outer:  # the blocks are all the tasks there can be
        block = min(block, max(_LEAST_COLUMN_BLOCK, generic.extents[inner] // _COLUMN_TASKS))
        block = -(-block // _LINE_BYTES) * _LINE_BYTES  # whole vectors of any type
        if reduces_plainly(generic, reduced, inner):
            block = _REGISTER_BYTES // dtype_of(generic.outputs[0].type).itemsize
    if generic.extents[inner] <= block:
        return tuple(Loop(d) for d in [*outer, *reduced, inner])
    return (
        *(Loop(d) for d in outer),
        Loop(inner, block),
        *(Loop(d) for d in reduced),
        Loop(inner),
    )


def _blocks(generic: Generic, strided: int | None, inner: int) -> tuple[Loop, ...]:
    """The loops over blocks, and inside them, of an op with accesses that are contiguous along
    different dimensions; none where it is small."""
    if strided is None:
        repeated = _contiguous(generic.inputs[0], generic.input_maps[0]) if generic.inputs else None
        if repeated is None or repeated == inner or deals(generic, repeated, inner) is None:
            return ()
        strided = repeated
    for pair in ((strided, inner), (inner, strided)):
        how = deals(generic, *pair)
        if how is not None:
            return *(Loop(*block) for block in how.blocks), *map(Loop, pair)
        if turns_tiles(generic, *pair):
            strided, inner = pair
            break
    else:
        if min(generic.extents[strided], generic.extents[inner]) <= _SQUARE_BLOCK:
            return ()
    if goes_past_caches(generic, strided, inner):
        lines, rows = _BLOCK_PAST_CACHES
        return Loop(inner, lines), Loop(strided, rows), Loop(strided), Loop(inner)
    return Loop(strided, _SQUARE_BLOCK), Loop(inner, _SQUARE_BLOCK), Loop(strided), Loop(inner)


def reduces_plainly(generic: Generic, reduced: Sequence[int], inner: int) -> bool:
    """Whether an op is a plain sum, or the like, down columns of arrays beyond the caches."""
    ops = [op.operation.name for op in generic.body.operations]
    if len(generic.outputs) != 1 or len(ops) > _MOST_IN_REGISTERS + 1:
        return False
    if any(name.startswith("math.") or "div" in name or "index" in name for name in ops):
        return False
    elements = {getattr(value.type, "element_type", value.type) for value in generic.body.arguments}
    width = dtype_of(generic.outputs[0].type).itemsize
    row = generic.extents[inner] * width
    rows = math.prod(generic.extents[d] for d in reduced)
    return (
        len(elements) == 1
        and row % _LINE_BYTES == 0
        and rows * row >= _CACHED_BYTES
        and rows >= _LEAST_ROWS
    )


def _innermost(generic: Generic) -> int:
    """The dimension along which most operands are contiguous or constant; the last among equals."""
    best, best_score = generic.rank - 1, -math.inf
    steps = [(strides_of(value.type, map_), weight) for value, map_, weight in _accesses(generic)]
    for d in range(generic.rank):
        if generic.extents[d] == 1:
            continue
        score = 0.0
        for strides, weight in steps:
            score += weight * (1.0 if strides[d] == 1 else 0.5 if strides[d] == 0 else -1.0)
        if generic.extents[d] < 4:
            score -= 1.5
        if score >= best_score:
            best, best_score = d, score
    return best


def _contiguous(value: ir.Value, map_: ir.AffineMap) -> int | None:
    """The dimension along which an operand is contiguous, in either direction."""
    if not isinstance(value.type, ir.MemRefType):
        return None
    return next((d for d in range(map_.n_dims) if abs(stride_along(value, map_, d)) == 1), None)


def _strided_fastest(generic: Generic, inner: int) -> int | None:
    """The dimension along which an operand is contiguous that strides along the innermost one, if
    there is one."""
    for value, map_, _ in _accesses(generic):
        if stride_along(value, map_, inner) in (-1, 0, 1):
            continue
        fastest = _contiguous(value, map_)
        if fastest is not None:
            return fastest
    return None


def _accesses(generic: Generic) -> list[tuple[ir.Value, ir.AffineMap, float]]:
    accesses = [(v, m, 1.0) for v, m in zip(generic.inputs, generic.input_maps, strict=True)]
    accesses += [(v, m, 1.25) for v, m in zip(generic.outputs, generic.output_maps, strict=True)]
    return [access for access in accesses if isinstance(access[0].type, ir.MemRefType)]
