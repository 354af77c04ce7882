"""Kernels of generics that share their leading loops, a reduction by rows among them, where rows are too long for
registers (`resident_rows.py`).

| rows | scheme |
|---|---|
| up to 128 elements | a warp for each, up to 8 in a block |
| longer | a block for each |
| any, of a kernel that one block does | a warp for each of eight at once, where rows are a multiple of that |
| few and long | each reduction in parts, a block for each part; then a block for each row combines them |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.loops import index, load, store
from lamina.passes.kernels.gpu.device.kernels import SHARED_BYTES, Kernel, Kernels, Scratch
from lamina.passes.kernels.gpu.device.threads import (
    WARP,
    Body,
    barrier,
    equals,
    gpu_id,
    positions,
    strided,
    when,
)
from lamina.passes.kernels.gpu.emit.elementwise import element_wise, emit_loop, neighbours
from lamina.passes.kernels.gpu.emit.reducer import Reducer, Slots, Values
from lamina.passes.kernels.gpu.emit.shapes import vector_length
from lamina.passes.kernels.gpu.machine import FILLING_BLOCKS
from lamina.passes.linalg.analysis.affine_indices import indices
from lamina.passes.linalg.analysis.structure import (
    Access,
    Generic,
    accesses,
    filled_value,
    loaded_buffers,
)
from lamina.passes.memref.place_temporaries import element_bytes

_THREADS = 256
_SHORT = 128  # rounding: elements of a row that a warp does
_LONG = 1 << 14  # rounding: from here on a row is cut where rows are few
_FEW = 128  # rounding
_LEAST_PART = 1 << 12  # rounding: elements

Partials = Mapping[ir.Operation, tuple[Scratch, ...]]
"""Reductions whose partial results are in scratch memory, [rows, parts] of each value."""


def emit_rows(kernels: Kernels, members: Sequence[Generic], depth: int) -> None:
    """Generics that share their `depth` leading loops."""
    rows = math.prod(members[0].extents[:depth])
    longest = max(_inner(g, depth) for g in members if any(g.reductions))
    if rows > _FEW or longest < _LONG or kernels.one_block:
        _emit_together(kernels, members, depth, {})
        return
    # Each long member has to fill the GPU alone; short ones go with the reduction before them.
    pending: list[Generic] = []
    partials: dict[ir.Operation, tuple[Scratch, ...]] = {}

    def flush() -> None:
        if pending:
            _emit_together(kernels, pending, depth, partials)
        pending.clear()

    for generic in members:
        if _inner(generic, depth) >= _LONG:
            flush()
            if not any(generic.reductions):
                emit_loop(kernels, [generic])
                continue
            partials[generic.op] = _emit_parts(kernels, generic, depth)
        pending.append(generic)
    flush()


def _inner(generic: Generic, depth: int) -> int:
    return math.prod(generic.extents[depth:])


def _emit_parts(kernels: Kernels, generic: Generic, depth: int) -> tuple[Scratch, ...]:
    """A kernel that makes the partial results of a reduction's rows."""
    reducer = Reducer.of(generic)
    assert reducer is not None
    outer = generic.extents[:depth]
    rows, length = math.prod(outer), vector_length(generic)
    items = _inner(generic, depth) // length
    parts = max(1, min(items * length // _LEAST_PART, FILLING_BLOCKS // rows))
    size = -(-items // parts)
    parts = -(-items // size)
    found = tuple(kernels.scratch([rows, parts], type_) for type_ in reducer.types)

    def emit(kernel: Kernel) -> None:
        kernel.prepare([generic.op])
        reducer.replaced = kernel.replaced
        thread = gpu_id("thread_id")
        row, part = positions(gpu_id("block_id"), [rows, parts])
        body = Body(generic, kernel.replaced)
        begin = arith.MulIOp(part, index(size)).result
        end = arith.MinUIOp(arith.AddIOp(begin, index(size)).result, index(items)).result
        at = dict(enumerate(positions(row, outer)))
        first = arith.AddIOp(begin, thread).result
        partial = _walk(body, reducer, at, first, end, _THREADS, length)
        total = reducer.over_block(partial, thread, _THREADS, _slots(kernel))

        def write() -> None:
            for value, place in zip(total, found, strict=True):
                store(value, kernel.view(place), [row, part])

        when(equals(thread, 0), write)

    kernels.add([rows * parts], [_THREADS], generic.op, emit)
    return found


def _slots(kernel: Kernel) -> Slots:
    return lambda element, count: kernel.shared([count], element)


def _emit_together(
    kernels: Kernels, members: Sequence[Generic], depth: int, partials: Partials
) -> None:
    outer = members[0].extents[:depth]
    rows = math.prod(outer)
    longest = max(
        partials[g.op][0].type.shape[1] if g.op in partials else _inner(g, depth) for g in members
    )
    threads = min(_THREADS, max(WARP, -(-longest // WARP) * WARP))
    most = next(n for n in range(_THREADS // WARP, 0, -1) if rows % n == 0)
    together, by_warps = 1, longest <= _SHORT
    if kernels.one_block:
        threads, by_warps = _THREADS, most * WARP == _THREADS
    if by_warps:
        threads, together = WARP, most
    inside = {g.op for g in members}
    fills = [fill for g in members for fill in kernels.fills.get(g.op, ())]

    def emit(kernel: Kernel) -> None:
        thread, block = gpu_id("thread_id"), gpu_id("block_id")
        line = None
        if together > 1:
            line = gpu_id("thread_id", "y")
            block = arith.AddIOp(arith.MulIOp(block, index(together)).result, line).result
        local, places = _local_buffers(kernel, members, depth, inside, together, line)
        kernel.prepare([*(g.op for g in members), *fills], local)
        row = dict(enumerate(positions(block, outer)))
        order = _Order()
        for generic in members:
            order.before(generic, depth, threads)
            body = Body(_with_local_maps(generic, places), kernel.replaced)
            with generic.op.location:
                if any(generic.reductions):
                    given = partials.get(generic.op)
                    length = vector_length(generic)
                    _reduce(kernel, body, row, block, thread, threads, length, given)
                else:
                    _element_wise(body, row, thread, threads, vector_length(generic))

    size = [threads] if together == 1 else [threads, together]
    kernels.add([rows // together], size, members[-1].op, emit)


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


def _element_wise(
    body: Body, row: dict[int, ir.Value], thread: ir.Value, threads: int, length: int
) -> None:
    generic, depth = body.generic, len(row)
    if generic.rank == depth:
        when(equals(thread, 0), lambda: body.store_at(row, body.inputs(row)))
        return

    def item(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        element_wise([body], row, number, length)
        return []

    strided(thread, math.prod(generic.extents[depth:]) // length, threads, [], item)


def _reduce(
    kernel: Kernel, body: Body, row: dict[int, ir.Value], block: ir.Value, thread: ir.Value,
    threads: int, length: int, partials: tuple[Scratch, ...] | None,
) -> None:  # fmt: skip
    """A reduction of a row, from its elements or from the partial results of its parts."""
    generic = body.generic
    reducer = Reducer.of(generic)
    assert reducer is not None
    reducer.replaced = kernel.replaced
    if partials is None:
        items = math.prod(generic.extents[len(row) :]) // length
        partial = _walk(body, reducer, row, thread, index(items), threads, length)
    else:

        def take(number: ir.Value, carried: list[ir.Value]) -> Values:
            found = [load(kernel.view(place), [block, number]) for place in partials]
            return reducer(carried, found)

        partial = strided(thread, partials[0].type.shape[1], threads, reducer.neutral(), take)
    total = reducer.over_block(partial, thread, threads, _slots(kernel))
    when(equals(thread, 0), lambda: write_result(kernel, body, reducer, row, total))


def initial_value(fill: ir.Operation) -> ir.Value | None:
    """The one value that an op writes everywhere in its result; None if it does no such thing."""
    if fill.name == "memref.store":
        return None if ir.MemRefType(fill.operands[1].type).rank else fill.operands[0]
    return filled_value(fill)


def initial_values(
    body: Body, at: Mapping[int, ir.Value], fills: Sequence[ir.Operation] | None
) -> Values:
    """What a reduction begins with at a position: what its fills say, else what is in memory."""
    if fills is not None:
        return [body.value_of(value) for value in map(initial_value, fills) if value is not None]
    return [
        load(body.value_of(output), indices(map_, at))
        for output, map_ in zip(body.generic.outputs, body.generic.output_maps, strict=True)
    ]


def write_result(
    kernel: Kernel, body: Body, reducer: Reducer, at: Mapping[int, ir.Value], total: Values
) -> None:
    """Combine a total with the initial value and store it."""
    generic = body.generic
    outputs = [body.value_of(output) for output in generic.outputs]
    places = [indices(map_, at) for map_ in generic.output_maps]
    initial = initial_values(body, at, kernel.kernels.fills.get(generic.op))
    for value, output, place in zip(reducer.result(total, initial), outputs, places, strict=True):
        store(value, output, place)


def _walk(
    body: Body, reducer: Reducer, row: Mapping[int, ir.Value], first: ir.Value, end: ir.Value,
    step: int, length: int,
) -> Values:  # fmt: skip
    """The partial result of every `step`-th group of `length` neighbours in a row."""
    generic, depth = body.generic, len(row)
    extents = list(generic.extents[depth:])
    extents[-1] //= length
    last = generic.rank - 1
    count = len(reducer.types)

    def add(number: ir.Value, carried: list[ir.Value]) -> Values:
        at = {**row, **{depth + d: p for d, p in enumerate(positions(number, extents))}}
        if length == 1:
            return reducer(carried, reducer.element(body, at, body.inputs(at)))
        at[last] = arith.MulIOp(at[last], index(length)).result
        columns = [
            neighbours(body.value_of(operand), map_, argument, at, last, length)
            for operand, map_, argument in zip(
                generic.inputs, generic.input_maps, generic.body.arguments, strict=False
            )
        ]
        found: Values = []
        for n in range(length):
            mine = carried[n * count : (n + 1) * count]
            here = {**at, last: arith.AddIOp(at[last], index(n)).result}
            found += reducer(mine, reducer.element(body, here, [c[n] for c in columns]))
        return found

    # As many partial results as neighbours: their sums do not wait for each other.
    initial = reducer.neutral() * length
    sums = strided(first, end, step, initial, add)
    parts = [sums[n * count : (n + 1) * count] for n in range(length)]
    while len(parts) > 1:
        parts = [reducer(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _local_buffers(
    kernel: Kernel, members: Sequence[Generic], depth: int, inside: set[ir.Operation],
    together: int, line: ir.Value | None,
) -> tuple[dict[ir.Value, ir.Value], dict[ir.Value, frozenset[int]]]:  # fmt: skip
    """Shared buffers for the parts of temporaries that only these generics use, and which places of
    the indices they do without."""
    local: dict[ir.Value, ir.Value] = {}
    places: dict[ir.Value, frozenset[int]] = {}
    left = SHARED_BYTES // together
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
            local[buffer] = (
                kernel.shared(shape, type_.element_type)
                if line is None
                else _line(kernel.shared([together, *shape], type_.element_type), line)
            )
            places[buffer] = dropped
    return local, places


def _line(buffer: ir.Value, number: ir.Value) -> ir.Value:
    """One line of a buffer, without its first dimension."""
    of = ir.MemRefType(buffer.type)
    shape = list(of.shape)[1:]
    strides, _ = of.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), strides[1:])
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.Operation.create(
        "memref.subview",
        results=[ir.MemRefType.get(shape, of.element_type, layout, of.memory_space)],
        operands=[buffer, number],
        attributes={
            "static_offsets": ir.DenseI64ArrayAttr.get([dynamic, *[0] * len(shape)]),
            "static_sizes": ir.DenseI64ArrayAttr.get([1, *shape]),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * (len(shape) + 1)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0]),
        },
    ).result


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

    return generic._replace(
        input_maps=maps(generic.inputs, generic.input_maps),
        output_maps=maps(generic.outputs, generic.output_maps),
    )
