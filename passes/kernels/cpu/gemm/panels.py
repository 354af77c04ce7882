"""How a product whose factors are made on the way is divided into tasks and parts of its sums."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.contraction import Contraction
from lamina.passes.kernels.cpu.gemm.contraction_blocks import DEPTH
from lamina.passes.kernels.cpu.gemm.prologue import Copied, Prologue
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.structure import coefficient
from lamina.passes.memref.place_temporaries import PlaceTemporaries
from lamina.records import Record

# Of the second cache, where all have to stay: what a task makes at a time, sums that it keeps beside, and sums that
# grow in the result, where panels are but copied.
_PANEL, _TILE, _COPIED_TILE = 1 / 16, 1 / 8, 1 / 2
# Of the stack of a task, where panels are, and the sums that an epilogue reads beside them.
_PANEL_ALONE, _PANEL_BESIDE, _TILE_BESIDE = 1 / 2, 5 / 16, 5 / 8
_FEW_TASKS, _ENOUGH_TASKS = 4, 16  # shape
_MOST_ROWS = 128  # shape: that a task makes of a factor
_MOST_COPIED_ROWS = 1024  # shape: for which a task copies panels of the other factor
_LEAST_DEPTH = 32  # shape: terms, of which a block's sums are loaded and stored once
_LEAST_VECTORS = 2  # shape: of columns


class Panels(Record):
    """What a task does of a product, and in which parts."""

    made: tuple[Factor, ...]
    """The factors that it makes."""
    outer: tuple[int, ...]
    """The dimensions around blocks whose positions are tasks of their own."""
    inner: tuple[int, ...]
    """Those inside a task, along which no factor that it makes varies."""
    rows: int
    columns: int
    depth: int
    """Terms of the sums for which panels are made at a time."""


def choose_panels(
    contraction: Contraction,
    prologues: Mapping[Factor, Prologue | Copied],
    is_large: bool,
    vector_bits: int,
    has_epilogue: bool,
) -> Panels | None:
    """Panels of which no element is made twice; None if there are none, or too few tasks for a product
    that is large enough for several cores. An epilogue reads sums that a task keeps for itself."""
    costly = sorted(prologues, key=lambda factor: -prologues[factor].cost)
    for made in ([tuple(costly)] if len(costly) > 1 else []) + [(factor,) for factor in costly]:
        found = _panels_of(contraction, prologues, made, is_large, vector_bits, has_epilogue)
        if found is not None:
            return found
    return None


def _panels_of(
    contraction: Contraction,
    prologues: Mapping[Factor, Prologue | Copied],
    made: tuple[Factor, ...],
    is_large: bool,
    vector_bits: int,
    has_epilogue: bool,
) -> Panels | None:
    extents = contraction.generic.extents
    rows, columns = extents[contraction.row], extents[contraction.column]
    cache = machine_of(contraction.generic.op).l2_bytes
    stack = PlaceTemporaries.task_bytes
    tile, panel = int(_TILE * cache), min(int(_PANEL * cache), int(_PANEL_ALONE * stack))
    if has_epilogue:
        tile, panel = min(tile, int(_TILE_BESIDE * stack)), min(panel, int(_PANEL_BESIDE * stack))
    if all(isinstance(prologues[factor], Copied) for factor in made):
        rows = _even(rows, _MOST_COPIED_ROWS)
        if not has_epilogue:
            tile = int(_COPIED_TILE * cache)
    terms = extents[contraction.reduced[0]]
    outer = tuple(d for d in contraction.around if any(_uses(factor, d) for factor in made))
    inner = tuple(d for d in contraction.around if d not in outer)
    if any(not _uses(factor, d) for factor in made for d in outer):
        return None  # it would be made again for each
    tasks = math.prod(extents[d] for d in outer)
    positions = math.prod(extents[d] for d in inner)
    size = contraction.element_bytes
    lanes = vector_bits // (8 * size)
    if len(made) == 1 and made[0] == contraction.b:
        most = tile // (positions * rows * size)
        if most < _LEAST_VECTORS * lanes:
            return None  # elements of the other factor would be read again for few columns
        columns = _columns_of_task(columns, lanes, tasks, most)
        tasks *= extents[contraction.column] // columns
    elif len(made) == 1:
        rows = _rows_of_task(rows, tasks)
        tasks *= extents[contraction.row] // rows
    if is_large and tasks < _FEW_TASKS:
        return None
    line = sum(columns if factor == contraction.b else rows for factor in made) * size
    depth = _depth(terms, min(DEPTH, panel // line))
    sums = positions * rows * columns * size
    if depth < min(terms, _LEAST_DEPTH) or (depth < terms and sums > tile):
        return None
    return Panels(made, outer, inner, rows, columns, depth)


def _uses(factor: Factor, dimension: int) -> bool:
    return any(coefficient(expression, dimension) for expression in factor.map.results)


def _columns_of_task(columns: int, lanes: int, tasks: int, most: int) -> int:
    """At most so many columns, that make tasks enough, in whole blocks if that is possible: of two vectors,
    else of one."""
    most = min(most, 8 * lanes)
    if tasks >= _ENOUGH_TASKS and columns <= most:
        return columns
    sizes = [
        size for step in (2 * lanes, lanes) for size in range(most // step * step, 0, -step)
        if columns // size * tasks >= _FEW_TASKS
    ]  # fmt: skip
    even = (size for size in sizes if columns % size == 0)
    return next(even, sizes[0] if sizes else max(1, min(columns, most)))


def _rows_of_task(rows: int, tasks: int) -> int:
    """Rows that make tasks enough, the same number for all if that costs few tasks more."""
    if tasks >= _ENOUGH_TASKS and rows <= _MOST_ROWS:
        return rows
    return _even(rows, max(1, min(_MOST_ROWS, rows * tasks // _FEW_TASKS)))


def _even(extent: int, most: int) -> int:
    """At most so many of an extent, the same number each time if that takes few more times."""
    if extent <= most:
        return extent
    return next((n for n in range(most, most // 2, -1) if extent % n == 0), most)


def _depth(terms: int, most: int) -> int:
    """Terms of a part: about equal parts."""
    if terms <= most:
        return terms
    return math.ceil(terms / math.ceil(terms / max(1, most)))
