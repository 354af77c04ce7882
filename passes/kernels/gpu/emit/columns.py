"""Kernels of reductions along other dimensions than the last, and of those in order."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.loops import index, load, store
from lamina.passes.kernels.gpu.device.kernels import Kernel, Kernels, Scratch
from lamina.passes.kernels.gpu.device.threads import (
    WARP,
    Body,
    barrier,
    below,
    gpu_id,
    positions,
    strided,
    when,
)
from lamina.passes.kernels.gpu.emit.elementwise import flat_grid, grid_stride, neighbours
from lamina.passes.kernels.gpu.emit.reducer import Reducer, Values
from lamina.passes.kernels.gpu.emit.rows import initial_values, write_result
from lamina.passes.kernels.gpu.emit.shapes import VECTOR_BYTES, column_length
from lamina.passes.kernels.gpu.machine import FILLING_BLOCKS
from lamina.passes.linalg.analysis.affine_indices import indices
from lamina.passes.linalg.analysis.structure import Generic

_SLICES = 8  # threads that share a column
_ROWS = 4  # that a thread reads before it adds them up
_ROUND = _SLICES * _ROWS
_LEAST_PART = 64  # rounding: rows


def emit_columns(kernels: Kernels, generic: Generic, reducer: Reducer) -> None:
    """A reduction whose neighbouring results read neighbours: a thread adds up as many as it can read at once, a block
    those of 32 threads.

    Where those are few blocks, columns are cut and a second kernel combines their parts.
    """
    parallel = [d for d, r in enumerate(generic.reductions) if not r]
    reduced = [d for d, r in enumerate(generic.reductions) if r]
    of_columns = [generic.extents[d] for d in parallel]
    of_items = [generic.extents[d] for d in reduced]
    results, items = math.prod(of_columns), math.prod(of_items)
    length = column_length(generic)
    most_parts = 1 if kernels.one_block else max(1, items // _LEAST_PART)
    while length > 1 and -(-results // (WARP * length)) * 4 * most_parts < FILLING_BLOCKS:
        length //= 2
    width = WARP * length
    blocks = -(-results // width)
    parts = max(1, min(most_parts, FILLING_BLOCKS // blocks))
    size = -(-items // parts)
    if parts > 1:
        size = -(-size // _ROUND) * _ROUND
    parts = -(-items // size)
    partials = (
        tuple(kernels.scratch([parts, results], type_) for type_ in reducer.types)
        if parts > 1
        else ()
    )
    fills = kernels.fills.get(generic.op, [])

    def emit(kernel: Kernel) -> None:
        kernel.prepare([generic.op, *fills])
        reducer.replaced = kernel.replaced
        body = Body(generic, kernel.replaced)
        across, down = gpu_id("thread_id"), gpu_id("thread_id", "y")
        part, group = positions(gpu_id("block_id"), [parts, blocks])
        begin_column = arith.MulIOp(group, index(width)).result
        place = arith.MulIOp(across, index(length)).result
        number = arith.AddIOp(begin_column, place).result
        shared = [kernel.shared([_SLICES, width], type_) for type_ in reducer.types]
        begin = arith.MulIOp(part, index(size)).result
        end = arith.MinUIOp(arith.AddIOp(begin, index(size)).result, index(items)).result
        count = len(reducer.types)

        def walk() -> None:
            column = dict(zip(parallel, positions(number, of_columns)))

            def elements(item: ir.Value) -> list[Values]:
                at = {**column, **dict(zip(reduced, positions(item, of_items)))}
                return _neighbouring_elements(body, reducer, at, parallel[-1], length)

            def add(item: ir.Value, carried: list[ir.Value], rows: int) -> Values:
                steps = [arith.AddIOp(item, index(_SLICES * n)).result for n in range(rows)]
                for found in [elements(step) for step in steps]:  # all are read before any is added
                    parts = [carried[n * count : (n + 1) * count] for n in range(length)]
                    carried = [v for a, b in zip(parts, found, strict=True) for v in reducer(a, b)]
                return carried

            whole = _whole_rounds(begin, end, size, items)
            first = arith.AddIOp(begin, down).result
            total = reducer.neutral() * length
            total = strided(first, whole, _ROUND, total, lambda i, c: add(i, c, _ROWS))
            if size % _ROUND or items % _ROUND:
                rest = arith.AddIOp(whole, down).result
                total = strided(rest, end, _SLICES, total, lambda i, c: add(i, c, 1))
            for n, buffer in enumerate(shared):
                _store_neighbours(total[n::count], buffer, [down, place])

        def write() -> None:
            total = [load(buffer, [index(0), thread]) for buffer in shared]
            for row in range(1, _SLICES):
                total = reducer(total, [load(buffer, [index(row), thread]) for buffer in shared])
            column = arith.AddIOp(begin_column, thread).result
            if not partials:
                at = dict(zip(parallel, positions(column, of_columns)))
                write_result(kernel, body, reducer, at, total)
                return
            for value, where in zip(total, partials, strict=True):
                store(value, kernel.view(where), [part, column])

        when(below(number, results), walk)
        barrier()
        thread = arith.AddIOp(arith.MulIOp(down, index(WARP)).result, across).result
        mine = below(arith.AddIOp(begin_column, thread).result, results)
        if width < _SLICES * WARP:
            mine = arith.AndIOp(mine, below(thread, width)).result
        when(mine, write)

    kernels.add([blocks * parts], [WARP, _SLICES], generic.op, emit)
    if partials:
        _combine(kernels, generic, reducer, dict(zip(parallel, of_columns)), partials, fills)


def _whole_rounds(begin: ir.Value, end: ir.Value, size: int, items: int) -> ir.Value:
    """Where the last whole round of a block's rows ends."""
    if not (size % _ROUND or items % _ROUND):
        return end
    rounds = arith.DivUIOp(arith.SubIOp(end, begin).result, index(_ROUND)).result
    return arith.AddIOp(begin, arith.MulIOp(rounds, index(_ROUND)).result).result


