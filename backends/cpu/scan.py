"""Kernels of scans along an axis: running sums, products, maxima and minima.

- Rows that lie contiguously are scanned vector by vector: log2(lanes) steps of shuffles inside one,
  then what came before on top. A long row is cut into chunks: their totals first, a task each; the
  totals' prefixes; then the chunks, each starting from its prefix.
- Rows that lie side by side are scanned together, a block of columns to a task.

What came before is carried with more digits than the elements have: in f64 for f32, with the
rounding errors of its sum for f64. So each result is rounded about once, however long the row. The
cuts depend on the shape alone, so results don't depend on the number of threads.
Source of the carried error: Knuth, The Art of Computer Programming, volume 2, 4.2.2, theorem B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lamina.backends.cpu.llvm_text import Integer, Text
from lamina.backends.cpu.tasks_text import DECLARATION, pack, run, unpack
from lamina.passes.stablehlo.scan_order import Scan, identity

_CHUNK_BYTES = 65536  # of a long row: what stays in the second-level cache between its two readings
_TASK_ELEMENTS = 16384  # the least work worth a task of its own
_COLUMNS = 4  # vectors of a block of columns

_LLVM = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double", "i1": "i8"}
_FLOAT_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8}


@dataclass(frozen=True)
class _Types:
    """Element types: in memory, inside a vector, and of what is carried from vector to vector."""

    memory: str
    local: str
    carried: str
    signed: bool

    @classmethod
    def of(cls, scan: Scan) -> _Types:
        memory = _LLVM.get(scan.element, scan.element.removeprefix("u"))
        if memory not in _FLOAT_BYTES:
            signed = scan.element != "i1" and not scan.element.startswith("u")
            return cls(memory, memory, memory, signed)
        if memory in ("half", "bfloat"):
            return cls(memory, "float", "float", True)
        if scan.combiner in ("maximum", "minimum"):
            return cls(memory, memory, memory, True)
        # A vector of f32 does not leave the range of f64, so zeros stay zeros under products.
        return cls(memory, memory if scan.combiner == "add" else "double", "double", True)

    @property
    def is_float(self) -> bool:
        return self.memory in _FLOAT_BYTES

    @property
    def bytes(self) -> int:
        return _bytes(self.memory)


def _bytes(of: str) -> int:
    return _FLOAT_BYTES.get(of) or int(of[1:]) // 8


def _of(element: str, lanes: int) -> str:
    """The LLVM type of so many, or of one scalar for none."""
    return f"<{lanes} x {element}>" if lanes else element


@dataclass(frozen=True)
class _Carried:
    """What came before, and in sums of f64 the error of it."""

    value: str
    error: str | None = None


def scan_kernel(scan: Scan, symbol: str, vector_bits: int) -> tuple[str, int]:
    """LLVM IR of `void @symbol(ptr operand, ptr initial, ptr result, ptr scratch)`, and the bytes of
    scratch it needs."""
    return _Writer(scan, vector_bits).kernel(symbol)


class _Writer:
    """Writes one kernel."""

    def __init__(self, scan: Scan, vector_bits: int) -> None:
        self.scan, self.bits = scan, vector_bits
        self.types = _Types.of(scan)
        self.lanes = max(2, vector_bits // 8 // _bytes(self.types.local))
        self.compensated = scan.combiner == "add" and scan.element == "f64"
        self.intrinsics: set[str] = set()
        self.wide = _of(self.types.carried, self.lanes)

    # ---- the kernel
    def kernel(self, symbol: str) -> tuple[str, int]:
        scan = self.scan
        chunk = _CHUNK_BYTES // self.types.bytes
        if scan.inner > 1:
            tasks, scratch = [self._columns_task()], 0
        elif scan.length >= 2 * chunk and scan.outer < 16:
            tasks, scratch = self._chunk_tasks(chunk)
        else:
            tasks, scratch = [self._rows_task()], 0
        bodies, calls = zip(*tasks)
        declared = [DECLARATION, *sorted(self.intrinsics)]
        attributes = f'attributes #0 = {{ "prefer-vector-width"="{self.bits}" }}'
        steps = [*pack(("%operand", "%result", "%scratch")), *calls]
        entry = (
            f"define void @{symbol}(ptr %operand, ptr %initial, ptr %result, ptr %scratch) #0 {{\n"
            + "\n".join(steps)
            + "\n  ret void\n}"
        )
        return "\n".join([*declared, *bodies, entry, attributes]) + "\n", scratch

    def _task(self, name: str, text: Text) -> str:
        body = "\n".join(text.lines)
        return (
            f"define internal void @{name}(ptr %ctx, i64 %low, i64 %high) #0 {{\nentry:\n{body}\n"
            "  ret void\n}"
        )

    def _start(self) -> Text:
        t = Text("float", self.lanes)
        t.lines += unpack(("%in", "%out", "%totals"))
        return t

    @staticmethod
    def _call(name: str, count: int, elements: int) -> str:
        grain = max(1, _TASK_ELEMENTS // elements)
        return run(name, count, grain)

    # ---- rows, each whole
    def _rows_task(self) -> tuple[str, str]:
        scan = self.scan
        t = self._start()
        carry = self._variables(t, 0)
        with t.loop("%high", "%low") as row:
            self._set(t, carry, self._neutral(0), 0)
            start = t.mul(row, scan.length)
            self._run(t, start, scan.length, carry)
        return self._task("rows", t), self._call("rows", scan.outer, scan.length)

    # ---- long rows, in chunks
    def _chunk_tasks(self, chunk: int) -> tuple[list[tuple[str, str]], int]:
        """Totals of chunks, their prefixes, and the chunks."""
        scan, size = self.scan, 8 * (1 + self.compensated)
        chunks = -(-scan.length // chunk)
        count = scan.outer * chunks

        def bounds(t: Text, number: Integer) -> tuple[Integer, Integer]:
            row, place = t.divmod(number, chunks)
            low = t.mul(place, chunk)
            length = t.minimum(chunk, t.emit(f"sub i64 {scan.length}, {low}"))
            self.intrinsics.add("declare i64 @llvm.smin.i64(i64, i64)")
            if scan.reverse:  # chunks are counted from the end
                low = t.emit(f"sub i64 {scan.length}, {t.add(low, length)}")
            return t.add(t.mul(row, scan.length), low), length

        t = self._start()
        carry = self._variables(t, 0)
        sums = self._variables(t, self.lanes)
        with t.loop("%high", "%low") as number:
            start, length = bounds(t, number)
            self._set(t, carry, self._neutral(0), 0)
            self._total(t, start, length, carry, sums)
            self._store_total(t, t.at("%totals", t.mul(number, size)), self._get(t, carry, 0))
        totals = self._task("totals", t)
        t = self._start()
        carry = self._variables(t, 0)
        with t.loop("%high", "%low") as row:
            self._set(t, carry, self._neutral(0), 0)
            with t.loop(chunks) as number:
                at = t.at("%totals", t.mul(t.add(t.mul(row, chunks), number), size))
                own, before = self._load_total(t, at), self._get(t, carry, 0)
                self._store_total(t, at, before)
                after = self._advanced(t, before, own.value, 0)
                if own.error is not None:
                    error = t.emit(f"fadd double {after.error}, {own.error}")
                    after = _Carried(after.value, error)
                self._set(t, carry, after, 0)
        prefixes = self._task("prefixes", t)
        t = self._start()
        carry = self._variables(t, 0)
        with t.loop("%high", "%low") as number:
            start, length = bounds(t, number)
            before = self._load_total(t, t.at("%totals", t.mul(number, size)))
            self._set(t, carry, before, 0)
            self._run(t, start, length, carry)
        return [
            (totals, self._call("totals", count, chunk)),
            (prefixes, self._call("prefixes", scan.outer, scan.length)),
            (self._task("chunks", t), self._call("chunks", count, chunk)),
        ], count * size

    def _store_total(self, t: Text, at: str, total: _Carried) -> None:
        t.store(self.types.carried, total.value, at, 8)
        if total.error is not None:
            t.store("double", total.error, t.at(at, 8), 8)

    def _load_total(self, t: Text, at: str) -> _Carried:
        value = t.load(self.types.carried, at, 8)
        return _Carried(value, t.load("double", t.at(at, 8), 8) if self.compensated else None)

    # ---- rows side by side
    def _columns_task(self) -> tuple[str, str]:
        scan, lanes = self.scan, self.lanes
        width = _COLUMNS * lanes
        blocks, rest = divmod(scan.inner, width)
        partial = [lanes] * (rest // lanes) + [rest % lanes] * (rest % lanes > 0)
        t = self._start()
        full = [self._variables(t, lanes) for _ in range(_COLUMNS)] if blocks else []
        last = [self._variables(t, count) for count in partial]
        with t.loop("%high", "%low") as number:
            row, block = t.divmod(number, blocks + (rest > 0))
            start = t.add(t.mul(row, scan.length * scan.inner), t.mul(block, width))
            if not rest or not blocks:
                self._columns(t, start, [lanes] * _COLUMNS if blocks else partial, full or last)
            else:
                is_full = t.emit(f"icmp slt i64 {block}, {blocks}")
                with t.branches(is_full) as (then, other, after):
                    t.begin(then)
                    self._columns(t, start, [lanes] * _COLUMNS, full)
                    t.goto(after)
                    t.begin(other)
                    self._columns(t, start, partial, last)
                    t.goto(after)
        count = scan.outer * (blocks + (rest > 0))
        elements = scan.length * min(width, scan.inner)
        return self._task("columns", t), self._call("columns", count, elements)

    def _columns(
        self, t: Text, start: Integer, widths: list[int], carries: list[list[str]]
    ) -> None:
        """Scan neighbouring columns from element `start` on, in vectors of these widths."""
        scan = self.scan
        for lanes, carry in zip(widths, carries, strict=True):
            self._set(t, carry, self._neutral(lanes), lanes)
        with t.loop(scan.length) as step:
            row: Integer = step
            if scan.reverse:
                row = t.emit(f"sub i64 {scan.length - 1}, {step}")
            at = t.mul(t.add(start, t.mul(row, scan.inner)), self.types.bytes)
            read, write = t.at("%in", at), t.at("%out", at)
            for number, (lanes, carry) in enumerate(zip(widths, carries, strict=True)):
                offset = number * self.lanes * self.types.bytes
                one = self._widened(t, self._load(t, t.at(read, offset), lanes), lanes)
                after = self._advanced(t, self._get(t, carry, lanes), one, lanes)
                self._set(t, carry, after, lanes)
                result = after.value
                if after.error is not None:
                    result = t.emit(f"fadd {_of('double', lanes)} {result}, {after.error}")
                self._store(t, result, t.at(write, offset), lanes)

    # ---- one contiguous run of elements
    def _run(self, t: Text, start: Integer, length: Integer, carry: list[str]) -> None:
        """Scan `length` elements from element `start`, and leave their total in the variables."""

        def step(place: Integer, lanes: int) -> None:
            at = t.mul(place, self.types.bytes)
            local = self._load(t, t.at("%in", at), lanes)
            before = self._get(t, carry, 0)
            last = local
            if lanes:
                local = self._prefixes(t, local)
                lane = 0 if self.scan.reverse else lanes - 1
                of = _of(self.types.local, lanes)
                last = t.emit(f"extractelement {of} {local}, i64 {lane}")
            self._store(t, self._on_top(t, before, local, lanes), t.at("%out", at), lanes)
            self._set(t, carry, self._advanced(t, before, self._widened(t, last, 0), 0), 0)

        self._walk(t, start, length, step)

    def _total(
        self, t: Text, start: Integer, length: Integer, carry: list[str], sums: list[str]
    ) -> None:
        """The same without its results; `sums` are variables to add up vectors in."""
        self._set(t, sums, self._neutral(self.lanes), self.lanes)

        def step(place: Integer, lanes: int) -> None:
            one = self._load(t, t.at("%in", t.mul(place, self.types.bytes)), lanes)
            to = sums if lanes else carry
            after = self._advanced(t, self._get(t, to, lanes), self._widened(t, one, lanes), lanes)
            self._set(t, to, after, lanes)

        self._walk(t, start, length, step)
        for total in (self._get(t, sums, self.lanes).value, self._get(t, sums, self.lanes).error):
            for lane in range(self.lanes if total else 0):
                one = t.emit(f"extractelement {self.wide} {total}, i64 {lane}")
                self._set(t, carry, self._advanced(t, self._get(t, carry, 0), one, 0), 0)

    def _walk(
        self, t: Text, start: Integer, length: Integer, step: Callable[[Integer, int], None]
    ) -> None:
        """Vectors, then what is left one by one, from the side that a scan starts at."""
        lanes, reverse = self.lanes, self.scan.reverse
        count, left = t.divmod(length, lanes)
        whole = t.mul(count, lanes)
        end = t.add(start, length)
        for size, low, high in ((lanes, 0, whole), (0, whole, length)):
            if low == high:
                continue
            with t.loop(high, low, size or 1) as place:
                if reverse:
                    place = t.emit(f"sub i64 {end}, {t.add(place, size or 1)}")
                else:
                    place = t.add(start, place)
                step(place, size)

    def _prefixes(self, t: Text, vector: str) -> str:
        """Each lane combined with those on the side that a scan starts at."""
        lanes, of = self.lanes, _of(self.types.local, self.lanes)
        neutral = f"splat ({self.types.local} {self._constant(self.types.local)})"
        apart = 1
        while apart < lanes:
            sources = [lane + (apart if self.scan.reverse else -apart) for lane in range(lanes)]
            picks = [source if 0 <= source < lanes else lanes for source in sources]
            mask = ", ".join(f"i32 {pick}" for pick in picks)
            moved = t.emit(f"shufflevector {of} {vector}, {of} {neutral}, <{lanes} x i32> <{mask}>")
            vector = self._combined(t, self.types.local, lanes, moved, vector)
            apart *= 2
        return vector

    def _on_top(self, t: Text, before: _Carried, local: str, lanes: int) -> str:
        """What came before, combined with each lane of a vector, or with a scalar."""
        of, wide = self.types.carried, self._widened(t, local, lanes)
        if before.error is not None:
            error = self._splat(t, before.error, lanes)
            wide = t.emit(f"fadd {_of(of, lanes)} {error}, {wide}")
        return self._combined(t, of, lanes, self._splat(t, before.value, lanes), wide)

    # ---- what is carried
    def _variables(self, t: Text, lanes: int) -> list[str]:
        """Places for what is carried, of which LLVM makes registers."""
        of = _of(self.types.carried, lanes)
        return [t.emit(f"alloca {of}") for _ in range(1 + self.compensated)]

    def _set(self, t: Text, variables: list[str], carried: _Carried, lanes: int) -> None:
        for name, value in zip(variables, (carried.value, carried.error), strict=False):
            assert value is not None
            t.store(_of(self.types.carried, lanes), value, name, 8)

    def _get(self, t: Text, variables: list[str], lanes: int) -> _Carried:
        of = _of(self.types.carried, lanes)
        return _Carried(*(t.load(of, name, 8) for name in variables))

    def _neutral(self, lanes: int) -> _Carried:
        of = self.types.carried
        value = self._constant(of)
        return _Carried(
            f"splat ({of} {value})" if lanes else value,
            "zeroinitializer" if self.compensated else None,
        )

    def _constant(self, of: str) -> str:
        """The combiner's identity as an LLVM constant of a type."""
        combiner = self.scan.combiner
        if of in _FLOAT_BYTES:
            return Text("double", 1).number(float(identity(combiner, np.dtype(np.float64))))
        kind = "i" if self.types.signed else "u"
        return str(int(identity(combiner, np.dtype(f"{kind}{_bytes(of)}"))))

    def _advanced(self, t: Text, before: _Carried, total: str, lanes: int) -> _Carried:
        """What came before, and `total` of the carried type after it."""
        value = self._combined(t, self.types.carried, lanes, before.value, total)
        if before.error is None:
            return _Carried(value)
        of = _of("double", lanes)
        from_total = t.emit(f"fsub {of} {value}, {before.value}")
        from_before = t.emit(f"fsub {of} {value}, {from_total}")
        lost = t.emit(f"fsub {of} {total}, {from_total}")
        lost_before = t.emit(f"fsub {of} {before.value}, {from_before}")
        lost = t.emit(f"fadd {of} {lost_before}, {lost}")
        error = t.emit(f"fadd {of} {before.error}, {lost}")
        undefined = t.emit(f"fcmp uno {of} {error}, zeroinitializer")  # infinities lose nothing
        kept = t.emit(
            f"select {_of('i1', lanes)} {undefined}, {of} zeroinitializer, {of} {error}"
        )
        return _Carried(value, kept)

    # ---- values
    def _combined(self, t: Text, element: str, lanes: int, a: str, b: str) -> str:
        of, combiner = _of(element, lanes), self.scan.combiner
        is_float = element in _FLOAT_BYTES
        if combiner in ("add", "multiply"):
            name = ("f" if is_float else "") + combiner[:3]
            return t.emit(f"{name} {of} {a}, {b}")
        name = combiner if is_float else ("s" if self.types.signed else "u") + combiner[:3]
        suffix = (f"v{lanes}" if lanes else "") + (
            f"f{8 * _bytes(element)}" if is_float else element
        )
        self.intrinsics.add(f"declare {of} @llvm.{name}.{suffix}({of}, {of})")
        return t.emit(f"call {of} @llvm.{name}.{suffix}({of} {a}, {of} {b})")

    def _load(self, t: Text, at: str, lanes: int) -> str:
        """Elements as the local type."""
        value = t.load(_of(self.types.memory, lanes), at, self.types.bytes)
        return self._extended(t, value, self.types.memory, self.types.local, lanes)

    def _widened(self, t: Text, value: str, lanes: int) -> str:
        """Local values as the carried type."""
        return self._extended(t, value, self.types.local, self.types.carried, lanes)

    @staticmethod
    def _extended(t: Text, value: str, of: str, to: str, lanes: int) -> str:
        if of == to:
            return value
        return t.emit(f"fpext {_of(of, lanes)} {value} to {_of(to, lanes)}")

    def _store(self, t: Text, value: str, at: str, lanes: int) -> None:
        """Values of the carried type as elements."""
        of, to = self.types.carried, self.types.memory
        if of != to:
            value = t.emit(f"fptrunc {_of(of, lanes)} {value} to {_of(to, lanes)}")
        t.store(_of(to, lanes), value, at, self.types.bytes)

    def _splat(self, t: Text, scalar: str, lanes: int) -> str:
        if not lanes:
            return scalar
        of = _of(self.types.carried, lanes)
        first = t.emit(f"insertelement {of} poison, {self.types.carried} {scalar}, i64 0")
        return t.emit(
            f"shufflevector {of} {first}, {of} poison, <{lanes} x i32> zeroinitializer"
        )
