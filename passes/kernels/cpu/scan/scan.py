"""Kernels of scans along an axis: running sums, products, maxima and minima.

- Rows that lie contiguously are scanned vector by vector: log2(lanes) steps of shuffles inside one,
  then what came before on top. Sums of f32 are staged between the two, a block at a time: they are
  widened half a vector at a time from memory, which takes no shuffles. A long row is cut into
  chunks: their totals first, a task each; the totals' prefixes; then the chunks, each starting from
  its prefix.
- Rows that lie side by side are scanned together, a block of columns to a task.

The cuts depend on the shape alone, so results don't depend on the number of threads.
"""

from __future__ import annotations

from lamina.passes.kernels.cpu.emit.llvm_text import Integer, Text
from lamina.passes.kernels.cpu.scan.tasks import ScanTasks, Task
from lamina.passes.kernels.cpu.scan.values import Carried, ScanValues, vector_of
from lamina.passes.stablehlo.analysis.scan_order import Scan

_STAGED = 32  # vectors of a block that is staged


def scan_kernel(scan: Scan, symbol: str, vector_bits: int) -> tuple[str, int]:
    """LLVM IR of `void @symbol(ptr operand, ptr initial, ptr result, ptr scratch)`, and the bytes of
    scratch it needs."""
    return _Writer(scan, vector_bits).kernel(symbol)


