"""Sorts of long rows by the bits of their keys: eight bits at a time, the least first.

For each eight bits three kernels: one counts how often each value (digit) occurs in each tile, one adds
these counts up over the tiles of a row, and one moves the elements. For that a tile of 4096 is put in
the order of its digits in shared memory, by four bits and four bits: each thread counts the digits of
16 neighbours, sums of the counts say where they go. Then neighbours mostly go side by side. Equal
digits keep their order, so the sort is stable, by any number of keys, and the same at every run.
(Satish, Harris, Garland, Designing efficient sorting algorithms for manycore GPUs, 2009.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.scalars import (
    Array,
    Scalar,
    choose,
    constant,
    fold,
    index,
    loop,
    smaller,
    split,
    when,
)
from lamina.passes.framework.machine import GPU_LAUNCH_NS
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel, Scratch
from lamina.passes.kernels.gpu.device.thread_numbers import block, synchronize, thread
from lamina.passes.kernels.gpu.device.threads import WARP
from lamina.passes.kernels.gpu.machine import BYTES_PER_SECOND
from lamina.passes.kernels.gpu.scan.block import over_block
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.stablehlo.analysis.sort_order import BRAIN_FLOAT, FLOAT, UNSIGNED, Key
from lamina.records import Record

_THREADS, _EACH = 256, 16
_TILE = _THREADS * _EACH
_DIGITS, _NIBBLES = 256, 16
_MERGE_FACTOR = 1.5  # of a merge's time over that of its reading and writing: it bisects, too

Load = Callable[[Kernel], Callable[[Scalar, Scalar], list[Scalar]]]
"""In a kernel: (row, position) -> the element of each column."""
Store = Callable[[Kernel], Callable[[Scalar, Scalar, list[Scalar]], None]]


def is_faster(
    rows: int, length: int, elements: Sequence[ir.Type], keys: Sequence[Key], merges: int
) -> bool:
    """Whether this beats merging, which passes `merges` times over all after tiles are sorted."""
    size, count = sum(map(element_bytes, elements)), rows * length
    digits = sum(element_bytes(elements[key.operand]) for key in keys)
    read = sum(element_bytes(elements[key.operand]) ** 2 for key in keys)
    launch = GPU_LAUNCH_NS * 1e-9
    mine = digits * (3 * launch) + count * (read + 2 * size * digits) / BYTES_PER_SECOND
    merging = merges * (launch + count * 2 * size * _MERGE_FACTOR / BYTES_PER_SECOND)
    return mine < merging


class _Pass(Record):
    """Eight bits of a key."""

    key: Key
    shift: int


def radix_sort_rows(
    job: Job, rows: int, length: int, elements: Sequence[ir.Type], keys: Sequence[Key], load: Load,
    store: Store, through: Callable[[Sequence[Scratch]], tuple[Load, Store]],
) -> None:  # fmt: skip
    """Kernels that sort rows by keys, the most important first; `through` reads and writes columns in
    scratch memory."""
    passes = [
        _Pass(key, 8 * byte)
        for key in reversed(keys)
        for byte in range(element_bytes(elements[key.operand]))
    ]
    halves = [
        through([job.scratch([rows, length], element) for element in elements])
        for _ in range(min(2, len(passes) - 1))
    ]
    sorting = _Sorting(job, rows, length)
    for number, one in enumerate(passes):
        get = load if number == 0 else halves[(number - 1) % 2][0]
        put = store if number == len(passes) - 1 else halves[number % 2][1]
        sorting.by(one, get, put)


class _Sorting:
    """What all passes share."""

    def __init__(self, job: Job, rows: int, length: int) -> None:
        self.job, self.rows, self.length = job, rows, length
        self.tiles = -(-length // _TILE)
        self.word = ir.IntegerType.get_signless(32)
        self.counts = job.scratch([rows, _DIGITS, self.tiles], self.word)
        self.totals = job.scratch([rows, _DIGITS], self.word)

    def by(self, one: _Pass, load: Load, store: Store) -> None:
        self.job.launch(self.rows * self.tiles, _THREADS, lambda k: self._count(k, one, load(k)))
        self.job.launch(self.rows * _DIGITS, _THREADS, self._add_up)
        self.job.launch(
            self.rows * self.tiles, _THREADS, lambda k: self._move(k, one, load(k), store(k))
        )

    def _zero(self) -> Scalar:
        return constant(0, self.word)

    def _tile(self) -> tuple[Scalar, Scalar, Scalar]:
        """The row of this block, its tile, and how many elements are in that."""
        row, tile = split(block(), [self.rows, self.tiles])
        return row, tile, smaller(self.length - tile * _TILE, _TILE)

    def _count(self, kernel: Kernel, one: _Pass, get: Callable[..., list[Scalar]]) -> None:
        found = self.job.shared(kernel, [_DIGITS], self.word)
        counts = self.job.array(kernel, self.counts)
        row, tile, inside = self._tile()
        found[thread()] = self._zero()
        synchronize()
        with loop(thread(), inside, _THREADS) as item:
            digit = _digit(get(row, tile * _TILE + item), one).to(ir.IndexType.get())
            added = constant(1, self.word)
            memref.AtomicRMWOp(arith.AtomicRMWKind.addi, added.value, found.buffer, [digit.value])
        synchronize()
        counts[row, thread(), tile] = found[thread()]

    def _add_up(self, kernel: Kernel) -> None:
        """Of one digit: how often it occurs in the tiles before each, and in all."""
        counts, totals = (self.job.array(kernel, part) for part in (self.counts, self.totals))
        slots = self.job.shared(kernel, [2, _THREADS // WARP], self.word)
        row, digit = split(block(), [self.rows, _DIGITS])

        def some(number: Scalar, before: Scalar) -> list[Scalar]:
            tile = number * _THREADS + thread()
            inside = tile < self.tiles
            mine = choose(inside, counts[row, digit, smaller(tile, self.tiles - 1)], self._zero())
            below, all_ = over_block(mine, slots, number % 2, _THREADS, _add, self._zero())
            with when(inside):
                counts[row, digit, tile] = before + below
            return [before + all_]

        (total,) = fold(0, -(-self.tiles // _THREADS), [self._zero()], some)
        with when(thread().equals(0)):
            totals[row, digit] = total

    def _move(
        self, kernel: Kernel, one: _Pass, get: Callable[..., list[Scalar]],
        put: Callable[[Scalar, Scalar, list[Scalar]], None],
    ) -> None:  # fmt: skip
        job = self.job
        counts, totals = (job.array(kernel, part) for part in (self.counts, self.totals))
        items = job.shared(kernel, [_padded(_TILE)], self.word)
        """Digit and place in the tile; neighbours of 16 are a word further apart."""
        nibbles = job.shared(kernel, [_padded(_NIBBLES * _THREADS)], self.word)
        slots = job.shared(kernel, [1, _THREADS // WARP], self.word)
        targets = job.shared(kernel, [_DIGITS], self.word)
        row, tile, inside = self._tile()
        first = tile * _TILE

        for n in range(_EACH):
            item = thread() + n * _THREADS
            values = get(row, first + smaller(item, inside - 1))
            beyond = constant(_DIGITS - 1, self.word)  # which come last, as they stand behind all
            digit = choose(item < inside, _digit(values, one), beyond)
            items[_place(item)] = digit * _TILE + item.to(self.word)
        for shift in (0, 4):
            self._split(items, nibbles, slots, shift)

        # Where a digit's elements go: after all of lower digits, those of the tiles before, and those
        # before in the tile, of which the first is at no place but its own.
        digit_total = totals[row, thread()]
        lower, _ = over_block(digit_total, slots, index(0), _THREADS, _add, self._zero())
        targets[thread()] = lower + counts[row, thread(), tile]
        synchronize()
        for n in range(_EACH):
            item = thread() + n * _THREADS
            digit = _of(items[_place(item)])
            before = _of(items[_place(choose(item.equals(0), 0, item - 1))])
            with when(item.equals(0) | digit.differs(before)):
                targets[digit.to(ir.IndexType.get())] = (
                    targets[digit.to(ir.IndexType.get())] - item.to(self.word)
                )
        synchronize()
        with loop(thread(), inside, _THREADS) as item:
            packed = items[_place(item)]
            source = (packed % _TILE).to(ir.IndexType.get())
            target = targets[_of(packed).to(ir.IndexType.get())] + item.to(self.word)
            put(row, target.to(ir.IndexType.get()), get(row, first + source))

    def _split(self, items: Array, nibbles: Array, slots: Array, shift: int) -> None:
        """Put the tile's items in the order of four bits, those with the same as they were."""
        begin = thread() * _EACH
        synchronize()
        mine = [items[_place(begin + n)] for n in range(_EACH)]
        places = [
            ((_of(item) // (1 << shift)) % _NIBBLES).to(ir.IndexType.get()) * _THREADS + thread()
            for item in mine
        ]
        for n in range(_NIBBLES):
            nibbles[_place(n * _THREADS + thread())] = self._zero()
        before = []
        for place in places:
            count = nibbles[_place(place)]
            before.append(count)
            nibbles[_place(place)] = count + 1
        synchronize()
        of_thread = [nibbles[_place(begin + n)] for n in range(_EACH)]
        total = self._zero()
        for count in of_thread:
            total = total + count
        below, _ = over_block(total, slots, index(0), _THREADS, _add, self._zero())
        for n, count in enumerate(of_thread):
            nibbles[_place(begin + n)] = below
            below = below + count
        synchronize()
        for item, place, count in zip(mine, places, before, strict=True):
            items[_place((nibbles[_place(place)] + count).to(ir.IndexType.get()))] = item


def _add(a: Scalar, b: Scalar) -> Scalar:
    return a + b


def _of(packed: Scalar) -> Scalar:
    """The digit of an item."""
    return packed // _TILE


def _place(item: Scalar) -> Scalar:
    """Where a thread's neighbours and those of others lie in different banks."""
    return item + item // _EACH


def _padded(count: int) -> int:
    return count + count // _EACH


def _digit(values: Sequence[Scalar], one: _Pass) -> Scalar:
    """Eight bits of a key, as they order it, in 32."""
    bits = _ordered(values[one.key.operand], one.key)
    word = ir.IntegerType.get_signless(32)
    if bits.type.width == 8:
        return bits.to(word) & 255
    return (bits // (1 << one.shift)).to(word) & 255


def _ordered(key: Scalar, by: Key) -> Scalar:
    """The bits of a key, changed so that they order it as unsigned integers do."""
    if not key.is_float:
        if key.type.width == 1:
            byte = ir.IntegerType.get_signless(8)
            key = choose(key, constant(1, byte), constant(0, byte))
        bits = key if by.kind == UNSIGNED else key ^ _sign(key.type)
        return ~bits if by.descending else bits
    raw = key.bits(ir.IntegerType.get_signless(key.type.width))
    if by.kind % BRAIN_FLOAT == FLOAT:  # all zeros are one, and all NaNs
        magnitude = raw & (_sign(raw.type) ^ -1)
        infinity = constant(math.inf, key.type).bits(raw.type)
        raw = choose(magnitude.equals(0), magnitude, raw)
        raw = choose(magnitude > infinity, infinity + 1, raw)
    bits = choose(raw < 0, ~raw, raw ^ _sign(raw.type))
    return ~bits if by.descending else bits


def _sign(type_: ir.Type) -> Scalar:
    return constant(-(1 << (type_.width - 1)), type_)
