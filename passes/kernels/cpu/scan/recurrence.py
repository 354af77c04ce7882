"""Kernels of recurrences along an axis: h[i] = a[i] h[i - 1] + b[i], whose first is b[0].

A run of elements is a pair (A, B), which makes A h + B of what came before. Cut as other scans are
(`scan.py`):

- Rows that lie contiguously go vector by vector: log2(lanes) steps of shuffles make the pairs of all
  runs from the vector's beginning on, then they are applied to what came before. Chunks of a long
  row have their pairs computed first.
- Rows that lie side by side go together, a row of elements after the other.

What came before is carried in f64, for elements of f64 with the rounding errors of its sums, so that
where factors are near one results are rounded about once, however long the row.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.passes.kernels.cpu.emit.llvm_text import Integer, Text
from lamina.passes.kernels.cpu.scan.recurrence_values import WIDE, RecurrenceValues
from lamina.passes.kernels.cpu.scan.tasks import ScanTasks, Task
from lamina.passes.stablehlo.analysis.scan_order import Scan


def recurrence_kernel(
    scan: Scan, symbol: str, parameters: str, pointers: Sequence[str], vector_bits: int
) -> tuple[str, int]:
    """LLVM IR of a kernel for these of its parameters, factors, terms and result, of which the last
    is scratch memory; and the bytes of scratch it needs."""
    writer = _Writer(scan, vector_bits)
    if scan.inner > 1:
        tasks, scratch = [writer.columns_task()], 0
    elif writer.in_chunks:
        tasks, scratch = writer.chunk_tasks()
    else:
        tasks, scratch = [writer.rows_task()], 0
    given = (*pointers, parameters.rsplit(" ", 1)[1])
    return writer.assembled(symbol, parameters, given, tasks), scratch


class _Writer(RecurrenceValues, ScanTasks):
    """Writes the tasks of one kernel."""

    def __init__(self, scan: Scan, vector_bits: int) -> None:
        RecurrenceValues.__init__(self, scan, vector_bits)
        pointers = ("%a", "%b", "%out", "%pairs")
        ScanTasks.__init__(self, scan, vector_bits, self.lanes, pointers, self.bytes)

    # ---- rows, each whole
    def rows_task(self) -> Task:
        """Rows one after the other."""
        scan, t = self.scan, self.start()
        before = self.variables(t, 0)
        with t.loop("%high", "%low") as row:
            first, rest = self._parted(t, t.mul(row, scan.length), scan.length)
            self.put(t, self.begun(t, before, self.wide(t, "%b", first, 0), 0), WIDE, first, 0)
            self._run(t, rest, t.difference(scan.length, 1), before)
        return self.task("rows", t, scan.outer, scan.length)

    # ---- long rows, in chunks
    def chunk_tasks(self) -> tuple[list[Task], int]:
        """Pairs of chunks, what comes before each, and the chunks."""
        scan, chunk, size = self.scan, self.chunk, 8 * self.parts
        chunks = -(-scan.length // chunk)
        count = scan.outer * chunks

        t = self.start()
        factor, total = self.variables(t, 0)[: self.parts], self.variables(t, 0)
        with t.loop("%high", "%low") as number:
            start, length, _ = self.bounds(t, number)
            pair = self._pair_of(t, start, length, factor, total)
            for which, value in enumerate(pair):
                self.spill(t, value, t.at("%pairs", t.mul(t.add(t.mul(number, 2), which), size)))
        pairs = self.task("pairs", t, count, chunk)

        t = self.start()
        before = self.variables(t, 0)
        with t.loop("%high", "%low") as row:
            at = t.at("%pairs", t.mul(row, 2 * chunks * size))
            self.begun(t, before, self.fill(t, t.at(at, size)), 0)
            with t.loop(chunks, 1) as number:
                at = t.at("%pairs", t.mul(t.add(t.mul(row, chunks), number), 2 * size))
                a, b = self.fill(t, at), self.fill(t, t.at(at, size))
                self.spill(t, self.now(t, before, 0), t.at(at, size))
                self.advanced(t, before, a, b, 0)
        seeds = self.task("seeds", t, scan.outer, scan.length)

        t = self.start()
        before = self.variables(t, 0)
        with t.loop("%high", "%low") as number:
            start, length, place = self.bounds(t, number)
            seed = self.fill(t, t.at("%pairs", t.mul(t.add(t.mul(number, 2), 1), size)))
            first, rest = self._parted(t, start, length)
            a, b = self.wide(t, "%a", first, 0), self.wide(t, "%b", first, 0)
            is_first = t.emit(f"icmp eq i64 {place}, 0")
            after = self.applied(t, WIDE, 0, a, seed, b)
            after = self.chosen(t, f"i1 {is_first}", WIDE, b, after)
            self.put(t, self.begun(t, before, after, 0), WIDE, first, 0)
            self._run(t, rest, t.difference(length, 1), before)
        return [pairs, seeds, self.task("chunks", t, count, chunk)], count * 2 * size

    # ---- one contiguous run of elements
    def _parted(self, t: Text, start: Integer, length: Integer) -> tuple[Integer, Integer]:
        """A run's first element, and where the lowest of the others lies."""
        if self.scan.reverse:
            return t.add(start, t.difference(length, 1)), start
        return start, t.add(start, 1)

    def _run(self, t: Text, start: Integer, length: Integer, before: Sequence[str]) -> None:
        """Do `length` elements from element `start`; the variables hold what came before."""

        def step(place: Integer, size: int) -> None:
            if size == 1:
                a, b = self.wide(t, "%a", place, 0), self.wide(t, "%b", place, 0)
                self.put(t, self.advanced(t, before, a, b, 0), WIDE, place, 0)
                return
            a, b = self.prefixes(t, place)
            h = self.everywhere(t, self.now(t, before, 0))
            self.put(t, self.applied(t, self.local, size, a, h, b), self.local, place, size)
            self.advanced(t, before, self.last(t, a), self.last(t, b), 0)

        self.walk(t, start, length, (self.lanes, 1), step)

    def _pair_of(
        self, t: Text, start: Integer, length: Integer, factor: Sequence[str], total: Sequence[str]
    ) -> list[tuple[str, ...]]:
        """The pair of a run, by way of these variables."""
        first, rest = self._parted(t, start, length)
        self.begun(t, factor, self.wide(t, "%a", first, 0), 0)
        self.begun(t, total, self.wide(t, "%b", first, 0), 0)

        def so_far() -> tuple[str, ...]:
            return tuple(t.load(WIDE, variable, 8) for variable in factor)

        def step(place: Integer, size: int) -> None:
            if size == 1:
                a, b = self.wide(t, "%a", place, 0), self.wide(t, "%b", place, 0)
            else:
                a, b = (self.last(t, value) for value in self.prefixes(t, place))
            self.begun(t, factor, self.product(t, WIDE, 0, so_far(), a), 0)
            self.advanced(t, total, a, b, 0)

        self.walk(t, rest, t.difference(length, 1), (self.lanes, 1), step)
        return [so_far(), self.now(t, total, 0)]

    # ---- rows side by side
    def columns_task(self) -> Task:
        """Blocks of neighbouring columns."""
        t = self.start()
        carried = {
            sum(widths): [self.variables(t, lanes) for lanes in widths] for widths in self.block_widths()
        }

        def block_of(start: Integer, widths: list[int]) -> None:
            self._columns(t, start, widths, carried[sum(widths)])

        return self.task("columns", t, *self.column_blocks(t, block_of))

    def _columns(
        self, t: Text, start: Integer, widths: list[int], carried: list[list[str]]
    ) -> None:
        scan = self.scan

        def row(number: Integer, is_first: bool) -> None:
            if scan.reverse:
                number = t.difference(scan.length - 1, number)
            base = t.add(start, t.mul(number, scan.inner))
            for block, (lanes, before) in enumerate(zip(widths, carried, strict=True)):
                place = t.add(base, block * self.lanes)
                b = self.wide(t, "%b", place, lanes)
                if is_first:
                    value = self.begun(t, before, b, lanes)
                else:
                    value = self.advanced(t, before, self.wide(t, "%a", place, lanes), b, lanes)
                self.put(t, value, WIDE, place, lanes)

        row(0, True)
        with t.loop(scan.length, 1) as number:
            row(number, False)