class _Writer(ScanValues, ScanTasks):
    """Writes one kernel."""

    def __init__(self, scan: Scan, vector_bits: int) -> None:
        ScanValues.__init__(self, scan, vector_bits)
        pointers = ("%in", "%out", "%totals")
        ScanTasks.__init__(self, scan, vector_bits, self.lanes, pointers, self.types.bytes)
        self.wide = vector_of(self.types.carried, self.lanes)
        self.is_staged = self.types.local != self.types.carried

    # ---- the kernel
    def kernel(self, symbol: str) -> tuple[str, int]:
        if self.scan.inner > 1:
            tasks, scratch = [self._columns_task()], 0
        elif self.in_chunks:
            tasks, scratch = self._chunk_tasks()
        else:
            tasks, scratch = [self._rows_task()], 0
        names = ("%operand", "%initial", "%result", "%scratch")
        parameters = ", ".join(f"ptr {name}" for name in names)
        return self.assembled(symbol, parameters, (names[0], *names[2:]), tasks), scratch

    # ---- rows, each whole
    def _rows_task(self) -> Task:
        scan = self.scan
        t = self.start()
        carry, stage = self.variables(t, 0), self._stage(t)
        with t.loop("%high", "%low") as row:
            self.set(t, carry, self.neutral(0), 0)
            start = t.mul(row, scan.length)
            self._run(t, start, scan.length, carry, stage)
        return self.task("rows", t, scan.outer, scan.length)

    # ---- long rows, in chunks
    def _chunk_tasks(self) -> tuple[list[Task], int]:
        """Totals of chunks, their prefixes, and the chunks."""
        scan, chunk, size = self.scan, self.chunk, 8 * (1 + self.compensated)
        chunks = -(-scan.length // chunk)
        count = scan.outer * chunks

        t = self.start()
        carry = self.variables(t, 0)
        sums = self.variables(t, self.lanes)
        with t.loop("%high", "%low") as number:
            start, length, _ = self.bounds(t, number)
            self.set(t, carry, self.neutral(0), 0)
            self._total(t, start, length, carry, sums)
            self.store_total(t, t.at("%totals", t.mul(number, size)), self.get(t, carry, 0))
        totals = self.task("totals", t, count, chunk)
        t = self.start()
        carry = self.variables(t, 0)
        with t.loop("%high", "%low") as row:
            self.set(t, carry, self.neutral(0), 0)
            with t.loop(chunks) as number:
                at = t.at("%totals", t.mul(t.add(t.mul(row, chunks), number), size))
                own, before = self.load_total(t, at), self.get(t, carry, 0)
                self.store_total(t, at, before)
                after = self.advanced(t, before, own.value, 0)
                if own.error is not None:
                    error = t.emit(f"fadd double {after.error}, {own.error}")
                    after = Carried(after.value, error)
                self.set(t, carry, after, 0)
        prefixes = self.task("prefixes", t, scan.outer, scan.length)
        t = self.start()
        carry, stage = self.variables(t, 0), self._stage(t)
        with t.loop("%high", "%low") as number:
            start, length, _ = self.bounds(t, number)
            before = self.load_total(t, t.at("%totals", t.mul(number, size)))
            self.set(t, carry, before, 0)
            self._run(t, start, length, carry, stage)
        return [totals, prefixes, self.task("chunks", t, count, chunk)], count * size

    # ---- rows side by side
    def _columns_task(self) -> Task:
        t = self.start()
        carries: dict[int, list[list[str]]] = {}  # of blocks of so many columns

        def block_of(start: Integer, widths: list[int]) -> None:
            self._columns(t, start, widths, carries[sum(widths)])

        for widths in self.block_widths():
            carries[sum(widths)] = [self.variables(t, lanes) for lanes in widths]
        return self.task("columns", t, *self.column_blocks(t, block_of))

    def _columns(
        self, t: Text, start: Integer, widths: list[int], carries: list[list[str]]
    ) -> None:
        """Scan neighbouring columns from element `start` on, in vectors of these widths."""
        scan = self.scan
        for lanes, carry in zip(widths, carries, strict=True):
            self.set(t, carry, self.neutral(lanes), lanes)
        with t.loop(scan.length) as step:
            row: Integer = step
            if scan.reverse:
                row = t.emit(f"sub i64 {scan.length - 1}, {step}")
            at = t.mul(t.add(start, t.mul(row, scan.inner)), self.types.bytes)
            read, write = t.at("%in", at), t.at("%out", at)
            for number, (lanes, carry) in enumerate(zip(widths, carries, strict=True)):
                offset = number * self.lanes * self.types.bytes
                one = self.widened(t, self.load(t, t.at(read, offset), lanes), lanes)
                after = self.advanced(t, self.get(t, carry, lanes), one, lanes)
                self.set(t, carry, after, lanes)
                result = after.value
                if after.error is not None:
                    result = t.emit(f"fadd {vector_of('double', lanes)} {result}, {after.error}")
                self.store(t, result, t.at(write, offset), lanes)

    # ---- one contiguous run of elements
    def _stage(self, t: Text) -> str:
        """A place for a block of vectors, where they are staged."""
        return t.emit(f"alloca [{_STAGED} x {t.vector}], align 64") if self.is_staged else ""

    def _run(
        self, t: Text, start: Integer, length: Integer, carry: list[str], stage: str
    ) -> None:
        """Scan `length` elements from element `start`, and leave their total in the variables."""

        def step(place: Integer, size: int) -> None:
            if size > self.lanes:
                self._run_staged(t, place, carry, stage)
                return
            lanes = size if size > 1 else 0
            at = t.mul(place, self.types.bytes)
            local = self.load(t, t.at("%in", at), lanes)
            before = self.get(t, carry, 0)
            last = local
            if lanes:
                local = self._prefixes(t, local)
                lane = 0 if self.scan.reverse else lanes - 1
                of = vector_of(self.types.local, lanes)
                last = t.emit(f"extractelement {of} {local}, i64 {lane}")
            self.store(t, self._on_top(t, before, local, lanes), t.at("%out", at), lanes)
            self.set(t, carry, self.advanced(t, before, self.widened(t, last, 0), 0), 0)

        staged = (_STAGED * self.lanes,) if self.is_staged else ()
        self.walk(t, start, length, (*staged, self.lanes, 1), step)

    def _run_staged(self, t: Text, start: Integer, carry: list[str], stage: str) -> None:
        """The same for a block of vectors: each by itself first, then what came before on top."""
        lanes, size = self.lanes, self.types.bytes
        first = t.mul(start, size)
        with t.loop(_STAGED) as number:
            at = t.mul(number, lanes * size)
            vector = self.load(t, t.at("%in", t.add(first, at)), lanes)
            t.store(t.vector, self._prefixes(t, vector), t.at(stage, at))
        with t.loop(_STAGED) as number:
            if self.scan.reverse:
                number = t.emit(f"sub i64 {_STAGED - 1}, {number}")
            at = t.mul(number, lanes * size)
            read, write = t.at(stage, at), t.at("%out", t.add(first, at))
            before = self.get(t, carry, 0)
            for offset in (0, lanes // 2 * size):
                half = self.load(t, t.at(read, offset), lanes // 2)
                result = self._on_top(t, before, half, lanes // 2)
                self.store(t, result, t.at(write, offset), lanes // 2)
            last = self.load(t, t.at(read, 0 if self.scan.reverse else (lanes - 1) * size), 0)
            self.set(t, carry, self.advanced(t, before, self.widened(t, last, 0), 0), 0)

    def _total(
        self, t: Text, start: Integer, length: Integer, carry: list[str], sums: list[str]
    ) -> None:
        """The same without its results; `sums` are variables to add up vectors in."""
        self.set(t, sums, self.neutral(self.lanes), self.lanes)

        def step(place: Integer, size: int) -> None:
            lanes = size if size > 1 else 0
            one = self.load(t, t.at("%in", t.mul(place, self.types.bytes)), lanes)
            to = sums if lanes else carry
            after = self.advanced(t, self.get(t, to, lanes), self.widened(t, one, lanes), lanes)
            self.set(t, to, after, lanes)

        self.walk(t, start, length, (self.lanes, 1), step)
        for total in (self.get(t, sums, self.lanes).value, self.get(t, sums, self.lanes).error):
            for lane in range(self.lanes if total else 0):
                one = t.emit(f"extractelement {self.wide} {total}, i64 {lane}")
                self.set(t, carry, self.advanced(t, self.get(t, carry, 0), one, 0), 0)

    def _prefixes(self, t: Text, vector: str) -> str:
        """Each lane combined with those on the side that a scan starts at."""
        lanes, of = self.lanes, vector_of(self.types.local, self.lanes)
        neutral = f"splat ({self.types.local} {self.shifted_in(self.types.local)})"
        apart = 1
        while apart < lanes:
            sources = [lane + (apart if self.scan.reverse else -apart) for lane in range(lanes)]
            picks = [source if 0 <= source < lanes else lanes for source in sources]
            mask = ", ".join(f"i32 {pick}" for pick in picks)
            moved = t.emit(f"shufflevector {of} {vector}, {of} {neutral}, <{lanes} x i32> <{mask}>")
            vector = self.combined(t, self.types.local, lanes, moved, vector)
            apart *= 2
        return vector

    def _on_top(self, t: Text, before: Carried, local: str, lanes: int) -> str:
        """What came before, combined with each lane of a vector, or with a scalar."""
        of, wide = self.types.carried, self.widened(t, local, lanes)
        if before.error is not None:
            error = self.splat(t, before.error, lanes)
            wide = t.emit(f"fadd {vector_of(of, lanes)} {error}, {wide}")
        return self.combined(t, of, lanes, self.splat(t, before.value, lanes), wide)

