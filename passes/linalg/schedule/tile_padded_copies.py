"""Tile padded copies: pad for one tile of the result at a time, so that no padded array is made as a whole.

    t[...] = 0; t[1 + h, 1 + w] = x[h, w]                parallel for blocks of h:
    c[h, w, f] = 0                                         t = zeros around these rows of x
    c[h, w, f] += t[h + i, w + j, k] * b[i, j, k, f]  ->   c[block, w, f] = 0
    d[h, w, f] = max(c[h, w, f], 0)                        c[block, w, f] += t[...] * b[...]
                                                           d[block, w, f] = max(c[block, w, f], 0)

The window of a part, with its padding, is a temporary of a task and still in the second-level cache
when it is read; rows at the edge of two parts are copied twice. The op that reads it, what fills its
result and what follows on each element of that get views of their buffers, and are lowered by the
passes after this one as they would be alone, but for being in a task already. What makes
the source for this copy alone makes the parts of it in the windows, if that is not costly. All parts have one
size: of those whose temporaries the second cache holds with room to spare one that copies little twice and is small.
The innermost dimension of the copy stays whole.

Leaves alone: padded copies that are small beside the second cache, those of which no part fits, those spread by
steps or read by way of a view, and those of
products whose other factor is larger than it, which would be read again for each part.

example: test/passes/linalg/schedule/tile_padded_copies.mlir
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.loops import for_tasks, index
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.contraction import read_contraction
from lamina.passes.kernels.cpu.gemm.epilogue import Epilogue, can_be_done_together, find_epilogue
from lamina.passes.kernels.cpu.gemm.prologue import Prologue
from lamina.passes.linalg.analysis.parallel import is_costly, split, total_cost
from lamina.passes.linalg.analysis.structure import (
    PART,
    Generic,
    clone_on,
    coefficient,
    generics_on_buffers,
    is_buffer,
    is_linear,
    loaded_buffers,
    outputs_of,
    part_of,
    read_generic,
    root_buffer,
    sole_fill,
)
from lamina.passes.linalg.schedule.padded_window import PaddedWindow, maker_of
from lamina.passes.linalg.schedule.padding import Padding, bytes_of, element_bytes_of, find_padding
from lamina.records import Record

_LEAST_PARTS = 8  # shape: enough for tasks
_BLOCK_ROWS = 14  # of the blocks that a contraction is done in
_MOST_COPIED = 4.0  # shape: times
# Of the second cache: the copies that are worth it, the largest part, one that takes twice as long to read as what is
# in the first, and the largest of the reader's other arrays.
_LEAST, _LARGEST_PART, _CHEAP_PART, _LARGEST_OTHER = 1 / 8, 3 / 16, 1 / 8, 1  # shape


class TilePaddedCopies(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        while (found := self._first(module)) is not None:
            self._rewrite(*found)
            self.count("padded in parts")

    def _first(self, module: ir.Module) -> tuple[_Work, dict[int, int]] | None:
        for op in generics_on_buffers(module):
            if op.parent.name == "func.func" and len(op.operands) > 1:
                work = _read(read_generic(op))
                if work is not None and (tiles := self._tiles(work)):
                    return work, tiles
        return None

    def _tiles(self, work: _Work) -> dict[int, int]:
        """The extents of a part, by the reader's dimensions that are cut; none if no part is good."""
        contraction = read_contraction(work.reader)
        if contraction is not None and contraction.packs and contraction.b.buffer == work.padded:
            return {}  # the parts would be laid out once more
        others = [v for v in work.reader.inputs if v != work.padded and is_buffer(v)]
        cache = machine_of(work.reader.op).l2_bytes
        if bytes_of(work.padded) < _LEAST * cache or any(bytes_of(v) > _LARGEST_OTHER * cache for v in others):
            return {}
        has_rows = contraction is not None and contraction.a.buffer == work.padded
        extents = work.reader.extents
        best: tuple[float, dict[int, int]] = (math.inf, {})
        for tiles in _ways_to_cut({d: extents[d] for d in work.may_be_cut}):
            if has_rows and not any(
                min(extents[d], _BLOCK_ROWS) <= tile != 1 for d, tile in tiles.items()
            ):
                continue
            bytes_, copied = work.bytes_of_part(tiles), work.copied(tiles)
            if copied > 1 and work.maker is not None and is_costly(work.maker.generic):
                continue  # never made twice
            cost = copied * (1 + bytes_ / (_CHEAP_PART * cache))
            if bytes_ <= _LARGEST_PART * cache and copied <= _MOST_COPIED and cost < best[0]:
                best = cost, tiles
        return {d: tile for d, tile in best[1].items() if tile < extents[d]}

    def _rewrite(self, work: _Work, tiles: Mapping[int, int]) -> None:
        reader = work.reader
        highs = [reader.extents[d] for d in tiles]
        counts = [reader.extents[d] // tile for d, tile in tiles.items()]
        cost = total_cost(reader)
        tasks, grain = split(counts, cost, machine_of(reader.op))

        def part(starts: list[ir.Value]) -> None:
            work.emit(dict(zip(tiles, starts, strict=True)), tiles)

        with ir.InsertionPoint(work.last), work.last.location:
            for_tasks(highs, tasks, grain, part, steps=list(tiles.values()))
        work.erase()


class _Axis(Record):
    """A dimension of the padded buffer: the reader's dimension that goes along it in steps (-1: none
    that may be cut), and how many elements a step sees."""

    along: int
    step: int
    window: int

    def size(self, tile: int) -> int:
        """Elements that so many steps see."""
        return self.step * (tile - 1) + self.window


class _Work(Record):
    """A padded copy, its reader and the ops that go with that."""

    padded: ir.Value
    padding: Padding
    reader: Generic
    axes: tuple[_Axis, ...]
    fill: ir.Operation | None
    """What fills the reader's result before."""
    epilogue: Epilogue | None
    """What alone reads the result, element by element."""
    maker: Prologue | None
    """What makes the source, element by element, for this copy alone."""

    @property
    def last(self) -> ir.Operation:
        return self.reader.op if self.epilogue is None else self.epilogue.generic.op

    @property
    def may_be_cut(self) -> list[int]:
        """The reader's dimensions of which parts are made."""
        return [axis.along for axis in self.axes[:-1] if axis.along >= 0]

    def copied(self, tiles: Mapping[int, int]) -> float:
        """How often an element of the source is copied."""
        times = 1.0
        for axis in self.axes:
            if axis.along in tiles:
                extent, tile = self.reader.extents[axis.along], tiles[axis.along]
                times *= axis.size(tile) * extent / (axis.size(extent) * tile)
        return times

    def sizes(self, tiles: Mapping[int, int]) -> list[int]:
        """The shape of a part of the padded buffer."""
        extents = self.reader.extents
        whole = ir.MemRefType(self.padded.type).shape
        return [
            size if axis.along < 0 else axis.size(tiles.get(axis.along, extents[axis.along]))
            for axis, size in zip(self.axes, whole, strict=True)
        ]

    def bytes_of_part(self, tiles: Mapping[int, int]) -> int:
        """Of all temporaries of a part."""
        padded = math.prod(self.sizes(tiles)) * element_bytes_of(self.padded)
        if self.epilogue is None:
            return padded
        result = self.reader.outputs[0]
        return padded + math.prod(_part_shape(self.reader, result, tiles)) * element_bytes_of(result)

    def emit(self, starts: Mapping[int, ir.Value], tiles: Mapping[int, int]) -> None:
        """The part that begins there."""
        reader = self.reader
        (result,) = reader.outputs
        (map_,) = reader.output_maps
        if self.epilogue is None:
            sums = part_of(result, map_, starts, tiles)
        else:
            element = ir.MemRefType(result.type).element_type
            shape = _part_shape(reader, result, tiles)
            sums = memref.AllocOp(ir.MemRefType.get(shape, element), [], []).result
        after = self._after(sums, starts, tiles)
        window = self._window(starts, tiles)
        if self.fill is not None:
            clone_on(self.fill, [self.fill.operands[0], sums])
        inputs = [window if value == self.padded else value for value in reader.inputs]
        clone_on(reader.op, [*inputs, sums]).attributes[PART] = ir.UnitAttr.get()
        if self.epilogue is not None:
            clone_on(self.epilogue.generic.op, after)

    def _after(
        self, sums: ir.Value, starts: Mapping[int, ir.Value], tiles: Mapping[int, int]
    ) -> list[ir.Value]:
        """The parts that the op after the reader takes; made before that one, with which it will be
        merged."""
        if self.epilogue is None:
            return []
        own, generic = self.epilogue.dimensions, self.epilogue.generic
        at = {own[d]: start for d, start in starts.items()}
        size = {own[d]: tile for d, tile in tiles.items()}
        operands = zip(
            (*generic.inputs, *generic.outputs),
            (*generic.input_maps, *generic.output_maps),
            strict=True,
        )
        result = self.reader.outputs[0]
        return [sums if v == result else part_of(v, m, at, size) for v, m in operands]

    def _window(self, starts: Mapping[int, ir.Value], tiles: Mapping[int, int]) -> ir.Value:
        """The part of the padded buffer that a part reads."""
        sizes = self.sizes(tiles)
        element = ir.MemRefType(self.padded.type).element_type
        window = memref.AllocOp(ir.MemRefType.get(sizes, element), [], []).result
        begins: list[ir.Value | int] = [0] * len(sizes)
        for k, axis in enumerate(self.axes):
            if axis.along in starts:
                at = starts[axis.along]
                begins[k] = at if axis.step == 1 else arith.MulIOp(at, index(axis.step)).result
        whole = ir.MemRefType(self.padded.type).shape
        PaddedWindow(self.padding, whole, window, begins, sizes, self.maker).emit()
        return window

    def erase(self) -> None:
        view = next(u.owner for u in self.padded.uses if u.owner.name == "memref.subview")
        copy = self.padding.ops[1]
        temporaries = [self.padded, copy.operands[0], *self.reader.outputs]
        ops = [self.reader.op, copy, view.operation, self.padding.ops[0], *self.padding.ops[2:]]
        if self.epilogue is not None:
            ops.insert(0, self.epilogue.generic.op)
        if self.fill is not None:
            ops.append(self.fill)
        if self.maker is not None:
            ops.append(self.maker.generic.op)
        for op in ops:
            op.erase()
        for value in temporaries:
            if not isinstance(value.owner, ir.Block) and not list(value.uses):
                value.owner.erase()


def _read(reader: Generic) -> _Work | None:
    """What a generic reads from a padded copy, if parts of it can be done alone."""
    if len(reader.outputs) != 1:
        return None
    for value, map_ in zip(reader.inputs, reader.input_maps, strict=True):
        padding = find_padding(value, reader) if is_buffer(value) else None
        if padding is None or any(step != 1 for step in padding.steps):
            continue  # as for nearly all
        if loaded_buffers(reader) or not _is_simple(reader):
            return None
        axes = _axes(reader, value, map_)
        if axes is None or list(reader.inputs).count(value) != 1:
            continue
        fill = sole_fill(reader, reader.outputs[0])
        epilogue = find_epilogue(reader, fill) if fill is not None else None
        work = _Work(value, padding, reader, axes, fill, epilogue, maker_of(padding))
        if _stands_alone(work):
            return work
    return None


def _is_simple(reader: Generic) -> bool:
    """Whether positions matter by linear maps only, and those of the result are dimensions."""
    names = {op.operation.name for op in reader.body.operations}
    indices = [e for map_ in reader.input_maps for e in map_.results]
    places = [e for map_ in reader.output_maps for e in map_.results]
    return (
        "linalg.index" not in names
        and all(is_linear(e) or isinstance(e, ir.AffineConstantExpr) for e in indices)
        and all(isinstance(e, ir.AffineDimExpr) for e in places)
    )


def _axes(reader: Generic, padded: ir.Value, map_: ir.AffineMap) -> tuple[_Axis, ...] | None:
    """How the reader walks the padded buffer; dimensions that can't be cut count as window."""
    axes, seen = [], []
    for expression, whole in zip(map_.results, ir.MemRefType(padded.type).shape, strict=True):
        steps = {d: coefficient(expression, d) for d in range(reader.rank)}
        cut = [d for d, step in steps.items() if step > 0 and _can_be_cut(reader, d, padded)]
        seen += [d for d, step in steps.items() if step]
        if len(cut) > 1 or any(step < 0 for step in steps.values()):
            return None
        if not cut:
            axes.append(_Axis(-1, 1, whole))
            continue
        window = 1 + sum(s * (reader.extents[d] - 1) for d, s in steps.items() if d != cut[0])
        axes.append(_Axis(cut[0], steps[cut[0]], window))
    return tuple(axes) if len(seen) == len(set(seen)) else None


def _can_be_cut(reader: Generic, dimension: int, padded: ir.Value) -> bool:
    """Whether parts of a dimension are parts of the result, and see all of other inputs."""
    if reader.reductions[dimension]:
        return False
    others = (
        map_
        for value, map_ in zip(reader.inputs, reader.input_maps, strict=True)
        if value != padded
    )
    return not any(coefficient(e, dimension) for map_ in others for e in map_.results)


def _stands_alone(work: _Work) -> bool:
    """Whether all its ops can be done part by part where the last of them is."""
    reader = work.reader
    epilogue = [] if work.epilogue is None else [work.epilogue.generic.op]
    makers = [] if work.maker is None else [work.maker.generic.op]
    own = [*makers, *work.padding.ops, reader.op, *epilogue]
    own += [] if work.fill is None else [work.fill]
    written = {root_buffer(v) for op in (reader.op, *epilogue) for v in outputs_of(op)}
    sources = [work.padding.source] if work.maker is None else work.maker.generic.inputs
    read = {root_buffer(v) for v in (*reader.inputs, *sources) if is_buffer(v)}
    return not written & read and can_be_done_together(own, work.last)


def _part_shape(reader: Generic, result: ir.Value, tiles: Mapping[int, int]) -> list[int]:
    (map_,) = reader.output_maps
    shape = ir.MemRefType(result.type).shape
    return [tiles.get(e.position, size) for e, size in zip(map_.results, shape, strict=True)]


def _ways_to_cut(extents: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """Extents of parts that are all alike, of each dimension a divisor; the first is cut to ones
    before others are cut. Of equally good ones the first have most of the last dimensions."""
    dimensions = list(extents)
    divisors = [[n for n in range(extents[d], 0, -1) if extents[d] % n == 0] for d in dimensions]
    for sizes in itertools.product(*reversed(divisors)):
        tiles = dict(zip(dimensions, reversed(sizes), strict=True))
        if math.prod(extents[d] // tile for d, tile in tiles.items()) < _LEAST_PARTS:
            continue
        if tiles[dimensions[0]] == 1 or all(tiles[d] == extents[d] for d in dimensions[1:]):
            yield tiles
