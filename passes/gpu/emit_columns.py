"""Kernels of reductions along other dimensions than the last, and of those in order."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lamina.dialects.vendors import arith, ir
from lamina.passes.gpu.emit import flat_grid, grid_stride
from lamina.passes.gpu.emit_rows import initial_values, write_result
from lamina.passes.gpu.kernels import Kernel, Kernels, Scratch
from lamina.passes.gpu.reducer import Reducer, Values
from lamina.passes.gpu.threads import (
    WARP,
    Body,
    barrier,
    below,
    equals,
    gpu_id,
    positions,
    strided,
    when,
)
from lamina.passes.linalg.affine_indices import indices
from lamina.passes.linalg.structure import Generic
from lamina.passes.loops import index, load, store

_SLICES = 8  # threads that share a column
_BLOCKS = 1024  # that fill a GPU
_LEAST_PART = 64  # rows


def emit_columns(kernels: Kernels, generic: Generic, reducer: Reducer) -> None:
    """A reduction whose neighbouring results read neighbours: each block does 32 of them.

    Where those are few blocks, columns are cut and a second kernel combines their parts.
    """
    parallel = [d for d, r in enumerate(generic.reductions) if not r]
    reduced = [d for d, r in enumerate(generic.reductions) if r]
    of_columns = [generic.extents[d] for d in parallel]
    of_items = [generic.extents[d] for d in reduced]
    results, items = math.prod(of_columns), math.prod(of_items)
    blocks = -(-results // WARP)
    parts = 1 if kernels.one_block else max(1, min(items // _LEAST_PART, _BLOCKS // blocks))
    size = -(-items // parts)
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
        number = arith.AddIOp(arith.MulIOp(group, index(WARP)).result, across).result
        shared = [kernel.shared([_SLICES, WARP], type_) for type_ in reducer.types]
        inside = below(number, results)
        column = dict(zip(parallel, positions(number, of_columns)))
        begin = arith.MulIOp(part, index(size)).result
        end = arith.MinUIOp(arith.AddIOp(begin, index(size)).result, index(items)).result

        def add(item: ir.Value, carried: list[ir.Value]) -> Values:
            at = {**column, **dict(zip(reduced, positions(item, of_items)))}
            return reducer(carried, reducer.element(body, at, body.inputs(at)))

        def walk() -> None:
            first = arith.AddIOp(begin, down).result
            partial = strided(first, end, _SLICES, reducer.neutral(), add)
            for value, buffer in zip(partial, shared, strict=True):
                store(value, buffer, [down, across])

        def write() -> None:
            total = [load(buffer, [index(0), across]) for buffer in shared]
            for row in range(1, _SLICES):
                total = reducer(total, [load(buffer, [index(row), across]) for buffer in shared])
            if not partials:
                write_result(kernel, body, reducer, column, total)
                return
            for value, place in zip(total, partials, strict=True):
                store(value, kernel.view(place), [part, number])

        when(inside, walk)
        barrier()
        when(arith.AndIOp(inside, equals(down, 0)).result, write)

    kernels.add([blocks * parts], [WARP, _SLICES], generic.op, emit)
    if partials:
        _combine(kernels, generic, reducer, dict(zip(parallel, of_columns)), partials, fills)


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
