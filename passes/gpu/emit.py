"""Kernels of element-wise generics and of single stores; reductions are in `emit_rows` and
`emit_columns`. Which scheme is taken says `map_to_threads`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.copies import read_instead
from lamina.passes.gpu.kernels import Kernel, Kernels
from lamina.passes.gpu.shapes import vector_length
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
from lamina.passes.linalg.structure import Generic, loaded_buffers, stride_along
from lamina.passes.loops import index, load, store

_THREADS = 256
_MOST_BLOCKS = 2048  # of a grid-stride loop: enough to fill any GPU several times
_SLICES = 8  # rows of a tile that a block does at once


def flat_grid(items: int) -> tuple[list[int], list[int]]:
    """Blocks and threads of a kernel that is one `grid_stride` over so many items."""
    return [max(1, min(_MOST_BLOCKS, -(-items // _THREADS)))], [_THREADS]


def grid_stride(items: int, one: Callable[[ir.Value], None]) -> None:
    """`one(number)` for each item, which the threads of all blocks share."""
    first = arith.MulIOp(gpu_id("block_id"), index(_THREADS)).result
    first = arith.AddIOp(first, gpu_id("thread_id")).result

    def item(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        one(number)
        return []

    strided(first, items, flat_grid(items)[0][0] * _THREADS, [], item)


def emit_loop(kernels: Kernels, members: Sequence[Generic]) -> None:
    """Element-wise generics over the same elements as a grid-stride loop. What one gives the next
    stays in registers; what nobody else reads is not stored."""
    length = min(map(vector_length, members))
    items = math.prod(members[0].extents) // length
    inside = {generic.op for generic in members}
    loaded = {buffer for generic in members for buffer in loaded_buffers(generic)}
    private = {
        buffer
        for buffer in kernels.temporaries
        if buffer not in loaded
        and all(
            use.owner.operation in inside or use.owner.operation.name == "memref.dealloc"
            for use in buffer.uses
        )
    }

    def emit(kernel: Kernel) -> None:
        kernel.replaced |= dict.fromkeys(private)  # they need no place
        kernel.prepare([generic.op for generic in members])
        for buffer in private:
            del kernel.replaced[buffer]
        bodies = [Body(generic, kernel.replaced) for generic in members]

        def one(number: ir.Value) -> None:
            element_wise(bodies, {}, number, length, private)

        grid_stride(items, one)

    kernels.add(*flat_grid(items), members[-1].op, emit)


def element_wise(
    bodies: Sequence[Body], at: dict[int, ir.Value], number: ir.Value, length: int,
    private: Collection[ir.Value] = (),
) -> None:  # fmt: skip
    """Item `number` of the loops that `at` leaves open, `length` neighbours along the last, done by
    each body in turn."""
    generic = bodies[0].generic
    inner = [d for d in range(generic.rank) if d not in at]
    extents = [generic.extents[d] for d in inner]
    if length > 1:
        extents[-1] //= length
    at = {**at, **dict(zip(inner, positions(number, extents)))}
    last = generic.rank - 1
    places = [at]
    if length > 1:
        at[last] = arith.MulIOp(at[last], index(length)).result
        steps = [arith.AddIOp(at[last], index(n)).result for n in range(1, length)]
        places += [{**at, last: step} for step in steps]
    known: dict[ir.Value, list[ir.Value]] = {}
    for body in bodies:
        rows = _rows(body, known, places, last)
        for place, (output, map_) in enumerate(
            zip(body.generic.outputs, body.generic.output_maps, strict=True)
        ):
            known[output] = [row[place] for row in rows]
            if output not in private:
                _put(body.value_of(output), map_, at, known[output])


def _rows(
    body: Body, known: dict[ir.Value, list[ir.Value]], places: Sequence[dict[int, ir.Value]], last: int
) -> list[list[ir.Value]]:  # fmt: skip
    """What a body yields at each of some places that follow each other."""
    generic = body.generic
    columns = []
    for operand, map_, argument in zip(
        [*generic.inputs, *generic.outputs], [*generic.input_maps, *generic.output_maps],
        generic.body.arguments, strict=True,
    ):  # fmt: skip
        if operand in known:
            columns.append(known[operand])
        else:
            columns.append(
                neighbours(body.value_of(operand), map_, argument, places[0], last, len(places))
            )
    count = len(generic.inputs)
    return [
        body.run(at, [c[n] for c in columns[:count]], [c[n] for c in columns[count:]])
        for n, at in enumerate(places)
    ]


def _put(
    buffer: ir.Value, map_: ir.AffineMap, at: dict[int, ir.Value], values: Sequence[ir.Value]
) -> None:
    if len(values) == 1:
        store(values[0], buffer, indices(map_, at))
        return
    type_ = ir.VectorType.get([len(values)], ir.MemRefType(buffer.type).element_type)
    packed = vector.FromElementsOp(type_, list(values)).result
    vector.StoreOp(packed, buffer, indices(map_, at), alignment=_alignment(type_))


def neighbours(
    value: ir.Value, map_: ir.AffineMap, argument: ir.Value, at: dict[int, ir.Value], last: int,
    length: int,
) -> list[ir.Value | None]:  # fmt: skip
    """`length` elements of an operand that follow each other along a loop; None for those that the
    body does not use."""
    if not len(list(argument.uses)):
        return [None] * length
    if not isinstance(value.type, ir.MemRefType):
        return [value] * length
    if length == 1 or stride_along(value, map_, last) == 0:
        return [load(value, indices(map_, at))] * length
    type_ = ir.VectorType.get([length], ir.MemRefType(value.type).element_type)
    loaded = vector.LoadOp(type_, value, indices(map_, at), alignment=_alignment(type_)).result
    return [vector.ExtractOp(loaded, [], [n]).result for n in range(length)]


def _alignment(type_: ir.VectorType) -> int:
    return type_.shape[0] * type_.element_type.width // 8


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
    """A store outside of any generic: one thread does it, and computes what is stored."""

    def emit(kernel: Kernel) -> None:
        def write() -> None:
            kernel.prepare([op])
            read_instead(op.clone().operation, kernel.replaced)

        when(equals(gpu_id("thread_id"), 0), write)

    kernels.add([1], [WARP], op, emit)
