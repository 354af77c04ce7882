"""How a product is divided into tasks, and parts of its sums where factors are made on the way."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.contraction import Contraction
from lamina.passes.kernels.cpu.gemm.product_call import ProductCall
from lamina.passes.kernels.cpu.gemm.product_shape import DEPTH, ENOUGH_TASKS, FEW_TASKS, task_limits
from lamina.passes.kernels.cpu.gemm.prologue import Prologue
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.structure import coefficient
from lamina.passes.memref.place_temporaries import PlaceTemporaries
from lamina.passes.stablehlo.analysis.gemm import Gemm
from lamina.records import Record

# Of the second cache, where all have to stay: what a task makes at a time, and its sums.
_PANEL, _TILE = 1 / 16, 1 / 8
_PANEL_OF_FEW = 2 / 3  # memory: of the first cache, what is made for few rows, which read it but once or twice
# Of the stack of a task, where panels are, and the sums that an epilogue reads beside them.
_PANEL_ALONE, _PANEL_BESIDE, _TILE_BESIDE = 1 / 2, 5 / 16, 5 / 8
_FEW_ROWS = 42  # shape: three blocks
_MOST_ROWS = 128  # shape: that a task makes of a factor
_LEAST_DEPTH = 32  # shape: terms, of which a block's sums are loaded and stored once
_LEAST_VECTORS = 2  # shape: of columns


class Panels(Record):
    """What a task does of a product, and in which parts."""

    made: tuple[Factor, ...]
    """The factors that it makes, if it makes any."""
    outer: tuple[int, ...]
    """The dimensions around blocks whose positions are tasks of their own."""
    inner: tuple[int, ...]
    """Those inside a task, along which no factor that it makes varies."""
    rows: int
    columns: int
    depth: int
    """Terms of the sums for which panels are made at a time."""


def choose_tiles(contraction: Contraction, gemm: Gemm, call: ProductCall, keeps_sums: bool) -> Panels:
    """Tiles of a product whose factors are there. A task may keep its sums for itself."""
    shape, machine = call.shape, call.machine
    in_place = shape.in_place(machine, *call.leading(contraction.a, contraction.b), gemm.k, gemm.n)
    limits = task_limits(machine, contraction.nanoseconds, math.prod(gemm.batch))
    rows, _, panels = shape.division(gemm.m, gemm.n, *limits, in_place)
    columns = math.ceil(gemm.n / shape.columns / panels) * shape.columns
    if keeps_sums:
        most = int(_TILE_BESIDE * PlaceTemporaries.task_bytes) // shape.bytes
        columns = min(columns, most // shape.rows // shape.columns * shape.columns)
        rows = min(rows, most // columns // shape.rows * shape.rows)
    columns = _whole(gemm.n, columns, shape.columns)
    return Panels((), contraction.around, (), min(rows, gemm.m), columns, gemm.k)


def _whole(extent: int, step: int, block: int) -> int:
    """Of at most `step` columns in whole blocks: without a rest, if that takes no more blocks."""
    parts = math.ceil(extent / step)
    even = extent // parts
    return even if extent % parts == 0 and math.ceil(even / block) * parts <= math.ceil(extent / block) else step


def choose_panels(
    contraction: Contraction, prologues: Mapping[Factor, Prologue], vector_bits: int, keeps_sums: bool
) -> Panels | None:
    """Panels of which no element is made twice; None if there are none, or too few tasks for a product
    that is large enough for several cores. A task may keep its sums for itself."""
    cost = contraction.nanoseconds + sum(made.cost for made in prologues.values())
    is_large = cost >= machine_of(contraction.generic.op).parallel_ns
    costly = sorted(prologues, key=lambda factor: -prologues[factor].cost)
    for made in ([tuple(costly)] if len(costly) > 1 else []) + [(factor,) for factor in costly]:
        found = _panels_of(contraction, made, is_large, vector_bits, keeps_sums)
        if found is not None:
            return found
    return None


def _panels_of(
    contraction: Contraction, made: tuple[Factor, ...], is_large: bool, vector_bits: int, keeps_sums: bool
) -> Panels | None:
    extents = contraction.generic.extents
    rows, columns = extents[contraction.row], extents[contraction.column]
    machine = machine_of(contraction.generic.op)
    cache = machine.l2_bytes
    stack = PlaceTemporaries.task_bytes
    tile, panel = int(_TILE * cache), min(int(_PANEL * cache), int(_PANEL_ALONE * stack))
    if keeps_sums:
        tile, panel = min(tile, int(_TILE_BESIDE * stack)), min(panel, int(_PANEL_BESIDE * stack))
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
        if rows <= _FEW_ROWS:
            panel = min(panel, int(_PANEL_OF_FEW * machine.l1_bytes))
        most = tile // (positions * rows * size)
        if most < _LEAST_VECTORS * lanes:
            return None  # elements of the other factor would be read again for few columns
        columns = _columns_of_task(columns, lanes, tasks, most)
        tasks *= extents[contraction.column] // columns
    elif len(made) == 1:
        rows = _rows_of_task(rows, tasks)
        tasks *= extents[contraction.row] // rows
    if is_large and tasks < FEW_TASKS:
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
    if tasks >= ENOUGH_TASKS and columns <= most:
        return columns
    sizes = [
        size for step in (2 * lanes, lanes) for size in range(most // step * step, 0, -step)
        if columns // size * tasks >= FEW_TASKS
    ]  # fmt: skip
    even = (size for size in sizes if columns % size == 0)
    return next(even, sizes[0] if sizes else max(1, min(columns, most)))


def _rows_of_task(rows: int, tasks: int) -> int:
    """Rows that make tasks enough, the same number for all if that costs few tasks more."""
    if tasks >= ENOUGH_TASKS and rows <= _MOST_ROWS:
        return rows
    return _even(rows, max(1, min(_MOST_ROWS, rows * tasks // FEW_TASKS)))


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
