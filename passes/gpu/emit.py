"""The schemes by which generics become kernels; which one is taken says `map_to_threads`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.gpu.kernels import SHARED_BYTES, Kernel, Kernels
from lamina.passes.gpu.shapes import vector_length
from lamina.passes.gpu.threads import (
    WARP,
    Body,
    Combiner,
    Slots,
    barrier,
    below,
    equals,
    gpu_id,
    positions,
    replace_operands,
    strided,
    when,
)
from lamina.passes.linalg.affine_indices import indices
from lamina.passes.linalg.structure import Access, Generic, accesses, loaded_buffers, stride_along
from lamina.passes.loops import index, load, store
from lamina.passes.memref.place_temporaries import element_bytes

_THREADS = 256
_MOST_BLOCKS = 2048  # of a grid-stride loop: enough to fill any GPU several times
_SLICES = 8  # threads that share a column


def _flat_grid(items: int) -> int:
    return max(1, min(_MOST_BLOCKS, -(-items // _THREADS)))


def emit_loop(kernels: Kernels, generic: Generic) -> None:
    """An element-wise generic as a grid-stride loop."""
    length = vector_length(generic)
    items = math.prod(generic.extents) // length
    blocks = _flat_grid(items)

    def emit(kernel: Kernel) -> None:
        kernel.prepare([generic.op])
        body = Body(generic, kernel.replaced)
        first = arith.MulIOp(gpu_id("block_id"), index(_THREADS)).result
        first = arith.AddIOp(first, gpu_id("thread_id")).result

        def item(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            _element_wise(body, {}, number, length)
            return []

        strided(first, items, blocks * _THREADS, [], item)

    kernels.add([blocks], [_THREADS], generic.op, emit)


def _element_wise(body: Body, at: dict[int, ir.Value], number: ir.Value, length: int) -> None:
    """Item `number` of the loops that `at` leaves open; `length` neighbours along the last."""
    generic = body.generic
    inner = [d for d in range(generic.rank) if d not in at]
    extents = [generic.extents[d] for d in inner]
    if length > 1:
        extents[-1] //= length
    at = {**at, **dict(zip(inner, positions(number, extents)))}
    if length == 1:
        body.store_at(at, body.inputs(at))
        return
    last = generic.rank - 1
    at[last] = arith.MulIOp(at[last], index(length)).result
    columns = []
    for operand, map_, argument in zip(
        generic.inputs, generic.input_maps, generic.body.arguments, strict=False
    ):
        columns.append(_neighbours(body.value_of(operand), map_, argument, at, last, length))
    used = generic.body.arguments[len(generic.inputs) :]
    befores = [
        _neighbours(body.value_of(output), map_, argument, at, last, length)
        for output, map_, argument in zip(generic.outputs, generic.output_maps, used, strict=True)
    ]
    rows = [
        body.run(at, [c[n] for c in columns], [b[n] for b in befores]) for n in range(length)
    ]  # no positions are used in the body, so one is as good as another
    for place, (output, map_) in enumerate(
        zip(generic.outputs, generic.output_maps, strict=True)
    ):
        buffer = body.value_of(output)
        type_ = ir.VectorType.get([length], ir.MemRefType(buffer.type).element_type)
        packed = vector.FromElementsOp(type_, [row[place] for row in rows]).result
        vector.StoreOp(packed, buffer, indices(map_, at), alignment=_alignment(type_))


def _neighbours(
    value: ir.Value, map_: ir.AffineMap, argument: ir.Value, at: dict[int, ir.Value], last: int,
    length: int,
) -> list[ir.Value | None]:  # fmt: skip
    if not len(list(argument.uses)):
        return [None] * length
    if not isinstance(value.type, ir.MemRefType):
        return [value] * length
    if stride_along(value, map_, last) == 0:
        return [load(value, indices(map_, at))] * length
    type_ = ir.VectorType.get([length], ir.MemRefType(value.type).element_type)
    loaded = vector.LoadOp(type_, value, indices(map_, at), alignment=_alignment(type_)).result
    return [vector.ExtractOp(loaded, [], [n]).result for n in range(length)]


def _alignment(type_: ir.VectorType) -> int:
    return type_.shape[0] * type_.element_type.width // 8


def emit_rows(kernels: Kernels, members: Sequence[Generic], depth: int) -> None:
    """Generics that share their `depth` leading loops, with a block for each iteration of those."""
    outer = members[0].extents[:depth]
    longest = max(math.prod(g.extents[depth:]) for g in members)
    threads = min(_THREADS, max(WARP, -(-longest // WARP) * WARP))
    inside = {g.op for g in members}

    def emit(kernel: Kernel) -> None:
        local, places = _local_buffers(kernel, members, depth, inside)
        kernel.prepare([g.op for g in members], local)
        thread, block = gpu_id("thread_id"), gpu_id("block_id")
        row = dict(enumerate(positions(block, outer)))

        def slots(element: ir.Type, count: int) -> ir.Value:
            return kernel.shared([count], element)

        order = _Order()
        for generic in members:
            order.before(generic, depth, threads)
            body = Body(_with_local_maps(generic, places), kernel.replaced)
            with generic.op.location:
                _row_member(body, row, thread, threads, vector_length(generic), slots)

    kernels.add([math.prod(outer)], [threads], members[-1].op, emit)


class _Order:
    """Puts a barrier where a thread is about to touch what another one wrote, or write what another
    one read, since the last barrier."""

    def __init__(self) -> None:
        self.touched: dict[ir.Value, set[tuple[object, bool]]] = {}

    def before(self, generic: Generic, depth: int, threads: int) -> None:
        mine = {
            (access.buffer, _who(generic, access, depth), access.writes)
            for access in accesses(generic)
        } | {(buffer, None, False) for buffer in loaded_buffers(generic)}
        if any(
            (writes or wrote) and (who is None or who != other)
            for buffer, who, writes in mine
            for other, wrote in self.touched.get(buffer, ())
        ):
            barrier()
            self.touched = {}
        if any(generic.reductions) and threads > WARP:  # a barrier is in the middle of those
            mine = {entry for entry in mine if entry[2]}
            self.touched = {}
        for buffer, who, writes in mine:
            self.touched.setdefault(buffer, set()).add((who, writes))


def _who(generic: Generic, access: Access, depth: int) -> object:
    """A name for how elements fall to threads: equal where each does to the same; None where many
    threads touch one element."""
    inner = range(depth, generic.rank)
    if generic.rank == depth or (access.writes and any(generic.reductions)):
        return 0
    if not all(len(access.places_of(d)) == 1 for d in inner):
        return None
    return vector_length(generic), generic.extents, str(access.map)


def _row_member(
    body: Body, row: dict[int, ir.Value], thread: ir.Value, threads: int, length: int, slots: Slots
) -> None:
    generic, depth = body.generic, len(row)
    items = math.prod(generic.extents[depth:])
    if not any(generic.reductions):
        if generic.rank == depth:
            when(equals(thread, 0), lambda: body.store_at(row, body.inputs(row)))
            return

        def item(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            _element_wise(body, row, number, length)
            return []

        strided(thread, items // length, threads, [], item)
        return
    combiner = Combiner.of(generic)
    assert combiner is not None

    def add(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        inner = positions(number, generic.extents[depth:])
        at = {**row, **{depth + d: p for d, p in enumerate(inner)}}
        return body.run(at, body.inputs(at), carried)

    partial = strided(thread, items, threads, [combiner.neutral()], add)[0]
    total = combiner.over_block(partial, thread, threads, slots)
    output = body.value_of(generic.outputs[0])

    def write() -> None:
        place = indices(generic.output_maps[0], row)
        store(combiner(load(output, place), total), output, place)

    when(equals(thread, 0), write)


def _local_buffers(
    kernel: Kernel, members: Sequence[Generic], depth: int, inside: set[ir.Operation]
) -> tuple[dict[ir.Value, ir.Value], dict[ir.Value, frozenset[int]]]:
    """Shared buffers for the parts of temporaries that only these generics use, and which places of
    the indices they do without."""
    local: dict[ir.Value, ir.Value] = {}
    places: dict[ir.Value, frozenset[int]] = {}
    left = SHARED_BYTES
    for buffer in kernel.kernels.temporaries:
        touching = [a for g in members for a in accesses(g) if a.buffer == buffer]
        private = all(
            use.owner.operation in inside or use.owner.operation.name == "memref.dealloc"
            for use in buffer.uses
        )
        if not touching or not private or any(buffer in loaded_buffers(g) for g in members):
            continue
        dropped = frozenset().union(*(touching[0].places_of(d) for d in range(depth)))
        type_ = ir.MemRefType(buffer.type)
        shape = [size for place, size in enumerate(type_.shape) if place not in dropped]
        size = math.prod(shape) * element_bytes(type_.element_type)
        if size <= left:
            left -= size
            local[buffer] = kernel.shared(shape, type_.element_type)
            places[buffer] = dropped
    return local, places


def _with_local_maps(generic: Generic, places: dict[ir.Value, frozenset[int]]) -> Generic:
    def maps(
        values: Sequence[ir.Value], given: Sequence[ir.AffineMap]
    ) -> tuple[ir.AffineMap, ...]:
        return tuple(
            ir.AffineMap.get(
                map_.n_dims, 0,
                [e for place, e in enumerate(map_.results) if place not in places.get(value, ())],
            )
            for value, map_ in zip(values, given, strict=True)
        )  # fmt: skip

    return replace(
        generic,
        input_maps=maps(generic.inputs, generic.input_maps),
        output_maps=maps(generic.outputs, generic.output_maps),
    )


def emit_columns(kernels: Kernels, generic: Generic, combiner: Combiner) -> None:
    """A reduction whose neighbouring results read neighbours: each block does 32 of them."""
    parallel = [d for d, r in enumerate(generic.reductions) if not r]
    reduced = [d for d, r in enumerate(generic.reductions) if r]
    results = math.prod(generic.extents[d] for d in parallel)
    items = math.prod(generic.extents[d] for d in reduced)

    def emit(kernel: Kernel) -> None:
        kernel.prepare([generic.op])
        body = Body(generic, kernel.replaced)
        across, down = gpu_id("thread_id"), gpu_id("thread_id", "y")
        number = arith.MulIOp(gpu_id("block_id"), index(WARP)).result
        number = arith.AddIOp(number, across).result
        element = ir.MemRefType(generic.outputs[0].type).element_type
        shared = kernel.shared([_SLICES, WARP], element)
        inside = below(number, results)
        column = dict(zip(parallel, positions(number, [generic.extents[d] for d in parallel])))

        def add(item: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            inner = positions(item, [generic.extents[d] for d in reduced])
            at = {**column, **dict(zip(reduced, inner))}
            return body.run(at, body.inputs(at), carried)

        def part() -> None:
            partial = strided(down, items, _SLICES, [combiner.neutral()], add)[0]
            store(partial, shared, [down, across])

        def write() -> None:
            output = body.value_of(generic.outputs[0])
            place = indices(generic.output_maps[0], column)
            total = load(output, place)
            for row in range(_SLICES):
                total = combiner(total, load(shared, [index(row), across]))
            store(total, output, place)

        when(inside, part)
        barrier()
        when(arith.AndIOp(inside, equals(down, 0)).result, write)

    kernels.add([-(-results // WARP)], [WARP, _SLICES], generic.op, emit)


def emit_serial(kernels: Kernels, generic: Generic) -> None:
    """Any reduction: a thread for each result walks all that goes into it, in order."""
    parallel = [d for d, r in enumerate(generic.reductions) if not r]
    reduced = [d for d, r in enumerate(generic.reductions) if r]
    results = math.prod(generic.extents[d] for d in parallel)
    items = math.prod(generic.extents[d] for d in reduced)
    blocks = _flat_grid(results)

    def emit(kernel: Kernel) -> None:
        kernel.prepare([generic.op])
        body = Body(generic, kernel.replaced)
        first = arith.MulIOp(gpu_id("block_id"), index(_THREADS)).result
        first = arith.AddIOp(first, gpu_id("thread_id")).result

        def result(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            outer = positions(number, [generic.extents[d] for d in parallel])
            column = dict(zip(parallel, outer))
            outputs = [body.value_of(output) for output in generic.outputs]
            places = [indices(map_, column) for map_ in generic.output_maps]

            def add(item: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                inner = positions(item, [generic.extents[d] for d in reduced])
                at = {**column, **dict(zip(reduced, inner))}
                return body.run(at, body.inputs(at), carried)

            initial = [load(output, place) for output, place in zip(outputs, places)]
            totals = strided(index(0), items, 1, initial, add)
            for value, output, place in zip(totals, outputs, places):
                store(value, output, place)
            return []

        strided(first, results, blocks * _THREADS, [], result)

    kernels.add([blocks], [_THREADS], generic.op, emit)


def emit_transpose(kernels: Kernels, generic: Generic, place: int, along: int) -> None:
    """An element-wise generic that reads input `place` along its dimension `along`, through tiles
    in shared memory that are written by columns and read by rows."""
    last = generic.rank - 1
    rest = [d for d in range(generic.rank) if d not in (along, last)]
    tiles = [-(-generic.extents[d] // WARP) for d in (along, last)]
    grid = [*(generic.extents[d] for d in rest), *tiles]

    def emit(kernel: Kernel) -> None:
        kernel.prepare([generic.op])
        body = Body(generic, kernel.replaced)
        source = body.value_of(generic.inputs[place])
        # One more column than is used: neighbours in a column then lie in different banks.
        tile = kernel.shared([WARP, WARP + 1], ir.MemRefType(source.type).element_type)
        across, down = gpu_id("thread_id"), gpu_id("thread_id", "y")
        *outer, a, b = positions(gpu_id("block_id"), grid)
        fixed = dict(zip(rest, outer))
        begin = {along: arith.MulIOp(a, index(WARP)).result,
                 last: arith.MulIOp(b, index(WARP)).result}  # fmt: skip

        def each(fast: int, slow: int, work) -> None:
            def step(row: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                at = {fast: arith.AddIOp(begin[fast], across).result,
                      slow: arith.AddIOp(begin[slow], row).result}  # fmt: skip
                inside = arith.AndIOp(
                    below(at[fast], generic.extents[fast]), below(at[slow], generic.extents[slow])
                ).result
                when(inside, lambda: work({**fixed, **at}, row))
                return []

            strided(down, WARP, _SLICES, [], step)

        def read(at: dict[int, ir.Value], row: ir.Value) -> None:
            value = load(source, indices(generic.input_maps[place], at))
            store(value, tile, [row, across])

        def write(at: dict[int, ir.Value], row: ir.Value) -> None:
            inputs = [
                load(tile, [across, row]) if number == place else value
                for number, value in enumerate(_inputs_but(body, place, at))
            ]
            body.store_at(at, inputs)

        each(along, last, read)
        barrier()
        each(last, along, write)

    kernels.add([math.prod(grid)], [WARP, _SLICES], generic.op, emit)


def _inputs_but(body: Body, place: int, at: dict[int, ir.Value]) -> list[ir.Value | None]:
    found: list[ir.Value | None] = []
    for number, (operand, map_) in enumerate(zip(body.generic.inputs, body.generic.input_maps)):
        value = body.value_of(operand)
        if number == place:
            found.append(None)
        elif isinstance(value.type, ir.MemRefType):
            found.append(load(value, indices(map_, at)))
        else:
            found.append(value)
    return found


def emit_scalar(kernels: Kernels, op: ir.Operation) -> None:
    """A store outside of any generic, of a value that all threads compute: one thread does it."""

    def emit(kernel: Kernel) -> None:
        kernel.prepare([op])

        def write() -> None:
            replace_operands(op.clone().operation, kernel.replaced, {})

        when(equals(gpu_id("thread_id"), 0), write)

    kernels.add([1], [WARP], op, emit)