def _neighbouring_elements(
    body: Body, reducer: Reducer, at: dict[int, ir.Value], along: int, length: int
) -> list[Values]:
    """What goes into so many results that follow each other."""
    generic = body.generic
    columns = [
        neighbours(body.value_of(operand), map_, argument, at, along, length)
        for operand, map_, argument in zip(
            generic.inputs, generic.input_maps, generic.body.arguments, strict=False
        )
    ]
    found = []
    for n in range(length):
        here = {**at, along: arith.AddIOp(at[along], index(n)).result} if n else at
        found.append(reducer.element(body, here, [column[n] for column in columns]))
    return found


def _store_neighbours(values: Values, buffer: ir.Value, at: list[ir.Value]) -> None:
    """Store values that follow each other; those of what makes no vector one by one."""
    type_ = values[0].type
    bits = getattr(type_, "width", 0)
    if len(values) == 1 or bits < 8 or bits * len(values) > 8 * VECTOR_BYTES:
        for n, value in enumerate(values):
            store(value, buffer, [at[0], arith.AddIOp(at[1], index(n)).result] if n else at)
        return
    packed = vector.FromElementsOp(ir.VectorType.get([len(values)], type_), values).result
    vector.StoreOp(packed, buffer, at, alignment=bits * len(values) // 8)


def _combine(
    kernels: Kernels, generic: Generic, reducer: Reducer, columns: Mapping[int, int],
    partials: tuple[Scratch, ...], fills: list[ir.Operation],
) -> None:  # fmt: skip
    """A thread for each result combines the parts of its column."""
    results = math.prod(columns.values())

    def emit(kernel: Kernel) -> None:
        kernel.prepare([generic.op, *fills])
        reducer.replaced = kernel.replaced
        body = Body(generic, kernel.replaced)

        def one(number: ir.Value) -> None:
            def take(part: ir.Value, carried: list[ir.Value]) -> Values:
                found = [load(kernel.view(place), [part, number]) for place in partials]
                return reducer(carried, found)

            total = strided(index(0), partials[0].type.shape[0], 1, reducer.neutral(), take)
            at = dict(zip(columns, positions(number, list(columns.values()))))
            write_result(kernel, body, reducer, at, total)

        grid_stride(results, one)

    kernels.add(*flat_grid(results), generic.op, emit)


def emit_serial(kernels: Kernels, generic: Generic) -> None:
    """Any reduction: a thread for each result walks all that goes into it, in order."""
    parallel = [d for d, r in enumerate(generic.reductions) if not r]
    reduced = [d for d, r in enumerate(generic.reductions) if r]
    results = math.prod(generic.extents[d] for d in parallel)
    items = math.prod(generic.extents[d] for d in reduced)

    fills = kernels.fills.get(generic.op)

    def emit(kernel: Kernel) -> None:
        kernel.prepare([generic.op, *(fills or ())])
        body = Body(generic, kernel.replaced)

        def one(number: ir.Value) -> None:
            column = dict(zip(parallel, positions(number, [generic.extents[d] for d in parallel])))
            outputs = [body.value_of(output) for output in generic.outputs]
            places = [indices(map_, column) for map_ in generic.output_maps]

            def add(item: ir.Value, carried: list[ir.Value]) -> Values:
                inner = positions(item, [generic.extents[d] for d in reduced])
                at = {**column, **dict(zip(reduced, inner))}
                return body.run(at, body.inputs(at), carried)

            initial = initial_values(body, column, fills)
            totals = strided(index(0), items, 1, initial, add)
            for value, output, place in zip(totals, outputs, places):
                store(value, output, place)

        grid_stride(results, one)

    kernels.add(*flat_grid(results), generic.op, emit)
