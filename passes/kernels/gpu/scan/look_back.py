"""Scans of long rows that read and write memory once: a block waits for what the blocks before it have.

    ticket = next number; total = scan of the ticket's tile, in registers
    publish total; before = prefix of the groups before, totals of the group's tiles before; write
Tiles come in groups of 255. When a tile's total is known it is published, then each thread of the block
waits for that of one tile before it in its group, and the first thread for what all groups before have;
the last tile of a group publishes that for the next one. A block takes its tile by a ticket, so those
it waits for have begun, and what they publish does not wait for it. Which tiles are combined, and in
which order, depends on their places alone: unlike other scans that look back (Merrill, Garland,
Single-pass parallel prefix scan with decoupled look-back, 2016) this one gives a sum the same bits at
every run. What is published is one word of 64 bits, value and flag together, so that no fence is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.dialects.vendors import arith, ir, memref
from lamina.passes.emit.scalars import (
    Array,
    Scalar,
    choose,
    constant,
    index,
    repeat_while,
    split,
    when,
)
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.thread_numbers import synchronize, thread
from lamina.passes.kernels.gpu.device.threads import WARP
from lamina.passes.kernels.gpu.machine import L2_ELEMENTS
from lamina.passes.kernels.gpu.scan.block import over_block
from lamina.passes.kernels.gpu.scan.elements import EACH, RowElements, Scanning
from lamina.passes.stablehlo.analysis.scan_order import Scan

_THREADS, _CHUNKS = 256, 4
_CHUNK = _THREADS * EACH
_TILE = _CHUNK * _CHUNKS
_GROUP = _THREADS - 1
"""Tiles whose totals a block looks at, one a thread; the first thread looks at the groups before."""
_MANY_ROWS = 256  # shape: as many blocks
_FLAG = 1 << 32


def looks_back(job: Job, scan: Scan) -> bool:
    """Whether rows are long and few enough, of elements of which a total and a flag are one word."""
    kind = Scanning(job, scan).type
    fits = not isinstance(kind, ir.ComplexType) and kind.width <= 32
    return fits and scan.length >= L2_ELEMENTS and scan.outer < _MANY_ROWS


class LookBack(RowElements):
    """The kernels: one that clears what is published, and the scan."""

    def __init__(self, job: Job, scan: Scan) -> None:
        super().__init__(job, scan)
        self.word = ir.IntegerType.get_signless(64)
        self.half = ir.IntegerType.get_signless(32)
        self.tiles = -(-scan.length // _TILE)
        self.groups = -(-self.tiles // _GROUP)
        self.prefixes = scan.outer * self.tiles
        """Where those of groups begin, after the totals of tiles; the ticket is last."""
        self.words = self.prefixes + scan.outer * self.groups + 1
        self.state = job.scratch([self.words], self.word)

    def write(self) -> None:
        def clear(kernel: Kernel) -> Callable[[Scalar], None]:
            state = self.job.array(kernel, self.state)

            def one(item: Scalar) -> None:
                state[item] = constant(0, self.word)

            return one

        self.job.each(self.words, clear)
        self.job.launch(self.scan.outer * self.tiles, _THREADS, self._emit)

    def _emit(self, kernel: Kernel) -> None:
        job, scan = self.job, self.scan
        source, target = (
            job.array(kernel, v, [scan.outer, scan.length])
            for v in (job.op.operands[0], job.op.results[0])
        )
        slots = job.shared(kernel, [2, _THREADS // WARP], self.type)
        state = job.array(kernel, self.state)
        row, tile = split(self._ticket(kernel, state), [scan.outer, self.tiles])
        group, number = tile // _GROUP, tile % _GROUP

        total, scanned = self.neutral(), []
        for chunk in range(_CHUNKS):
            begin = tile * _TILE + (chunk * _CHUNK) + thread() * EACH
            values = self.read(source, row, begin)
            for place in range(1, EACH):
                values[place] = self.combine(values[place - 1], values[place])
            mine, all_ = self._over_block(values[-1], slots, chunk)
            scanned.append((begin, self.combine(total, mine), values))
            total = self.combine(total, all_)

        with when(thread().equals(0)):
            self._publish(state, row * self.tiles + tile, total)
        before = self._before(state, row, group, number)
        _, before = self._over_block(before, slots, _CHUNKS)
        with when(thread().equals(0) & number.equals(_GROUP - 1)):
            of_group = row * self.groups + group + self.prefixes
            self._publish(state, of_group, self.combine(before, total))
        for begin, mine, values in scanned:
            mine = self.combine(before, mine)
            self.write_at(target, row, begin, [self.combine(mine, value) for value in values])

    def _over_block(self, value: Scalar, slots: Array, turn: int) -> tuple[Scalar, Scalar]:
        return over_block(value, slots, index(turn % 2), _THREADS, self.combine, self.neutral())

    def _ticket(self, kernel: Kernel, state: Array) -> Scalar:
        """The number of this block, in the order in which they begin."""
        shared = self.job.shared(kernel, [1], self.word)
        with when(thread().equals(0)):
            one = constant(1, self.word)
            shared[0] = self._atomic(arith.AtomicRMWKind.addi, state, index(self.words - 1), one)
        synchronize()
        return shared[0].to(ir.IndexType.get())

    def _before(self, state: Array, row: Scalar, group: Scalar, number: Scalar) -> Scalar:
        """For this thread: what a tile before has, or, for the first, all groups before."""
        is_first = thread().equals(0)
        tile = group * _GROUP + thread() - 1
        place = choose(
            is_first, row * self.groups + group - 1 + self.prefixes, row * self.tiles + tile
        )
        wanted = choose(is_first, group > 0, ~is_first & (thread() <= number))
        nothing = constant(0, self.word)

        def again(_: Scalar) -> list[Scalar]:
            return [self._atomic(arith.AtomicRMWKind.ori, state, place, nothing)]

        (word,) = repeat_while(
            [choose(wanted, nothing, constant(_FLAG, self.word))], lambda word: word.equals(0), again
        )
        bits = Scalar(arith.TruncIOp(self.half, word.value).result)
        is_float = isinstance(self.type, ir.FloatType)
        value = bits.bits(self.type) if is_float else bits.to(self.type)
        return choose(wanted, value, self.neutral())

    def _publish(self, state: Array, place: Scalar, value: Scalar) -> None:
        bits = value.bits(self.half) if value.is_float else value.to(self.half)
        word = Scalar(arith.ExtUIOp(self.word, bits.value).result) | _FLAG
        self._atomic(arith.AtomicRMWKind.ori, state, place, word)

    def _atomic(self, kind: Any, state: Array, place: Scalar, value: Scalar) -> Scalar:
        """A word before an atomic operation on it."""
        return Scalar(memref.AtomicRMWOp(kind, value.value, state.buffer, [place.value]).result)
