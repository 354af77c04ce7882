"""Sorts as kernels: a stable merge sort by any comparator, of several operands that move together.

Rows that fit are sorted whole in shared memory. Longer ones are sorted in tiles, then runs are
merged two and two: each block finds by bisection which parts of both runs its tile of the result
comes from ("merge path": Green, McColl, Bader, 2012), and copies those to shared memory. Both put
an element at the number of those before it: in its own run that is its place, in the other run
bisection finds it, counting equal ones only where they stand on the left.

Where the order is one of numbers and rows are long, `radix_sort` does it instead, which passes over
the elements once for each byte of the keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import (
    Scalar,
    choose,
    constant,
    greater,
    index,
    loop,
    repeat_while,
    smaller,
    split,
    when,
)
from lamina.passes.kernels.gpu.device.job import Job, signless
from lamina.passes.kernels.gpu.device.kernels import Kernel, Scratch
from lamina.passes.kernels.gpu.device.thread_numbers import block, synchronize, thread
from lamina.passes.kernels.gpu.machine import STATIC_SHARED_BYTES
from lamina.passes.kernels.gpu.sort.radix_sort import Load, Store, is_faster, radix_sort_rows
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.stablehlo.analysis.sort_order import (
    SIGNED,
    TOTAL_ORDER,
    UNSIGNED,
    Key,
    SortOrder,
)

_SHARED_BYTES = STATIC_SHARED_BYTES * 2 // 3  # a power of two, as tiles are
_MOST_THREADS = 512  # shape: of a block

Less = Callable[[list[Scalar], list[Scalar]], Scalar]


def write_sort(job: Job) -> None:
    """The kernels of a `stablehlo.sort`."""
    op = job.op
    shape = list(op.operands[0].type.shape)
    dimension = ir.IntegerAttr(op.attributes["dimension"]).value if "dimension" in op.attributes else -1
    dimension %= len(shape)
    outer = [n for d, n in enumerate(shape) if d != dimension]

    def place(row: Scalar, position: Scalar) -> list[Scalar]:
        at = split(row, outer)
        return [*at[:dimension], position, *at[dimension:]]

    def less(a: list[Scalar], b: list[Scalar]) -> Scalar:
        pairs = [scalar for pair in zip(a, b, strict=True) for scalar in pair]
        return job.apply(op.regions[0], pairs)[0]

    def loading(kernel: Kernel) -> Callable[[Scalar, Scalar], list[Scalar]]:
        arrays = [job.array(kernel, operand) for operand in op.operands]
        return lambda row, at: [array[place(row, at)] for array in arrays]

    def storing(kernel: Kernel) -> Callable[[Scalar, Scalar, list[Scalar]], None]:
        arrays = [job.array(kernel, r) if job.is_stored(r) else None for r in op.results]

        def store(row: Scalar, at: Scalar, values: list[Scalar]) -> None:
            for array, value in zip(arrays, values, strict=True):
                if array is not None:
                    array[place(row, at)] = value

        return store

    elements = [signless(operand.type.element_type) for operand in op.operands]
    order = SortOrder.of(op)
    keys = None if order is None else order.keys
    sort_rows(job, math.prod(outer), shape[dimension], elements, less, loading, storing, keys)


def write_top_k(job: Job) -> None:
    """The kernels of a `chlo.top_k`: the greatest elements of the last dimension, and where they
    were; NaN is the greatest."""
    op = job.op
    *outer, length = op.operands[0].type.shape
    count = op.results[0].type.shape[-1]
    element = op.operands[0].type.element_type
    word = ir.IntegerType.get_signless(32)
    is_unsigned = isinstance(element, ir.IntegerType) and (element.is_unsigned or element.width == 1)

    def less(a: list[Scalar], b: list[Scalar]) -> Scalar:
        return _greater_than(a[0], b[0], is_unsigned)

    def loading(kernel: Kernel) -> Callable[[Scalar, Scalar], list[Scalar]]:
        array = job.array(kernel, op.operands[0])
        return lambda row, at: [array[*split(row, outer), at], at.to(word)]

    def storing(kernel: Kernel) -> Callable[[Scalar, Scalar, list[Scalar]], None]:
        arrays = [job.array(kernel, r) if job.is_stored(r) else None for r in op.results]

        def store(row: Scalar, at: Scalar, values: list[Scalar]) -> None:
            with when(at < count):
                for array, value in zip(arrays, values, strict=True):
                    if array is not None:
                        array[*split(row, outer), at] = value

        return store

    elements = [signless(element), word]
    kind = UNSIGNED if is_unsigned else SIGNED if isinstance(element, ir.IntegerType) else TOTAL_ORDER
    keys = [Key(0, kind, descending=True)]
    sort_rows(job, math.prod(outer), length, elements, less, loading, storing, keys)


def _greater_than(a: Scalar, b: Scalar, is_unsigned: bool) -> Scalar:
    """By the order in which -0 is less than 0 and NaN is the greatest, as `chlo.top_k` has it."""
    if is_unsigned:
        low = constant(1 << (a.type.width - 1) if a.type.width > 1 else 1, a.type)
        return (a ^ low) > (b ^ low)
    if not a.is_float:
        return a > b
    bits = ir.IntegerType.get_signless(a.type.width)

    def ordered(x: Scalar) -> Scalar:
        """Bits that compare as integers: those of negative numbers are turned round."""
        raw = x.bits(bits)
        return choose(raw < 0, raw ^ ((1 << (bits.width - 1)) - 1), raw)

    return ordered(a) > ordered(b)


def sort_rows(
    job: Job, rows: int, length: int, elements: Sequence[ir.Type], less: Less, load: Load, store: Store,
    keys: Sequence[Key] | None = None,
) -> None:  # fmt: skip
    """Kernels that sort `rows` rows of `length` elements, each of several columns; `keys`: the same
    order as `less`, where it is one of numbers."""
    size = sum(map(element_bytes, elements))
    most = max(32, 1 << int(math.log2(_SHARED_BYTES // (2 * size))))
    tile = min(most, 2048, 1 << max(length - 1, 0).bit_length())
    tiles = -(-length // tile)
    merges = (tiles - 1).bit_length()
    if keys is not None and is_faster(rows, length, elements, keys, merges):
        return radix_sort_rows(
            job, rows, length, elements, keys, load, store,
            lambda columns: (_loading(job, columns), _storing(job, columns)),
        )  # fmt: skip
    buffers = [
        [job.scratch([rows, length], element) for element in elements]
        for _ in range(min(merges, 2))
    ]
    targets = [buffers[n % 2] for n in range(merges)]
    _tiles(job, rows, length, tile, elements, less, load,
           _storing(job, targets[0]) if merges else store)  # fmt: skip
    for number in range(merges):
        last = number == merges - 1
        _merge(job, rows, length, tile, tile << number, elements, less,
               _loading(job, targets[number]),
               store if last else _storing(job, targets[number + 1]))  # fmt: skip


def _loading(job: Job, columns: Sequence[Scratch]) -> Load:
    def in_kernel(kernel: Kernel) -> Callable[[Scalar, Scalar], list[Scalar]]:
        arrays = [job.array(kernel, column) for column in columns]
        return lambda row, at: [array[row, at] for array in arrays]

    return in_kernel


def _storing(job: Job, columns: Sequence[Scratch]) -> Store:
    def in_kernel(kernel: Kernel) -> Callable[[Scalar, Scalar, list[Scalar]], None]:
        arrays = [job.array(kernel, column) for column in columns]

        def store(row: Scalar, at: Scalar, values: list[Scalar]) -> None:
            for array, value in zip(arrays, values, strict=True):
                array[row, at] = value

        return store

    return in_kernel


def _tiles(
    job: Job, rows: int, length: int, tile: int, elements: Sequence[ir.Type], less: Less, load: Load,
    store: Store,
) -> None:  # fmt: skip
    """Sort each tile of each row in shared memory; several short rows in one block."""
    tiles = -(-length // tile)
    size = sum(map(element_bytes, elements))
    together = max(1, min(rows, 256 // tile, _SHARED_BYTES // (2 * size * tile)))  # rows a block
    if tiles > 1:
        together = 1
    items = together * tile
    threads = min(_MOST_THREADS, max(32, -(-items // 4 // 32) * 32))
    blocks = -(-rows // together) * tiles

    def emit(kernel: Kernel) -> None:
        shared = [job.shared(kernel, [2, items], element) for element in elements]
        get, put = load(kernel), store(kernel)
        group, part = split(block(), [-(-rows // together), tiles])
        start = part * tile
        count = smaller(length - start, tile)

        def each(work: Callable[[Scalar, Scalar, Scalar, Scalar], None]) -> None:
            """work(item, row, first item of the row, place in the tile) for what this block has."""
            with loop(thread(), items, threads) as item:
                of_block, at = split(item, [together, tile])
                row = group * together + of_block
                inside = at < count
                if rows % together:
                    inside = inside & (row < rows)
                with when(inside):
                    work(item, row, of_block * tile, at)

        def fill(item: Scalar, row: Scalar, first: Scalar, at: Scalar) -> None:
            for column, value in zip(shared, get(row, start + at), strict=True):
                column[0, item] = value

        def drain(item: Scalar, row: Scalar, first: Scalar, at: Scalar) -> None:
            put(row, start + at, [column[(passes % 2), item] for column in shared])

        passes = (tile - 1).bit_length()
        each(fill)
        synchronize()
        if passes:
            with loop(0, passes) as number:
                width = index(1).shifted(number)
                source = number % 2

                def one(item: Scalar, row: Scalar, first: Scalar, at: Scalar) -> None:
                    value = [column[source, item] for column in shared]
                    run = at // width
                    is_left = (run % 2).equals(0)
                    sibling = choose(is_left, run + 1, run - 1) * width
                    there = smaller(width, greater(count - sibling, 0))
                    before = _count_before(
                        value, is_left, there, less,
                        lambda i: [column[source, first + sibling + i] for column in shared],
                    )  # fmt: skip
                    place = run // 2 * (width * 2) + (at - run * width) + before
                    for column, scalar in zip(shared, value, strict=True):
                        column[1 - source, first + place] = scalar

                each(one)
                synchronize()
        each(drain)

    job.launch(blocks, threads, emit)


def _count_before(
    value: list[Scalar], is_left: Scalar, count: Scalar, less: Less,
    other: Callable[[Scalar], list[Scalar]],
) -> Scalar:  # fmt: skip
    """How many of the `count` elements of the other run go before an element."""

    def bisect(low: Scalar, high: Scalar) -> list[Scalar]:
        middle = (low + high) // 2
        found = other(middle)
        first = [choose(is_left, f, v) for f, v in zip(found, value, strict=True)]
        second = [choose(is_left, v, f) for f, v in zip(found, value, strict=True)]
        goes_before = less(first, second) ^ ~is_left
        return [choose(goes_before, middle + 1, low), choose(goes_before, high, middle)]

    return repeat_while([index(0), count], lambda low, high: low < high, bisect)[0]


def _merge(
    job: Job, rows: int, length: int, tile: int, width: int, elements: Sequence[ir.Type], less: Less,
    load: Load, store: Store,
) -> None:  # fmt: skip
    """Merge neighbouring runs of `width` elements, a tile of the result in each block."""
    tiles = -(-length // tile)
    threads = min(_MOST_THREADS, tile // 4)

    def emit(kernel: Kernel) -> None:
        shared = [job.shared(kernel, [tile], element) for element in elements]
        get, put = load(kernel), store(kernel)
        row, number = split(block(), [rows, tiles])
        begin = number * tile // (2 * width) * (2 * width)
        left = smaller(length - begin, width)
        right = smaller(length - begin - left, width)

        def from_left(diagonal: Scalar) -> Scalar:
            """How many of the first `diagonal` elements of the result come from the left run."""

            def bisect(low: Scalar, high: Scalar) -> list[Scalar]:
                middle = (low + high) // 2
                theirs = get(row, begin + left + (diagonal - 1 - middle))
                takes = ~less(theirs, get(row, begin + middle))
                return [choose(takes, middle + 1, low), choose(takes, high, middle)]

            ends = [greater(diagonal - right, 0), smaller(diagonal, left)]
            return repeat_while(ends, lambda low, high: low < high, bisect)[0]

        low = number * tile - begin
        high = smaller(low + tile, left + right)
        i0, i1 = from_left(low), from_left(high)
        j0 = low - i0
        ours, all_ = i1 - i0, high - low

        with loop(thread(), all_, threads) as item:
            at = choose(item < ours, i0 + item, left + j0 + (item - ours))
            for column, value in zip(shared, get(row, begin + at), strict=True):
                column[item] = value
        synchronize()
        with loop(thread(), all_, threads) as item:
            mine = [column[item] for column in shared]
            is_left = item < ours
            first = choose(is_left, ours, 0)
            there = choose(is_left, all_ - ours, ours)
            before = _count_before(
                mine, is_left, there, less, lambda i: [column[first + i] for column in shared]
            )
            own = choose(is_left, item, item - ours)
            put(row, begin + low + own + before, mine)

    job.launch(rows * tiles, threads, emit)
