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

from lamina.backends.cpu.llvm_text import Integer, Text
from lamina.backends.cpu.scan_tasks import ScanTasks, Task
from lamina.backends.cpu.scan_values import (
    FLOATS,
    bytes_of,
    converted,
    finite_or_none,
    two_sum,
    vector_of,
)
from lamina.passes.stablehlo.scan_order import Scan

_PAIR = 16  # bytes


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


class _Writer(ScanTasks):
    """Writes the tasks of one kernel."""

    def __init__(self, scan: Scan, vector_bits: int) -> None:
        self.memory = FLOATS[scan.element]
        self.bytes = bytes_of(self.memory)
        self.local = "double" if self.bytes == 8 else "float"
        lanes = max(2, vector_bits // 8 // bytes_of(self.local))
        self.compensated = self.bytes == 8
        super().__init__(scan, vector_bits, lanes, ("%a", "%b", "%out", "%pairs"), self.bytes)

    # ---- rows, each whole
    def rows_task(self) -> Task:
        """Rows one after the other."""
        scan, t = self.scan, self.start()
        before = self._variables(t, 0)
        with t.loop("%high", "%low") as row:
            first, rest = self._parted(t, t.mul(row, scan.length), scan.length)
            self._put(t, self._begun(t, before, self._wide(t, "%b", first, 0), 0), "double", first, 0)
            self._run(t, rest, t.difference(scan.length, 1), before)
        return self.task("rows", t, scan.outer, scan.length)

    # ---- long rows, in chunks
    def chunk_tasks(self) -> tuple[list[Task], int]:
        """Pairs of chunks, what comes before each, and the chunks."""
        scan, chunk = self.scan, self.chunk
        chunks = -(-scan.length // chunk)
        count = scan.outer * chunks

        t = self.start()
        factor, total = t.emit("alloca double"), self._variables(t, 0)
        with t.loop("%high", "%low") as number:
            start, length, _ = self.bounds(t, number)
            pair = self._pair_of(t, start, length, factor, total)
            for value, offset in zip(pair, (0, 8), strict=True):
                t.store("double", value, t.at("%pairs", t.add(t.mul(number, _PAIR), offset)), 8)
        pairs = self.task("pairs", t, count, chunk)

        t = self.start()
        before = self._variables(t, 0)
        with t.loop("%high", "%low") as row:
            at = t.at("%pairs", t.mul(row, chunks * _PAIR))
            self._begun(t, before, t.load("double", t.at(at, 8), 8), 0)
            with t.loop(chunks, 1) as number:
                at = t.at("%pairs", t.mul(t.add(t.mul(row, chunks), number), _PAIR))
                a, b = (t.load("double", t.at(at, offset), 8) for offset in (0, 8))
                t.store("double", self._now(t, before, 0), t.at(at, 8), 8)
                self._advanced(t, before, a, b, 0)
        seeds = self.task("seeds", t, scan.outer, scan.length)

        t = self.start()
        before = self._variables(t, 0)
        with t.loop("%high", "%low") as number:
            start, length, place = self.bounds(t, number)
            seed = t.load("double", t.at("%pairs", t.add(t.mul(number, _PAIR), 8)), 8)
            first, rest = self._parted(t, start, length)
            a, b = self._wide(t, "%a", first, 0), self._wide(t, "%b", first, 0)
            is_first = t.emit(f"icmp eq i64 {place}, 0")
            after = self._applied(t, "double", 0, a, seed, b)
            after = t.emit(f"select i1 {is_first}, double {b}, double {after}")
            self._put(t, self._begun(t, before, after, 0), "double", first, 0)
            self._run(t, rest, t.difference(length, 1), before)
        return [pairs, seeds, self.task("chunks", t, count, chunk)], count * _PAIR

    # ---- one contiguous run of elements
    def _parted(self, t: Text, start: Integer, length: Integer) -> tuple[Integer, Integer]:
        """A run's first element, and where the lowest of the others lies."""
        if self.scan.reverse:
            return t.add(start, t.difference(length, 1)), start
        return start, t.add(start, 1)

    def _run(self, t: Text, start: Integer, length: Integer, before: list[str]) -> None:
        """Do `length` elements from element `start`; the variables hold what came before."""

        def step(place: Integer, size: int) -> None:
            if size == 1:
                a, b = self._wide(t, "%a", place, 0), self._wide(t, "%b", place, 0)
                self._put(t, self._advanced(t, before, a, b, 0), "double", place, 0)
                return
            a, b = self._prefixes(t, place)
            h = self._splat(t, converted(t, self._now(t, before, 0), "double", self.local, 0))
            self._put(t, self._applied(t, self.local, size, a, h, b), self.local, place, size)
            self._advanced(t, before, self._last(t, a), self._last(t, b), 0)

        self.walk(t, start, length, (self.lanes, 1), step)

    def _pair_of(
        self, t: Text, start: Integer, length: Integer, factor: str, total: list[str]
    ) -> tuple[str, str]:
        """The pair of a run, by way of these variables."""
        first, rest = self._parted(t, start, length)
        t.store("double", self._wide(t, "%a", first, 0), factor, 8)
        self._begun(t, total, self._wide(t, "%b", first, 0), 0)

        def step(place: Integer, size: int) -> None:
            if size == 1:
                a, b = self._wide(t, "%a", place, 0), self._wide(t, "%b", place, 0)
            else:
                a, b = (self._last(t, v) for v in self._prefixes(t, place))
            before = t.load("double", factor, 8)
            t.store("double", t.emit(f"fmul double {before}, {a}"), factor, 8)
            self._advanced(t, total, a, b, 0)

        self.walk(t, rest, t.difference(length, 1), (self.lanes, 1), step)
        return t.load("double", factor, 8), self._now(t, total, 0)

    def _prefixes(self, t: Text, place: Integer) -> tuple[str, str]:
        """The pairs of the runs of a vector's elements that end at each lane."""
        lanes, of = self.lanes, vector_of(self.local, self.lanes)
        a, b = self._local(t, "%a", place, lanes), self._local(t, "%b", place, lanes)
        one = f"splat ({self.local} 1.0)"
        apart = 1
        while apart < lanes:
            sources = [lane + (apart if self.scan.reverse else -apart) for lane in range(lanes)]
            moves = [0 <= source < lanes for source in sources]
            picks = [source if moved else lanes for source, moved in zip(sources, moves, strict=True)]
            mask = ", ".join(f"i32 {pick}" for pick in picks)
            moved_a, moved_b = (
                t.emit(f"shufflevector {of} {v}, {of} {one}, <{lanes} x i32> <{mask}>") for v in (a, b)
            )
            after = self._applied(t, self.local, lanes, a, moved_b, b)
            chosen = ", ".join(f"i1 {str(moved).lower()}" for moved in moves)
            b = t.emit(f"select <{lanes} x i1> <{chosen}>, {of} {after}, {of} {b}")
            a = t.emit(f"fmul {of} {moved_a}, {a}")
            apart *= 2
        return a, b

    def _last(self, t: Text, runs: str) -> str:
        """What is of a whole vector, in f64."""
        lane = 0 if self.scan.reverse else self.lanes - 1
        last = t.emit(f"extractelement {vector_of(self.local, self.lanes)} {runs}, i64 {lane}")
        return converted(t, last, self.local, "double", 0)

    # ---- rows side by side
    def columns_task(self) -> Task:
        """Blocks of neighbouring columns."""
        t = self.start()
        carried = {
            sum(widths): [self._variables(t, lanes) for lanes in widths]
            for widths in self.block_widths()
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
                b = self._wide(t, "%b", place, lanes)
                if is_first:
                    value = self._begun(t, before, b, lanes)
                else:
                    value = self._advanced(t, before, self._wide(t, "%a", place, lanes), b, lanes)
                self._put(t, value, "double", place, lanes)

        row(0, True)
        with t.loop(scan.length, 1) as number:
            row(number, False)

    # ---- what came before
    def _variables(self, t: Text, lanes: int) -> list[str]:
        """Places for it, of which LLVM makes registers: the value, and the error of its sums."""
        of = vector_of("double", lanes)
        return [t.emit(f"alloca {of}") for _ in range(1 + self.compensated)]

    def _begun(self, t: Text, variables: list[str], value: str, lanes: int) -> str:
        """It is this value."""
        of = vector_of("double", lanes)
        for variable, now in zip(variables, (value, "zeroinitializer" if lanes else "0.0")):
            t.store(of, now, variable, 8)
        return value

    def _now(self, t: Text, variables: list[str], lanes: int) -> str:
        of = vector_of("double", lanes)
        parts = [t.load(of, variable, 8) for variable in variables]
        return t.emit(f"fadd {of} {parts[0]}, {parts[1]}") if self.compensated else parts[0]

    def _advanced(self, t: Text, variables: list[str], a: str, b: str, lanes: int) -> str:
        """It times a, and b on top; what it is then."""
        of = vector_of("double", lanes)
        h = t.load(of, variables[0], 8)
        if not self.compensated:
            after = self._applied(t, "double", lanes, a, h, b)
            t.store(of, after, variables[0], 8)
            return after
        before = t.emit(f"fmul {of} {a}, {h}")
        after, lost = two_sum(t, before, b, lanes)
        error = self._applied(t, "double", lanes, a, t.load(of, variables[1], 8), lost)
        t.store(of, after, variables[0], 8)
        t.store(of, finite_or_none(t, error, lanes), variables[1], 8)
        return self._now(t, variables, lanes)

    # ---- values
    def _applied(self, t: Text, element: str, lanes: int, a: str, h: str, b: str) -> str:
        """a h + b."""
        of = vector_of(element, lanes)
        suffix = (f"v{lanes}" if lanes else "") + f"f{8 * bytes_of(element)}"
        self.intrinsics.add(f"declare {of} @llvm.fmuladd.{suffix}({of}, {of}, {of})")
        return t.emit(f"call {of} @llvm.fmuladd.{suffix}({of} {a}, {of} {h}, {of} {b})")

    def _local(self, t: Text, base: str, place: Integer, lanes: int) -> str:
        """Elements as the local type."""
        at = t.at(base, t.mul(place, self.bytes))
        value = t.load(vector_of(self.memory, lanes), at, self.bytes)
        return converted(t, value, self.memory, self.local, lanes)

    def _wide(self, t: Text, base: str, place: Integer, lanes: int) -> str:
        """The same in f64."""
        return converted(t, self._local(t, base, place, lanes), self.local, "double", lanes)

    def _put(self, t: Text, value: str, of: str, place: Integer, lanes: int) -> None:
        """Write elements of the result, given in a type."""
        at = t.at("%out", t.mul(place, self.bytes))
        narrow = converted(t, value, of, self.memory, lanes)
        t.store(vector_of(self.memory, lanes), narrow, at, self.bytes)

    def _splat(self, t: Text, scalar: str) -> str:
        of = vector_of(self.local, self.lanes)
        first = t.emit(f"insertelement {of} poison, {self.local} {scalar}, i64 0")
        return t.emit(f"shufflevector {of} {first}, {of} poison, <{self.lanes} x i32> zeroinitializer")
