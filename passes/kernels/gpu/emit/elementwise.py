"""Kernels of element-wise generics and of single stores; reductions are in `rows.py` and
`columns.py`. Which scheme is taken says `map_to_threads`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from lamina.dialects.vendors import arith, ir, vector
from lamina.passes.emit.copies import read_instead
from lamina.passes.emit.loops import index, load, store
from lamina.passes.kernels.gpu.device.kernels import Kernel, Kernels
from lamina.passes.kernels.gpu.device.threads import (
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
from lamina.passes.kernels.gpu.emit.shapes import square_length, vector_length
from lamina.passes.kernels.gpu.machine import FILLING_BLOCKS
from lamina.passes.linalg.analysis.affine_indices import indices
from lamina.passes.linalg.analysis.structure import Generic, loaded_buffers, stride_along

_THREADS = 256
_SLICES = 8  # rows of a tile that a block does at once
_LANES = (4, 8)  # of a warp, along the dimension that is read and the one that is written
_WARPS_ACROSS = {8: 4, 4: 2, 2: 2, 1: 1}  # by the warps of a block, those along the dimension that is read
_MOST_ITEMS = 4  # code: of a thread, in loops over elements
_MOST_OPS = 128  # code: that a thread's items have together: more are long to compile and take registers


def flat_grid(items: int) -> tuple[list[int], list[int]]:
    """Blocks and threads of a kernel that is one `grid_stride` over so many items."""
    return [max(1, min(2 * FILLING_BLOCKS, -(-items // _THREADS)))], [_THREADS]


def grid_stride(items: int, one: Callable[[ir.Value], None]) -> None:
    """`one(number)` for each item, which the threads of all blocks share."""
    first = arith.MulIOp(gpu_id("block_id"), index(_THREADS)).result
    first = arith.AddIOp(first, gpu_id("thread_id")).result

    def item(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        one(number)
        return []

    strided(first, items, flat_grid(items)[0][0] * _THREADS, [], item)


def emit_loop(kernels: Kernels, members: Sequence[Generic]) -> None:
    """Element-wise generics over the same elements. What one gives the next stays in registers; what nobody else reads
    is not stored. A thread does several items, a block's width apart, where there are enough: what it does before the
    first is then done once for all, and their loads don't wait for each other."""
    length = min(map(vector_length, members))
    items = math.prod(members[0].extents) // length
    count = _items_of_thread(items, length, members)
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

        _items_of_block(items, count, one)

    kernels.add([max(1, -(-items // (_THREADS * count)))], [_THREADS], members[-1].op, emit)


def _items_of_thread(items: int, length: int, members: Sequence[Generic]) -> int:
    """How many items of `length` elements each thread does: more than one where blocks still fill a GPU."""
    ops = length * sum(len(list(generic.body.operations)) for generic in members)
    count = _MOST_ITEMS
    while count > 1 and (2 * items < FILLING_BLOCKS * _THREADS * count or ops * count > _MOST_OPS):
        count //= 2
    return count


def _items_of_block(items: int, count: int, one: Callable[[ir.Value], None]) -> None:
    """`one(number)` for each item of a block, of which a thread has `count`, as many as a block has threads apart. A
    block that has all of its items asks once."""
    of_block = _THREADS * count
    begin = arith.MulIOp(gpu_id("block_id"), index(of_block)).result
    first = arith.AddIOp(begin, gpu_id("thread_id")).result
    numbers = [first, *(arith.AddIOp(first, index(n * _THREADS)).result for n in range(1, count))]

    def whole() -> None:
        for number in numbers:
            one(number)

    def item(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        one(number)
        return []

    def one_by_one() -> None:
        strided(first, items, _THREADS, [], item)

    if items % of_block == 0:
        whole()
    elif count == 1:
        when(below(first, items), whole)
    else:
        when(below(begin, items // of_block * of_block), whole, one_by_one)


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
                put(body.value_of(output), map_, at, known[output])


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


def put(
    buffer: ir.Value, map_: ir.AffineMap, at: dict[int, ir.Value], values: Sequence[ir.Value]
) -> None:
    """Store values that follow each other along the last loop."""
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
    """An element-wise generic that reads input `place` along its dimension `along`."""
    edge = square_length(generic, place, along)
    if edge > 1:
        _emit_squares(kernels, generic, place, along, edge)
    else:
        _emit_tiles(kernels, generic, place, along)


def _emit_squares(
    kernels: Kernels, generic: Generic, place: int, along: int, edge: int
) -> None:
    """Each thread turns a square in its registers. The lanes of a warp lie so that each piece of 32 bytes that they
    touch, in either order, is touched whole and once."""
    last = generic.rank - 1
    rest = [d for d in range(generic.rank) if d not in (along, last)]
    outside = math.prod(generic.extents[d] for d in rest)

    def grid_of(warps: int) -> list[int]:
        edges = [_LANES[0] * _WARPS_ACROSS[warps] * edge, _LANES[1] * warps // _WARPS_ACROSS[warps] * edge]
        return [-(-generic.extents[d] // size) for d, size in zip((along, last), edges)]

    warps = next((n for n in _WARPS_ACROSS if 2 * math.prod(grid_of(n)) * outside >= FILLING_BLOCKS), 1)
    grid, across = grid_of(warps), _WARPS_ACROSS[warps]

    def emit(kernel: Kernel) -> None:
        kernel.prepare([generic.op])
        body = Body(generic, kernel.replaced)
        *outer, a, b = positions(gpu_id("block_id"), [*(generic.extents[d] for d in rest), *grid])
        warp, lane = positions(gpu_id("thread_id"), [warps, WARP])
        mine = [*positions(lane, [_LANES[1], _LANES[0]])][::-1]
        of_warp = [*positions(warp, [warps // across, across])][::-1]
        sizes = [across * _LANES[0], warps // across * _LANES[1]]
        first = dict(zip(rest, outer))
        for d, block, size, of, lanes, own in zip(
            (along, last), (a, b), sizes, of_warp, _LANES, mine, strict=True
        ):
            square = arith.AddIOp(arith.MulIOp(block, index(size)).result, own).result
            square = arith.AddIOp(square, arith.MulIOp(of, index(lanes)).result).result
            first[d] = arith.MulIOp(square, index(edge)).result

        def work() -> None:
            _turn_square(body, first, place, along, edge)

        inside = [
            below(first[d], generic.extents[d])
            for d, size in zip((along, last), sizes)
            if generic.extents[d] % (size * edge)
        ]
        if not inside:
            work()
        else:
            when(inside[0] if len(inside) == 1 else arith.AndIOp(*inside).result, work)

    kernels.add([math.prod(grid) * outside], [WARP * warps], generic.op, emit)


def _turn_square(
    body: Body, first: dict[int, ir.Value], place: int, along: int, edge: int
) -> None:
    """The elements of a square: what is read along one dimension is written along the last."""
    generic = body.generic
    last = generic.rank - 1

    def at(d: int, step: int) -> dict[int, ir.Value]:
        return {**first, d: arith.AddIOp(first[d], index(step)).result if step else first[d]}

    source, map_ = body.value_of(generic.inputs[place]), generic.input_maps[place]
    arguments = generic.body.arguments
    read = [
        neighbours(source, map_, arguments[place], at(last, step), along, edge)
        for step in range(edge)
    ]
    operands = list(
        zip((*generic.inputs, *generic.outputs), (*generic.input_maps, *generic.output_maps), arguments, strict=True)
    )  # fmt: skip
    count = len(generic.inputs)
    for step in range(edge):
        row = at(along, step)
        columns = [
            [line[step] for line in read]
            if number == place
            else neighbours(body.value_of(operand), of, argument, row, last, edge)
            for number, (operand, of, argument) in enumerate(operands)
        ]
        found = []
        for n in range(edge):
            here = {**row, last: at(last, n)[last]}
            found.append(body.run(here, [c[n] for c in columns[:count]], [c[n] for c in columns[count:]]))
        for number, (output, of) in enumerate(zip(generic.outputs, generic.output_maps, strict=True)):
            put(body.value_of(output), of, row, [each[number] for each in found])


def _emit_tiles(kernels: Kernels, generic: Generic, place: int, along: int) -> None:
    """Through tiles in shared memory that are written by columns and read by rows."""
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
