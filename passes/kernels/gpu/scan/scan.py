"""The kernels of scans: window reductions in which each element is combined with all before it.

Along the dense axis a block takes 1024 elements at a time, 4 for each thread: what is before a thread
comes from its warp by shuffles, from the warps before by shared memory, from what the block did
before in a register. Along another axis a thread walks down its column. Where rows or columns are
too few to fill a GPU each is cut: a first kernel gives the total of each part, and the second begins
each part with those before it. Very long rows are `look_back`'s. Nothing depends on which block runs
first, so a sum has the same bits at every run. Narrow floats are combined in f32.
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.passes.emit.scalars import Array, Scalar, fold, index, smaller, split, when
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.thread_numbers import block, thread
from lamina.passes.kernels.gpu.device.threads import WARP
from lamina.passes.kernels.gpu.machine import FILLING_BLOCKS
from lamina.passes.kernels.gpu.scan.block import over_block
from lamina.passes.kernels.gpu.scan.elements import EACH, RowElements, Scanning
from lamina.passes.kernels.gpu.scan.look_back import LookBack, looks_back
from lamina.passes.stablehlo.analysis.scan_order import Scan

_MOST_THREADS = 256  # shape: of a block
_COLUMNS, _MOST_PARTS = 1 << 16, 256  # rounding


def write_scan(job: Job) -> None:
    """See the module's docstring."""
    scan = Scan.of(job.op, in_kernel=True)
    assert scan is not None
    if scan.inner > 1:
        _Columns(job, scan).write()
    elif looks_back(job, scan):
        LookBack(job, scan).write()
    else:
        _Rows(job, scan).write()


class _Rows(RowElements):
    """Scans along the dense axis."""

    def __init__(self, job: Job, scan: Scan) -> None:
        super().__init__(job, scan)
        self.threads = min(_MOST_THREADS, -(-scan.length // (EACH * WARP)) * WARP)
        self.chunk = self.threads * EACH
        chunks = -(-scan.length // self.chunk)
        wanted = max(1, -(-FILLING_BLOCKS // scan.outer)) if scan.outer < FILLING_BLOCKS // 4 else 1
        self.of_part = -(-chunks // min(chunks, wanted))  # chunks
        self.parts = -(-chunks // self.of_part)

    def write(self) -> None:
        totals = self.job.scratch([self.scan.outer, self.parts], self.type)
        if self.parts > 1:
            self._launch(lambda kernel: self._part(kernel, self.job.array(kernel, totals), True))
        self._launch(lambda kernel: self._part(kernel, self.job.array(kernel, totals), False))

    def _launch(self, emit: Callable[[Kernel], None]) -> None:
        self.job.launch(self.scan.outer * self.parts, self.threads, emit)

    def _part(self, kernel: Kernel, totals: Array, only_total: bool) -> None:
        """One part of a row: its total, or its scan."""
        scan = self.scan
        source, target = (
            self.job.array(kernel, v, [scan.outer, scan.length])
            for v in (self.job.op.operands[0], self.job.op.results[0])
        )
        slots = self.job.shared(kernel, [2, self.threads // WARP], self.type)
        row, part = split(block(), [scan.outer, self.parts])
        first = part * self.of_part
        chunks = smaller(-(-scan.length // self.chunk) - first, self.of_part)

        def one(number: Scalar, before: Scalar) -> list[Scalar]:
            begin = (first + number) * self.chunk + thread() * EACH
            values = self.read(source, row, begin)
            for place in range(1, EACH):
                values[place] = self.combine(values[place - 1], values[place])
            mine, total = self._over_block(values[-1], slots, number % 2)
            if not only_total:
                mine = self.combine(before, mine)
                self.write_at(target, row, begin, [self.combine(mine, value) for value in values])
            return [self.combine(before, total)]

        before = self.neutral()
        if self.parts > 1 and not only_total:
            before = self._before(totals, row, part, slots)
        (total,) = fold(0, chunks, [before], one)
        if only_total:
            with when(thread().equals(0)):
                totals[row, part] = total

    def _before(self, totals: Array, row: Scalar, part: Scalar, slots: Array) -> Scalar:
        """What the parts of a row before one have together."""
        (mine,) = fold(
            thread(), part, [self.neutral()],
            lambda at, sum_: [self.combine(sum_, totals[row, at])], self.threads,
        )  # fmt: skip
        _, total = self._over_block(mine, slots, index(1))
        return total

    def _over_block(self, value: Scalar, slots: Array, half: Scalar) -> tuple[Scalar, Scalar]:
        """(what the threads before have, what all have); `half` takes turns."""
        return over_block(value, slots, half, self.threads, self.combine, self.neutral())


class _Columns(Scanning):
    """Scans along another axis than the dense one: a thread for each column, or part of one."""

    def write(self) -> None:
        scan = self.scan
        columns = scan.outer * scan.inner
        parts = min(_MOST_PARTS, -(-_COLUMNS // columns), -(-scan.length // 32))
        size = -(-scan.length // parts)
        parts = -(-scan.length // size)
        totals = self.job.scratch([scan.outer, parts, scan.inner], self.type)
        shape = [scan.outer, scan.length, scan.inner]

        def work(kernel: Kernel, only_total: bool) -> Callable[[Scalar], None]:
            source, target = (
                self.job.array(kernel, v, shape)
                for v in (self.job.op.operands[0], self.job.op.results[0])
            )
            of_parts = self.job.array(kernel, totals)

            def one(item: Scalar) -> None:
                o, part, i = split(item, [scan.outer, parts, scan.inner])

                def step(at: Scalar, sum_: Scalar) -> list[Scalar]:
                    place = self.place(at)
                    sum_ = self.combine(sum_, self.widened(source[o, place, i]))
                    if not only_total:
                        target[o, place, i] = self.narrowed(sum_)
                    return [sum_]

                before = self.neutral()
                if parts > 1 and not only_total:
                    (before,) = fold(
                        0, part, [before], lambda p, sum_: [self.combine(sum_, of_parts[o, p, i])]
                    )
                end = smaller(part * size + size, scan.length)
                (total,) = fold(part * size, end, [before], step)
                if only_total:
                    of_parts[o, part, i] = total

            return one

        if parts > 1:
            self.job.each(columns * parts, lambda kernel: work(kernel, True))
        self.job.each(columns * parts, lambda kernel: work(kernel, False))
