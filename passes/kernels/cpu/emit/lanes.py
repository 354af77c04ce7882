"""LLVM IR of arithmetic on numbers, real or complex, of which every vector lane holds one of its
own; on the stack, matrices of such numbers.

What is written for small matrices is unrolled, so that LLVM keeps them in registers; else it is
loops, and where lanes differ in the row they want, gathers and scatters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lamina.passes.kernels.cpu.emit.llvm_text import Integer, Text
from lamina.records import Record

Number = tuple[str, ...]
"""A vector for each part: one of real numbers, two of complex ones."""


class Matrix(Record):
    """Numbers on the stack: number (i, j) is row_step * i + column_step * j rows of vectors behind
    the first, and conjugated where that is said."""

    buffer: str
    rows: int
    columns: int
    row_step: int
    column_step: int
    conjugated: bool = False

    @property
    def transposed(self) -> Matrix:
        """The same numbers, mirrored."""
        return replace(
            self, rows=self.columns, columns=self.rows,
            row_step=self.column_step, column_step=self.row_step,
        )  # fmt: skip

    @property
    def adjoint(self) -> Matrix:
        """Mirrored and conjugated."""
        return replace(self.transposed, conjugated=not self.conjugated)


class Lanes(Text):
    """A function's body, as Text, with a stack. `parts` is 2 for complex numbers."""

    def __init__(self, element: str, lanes: int, parts: int, unroll: bool) -> None:
        super().__init__(element, lanes)
        self.parts, self.unroll = parts, unroll
        self.mask, self.ints = f"<{lanes} x i1>", f"<{lanes} x i32>"

    @property
    def row_bytes(self) -> int:
        """Of a number of all lanes."""
        return self.parts * self.lanes * self.bytes

    # ---- places
    def matrix(self, rows: int, columns: int) -> Matrix:
        """A new one, row by row."""
        return Matrix(self.allocate(rows * columns * self.row_bytes), rows, columns, columns, 1)

    def each(self, start: Integer, stop: Integer, body: Callable[[Integer], None]) -> None:
        """body(start), body(start + 1), ... below stop."""
        if isinstance(start, int) and isinstance(stop, int):
            if self.unroll or stop - start < 2:
                for number in range(start, stop):
                    body(number)
                return
        with self.loop(stop, start) as i:
            body(i)

    def each_of(self, matrix: Matrix, body: Callable[[Integer, Integer], None]) -> None:
        """body(i, j) for each number of a matrix."""
        self.each(
            0, matrix.rows, lambda i: self.each(0, matrix.columns, lambda j: body(i, j))
        )  # fmt: skip

    def place(self, m: Matrix, i: Integer, j: Integer) -> str:
        """The address of a number."""
        index = self.add(self.mul(i, m.row_step), self.mul(j, m.column_step))
        return self.at(m.buffer, self.mul(index, self.row_bytes))

    def get(self, m: Matrix, i: Integer, j: Integer) -> Number:
        """A number of a matrix."""
        place = self.place(m, i, j)
        step = self.lanes * self.bytes
        parts = [self.load(self.vector, self.at(place, n * step), step) for n in range(self.parts)]
        return self.conjugate(tuple(parts)) if m.conjugated else tuple(parts)

    def put(self, value: Number, m: Matrix, i: Integer, j: Integer) -> None:
        """Store a number."""
        place = self.place(m, i, j)
        value = self.conjugate(value) if m.conjugated else value
        step = self.lanes * self.bytes
        for n, part in enumerate(value):
            self.store(self.vector, part, self.at(place, n * step), step)

    def copy(self, source: Matrix, target: Matrix) -> None:
        """Number by number."""
        self.each_of(target, lambda i, j: self.put(self.get(source, i, j), target, i, j))

    # ---- a row for each lane
    def get_row(self, m: Matrix, rows: str, j: Integer) -> Number:
        """Numbers of column j, from the row that each lane says."""
        places = self._places(m, rows, j)
        kind = f"v{self.lanes}{'f32' if self.bytes == 4 else 'f64'}"
        parts = [
            self.emit(
                f"call {self.vector} @llvm.masked.gather.{kind}.v{self.lanes}p0(<{self.lanes} x ptr> "
                f"align {self.bytes} {place}, {self.mask} splat (i1 true), {self.vector} poison)"
            )
            for place in places
        ]
        return self.conjugate(tuple(parts)) if m.conjugated else tuple(parts)

    def put_row(self, value: Number, m: Matrix, rows: str, j: Integer) -> None:
        """The inverse of `get_row`."""
        kind = f"v{self.lanes}{'f32' if self.bytes == 4 else 'f64'}"
        value = self.conjugate(value) if m.conjugated else value
        for part, place in zip(value, self._places(m, rows, j)):
            self.do(
                f"call void @llvm.masked.scatter.{kind}.v{self.lanes}p0({self.vector} {part}, "
                f"<{self.lanes} x ptr> align {self.bytes} {place}, {self.mask} splat (i1 true))"
            )

    def _places(self, m: Matrix, rows: str, j: Integer) -> list[str]:
        width = self.parts * self.lanes
        index = self.int_op("mul", rows, self.int_splat(m.row_step * width))
        index = self.int_op("add", index, self.lane_numbers)
        base = self.at(m.buffer, self.mul(j, m.column_step * self.row_bytes))
        found = []
        for part in range(self.parts):
            start = self.at(base, part * self.lanes * self.bytes)
            found.append(
                self.emit(f"getelementptr {self.element}, ptr {start}, {self.ints} {index}")
            )
        return found

    # ---- integers of all lanes
    @property
    def lane_numbers(self) -> str:
        """0, 1, 2, ..."""
        return f"<{', '.join(f'i32 {lane}' for lane in range(self.lanes))}>"

    def int_splat(self, value: Integer) -> str:
        """The same in all lanes."""
        if isinstance(value, int):
            return f"splat (i32 {value})"
        short = self.emit(f"trunc i64 {value} to i32")
        first = self.emit(f"insertelement {self.ints} poison, i32 {short}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.emit(f"shufflevector {self.ints} {first}, {self.ints} poison, {zeros}")

    def int_op(self, name: str, a: str, b: str) -> str:
        """add or mul, for instance."""
        return self.emit(f"{name} {self.ints} {a}, {b}")

    def int_equal(self, a: str, b: str) -> str:
        """A mask."""
        return self.emit(f"icmp eq {self.ints} {a}, {b}")

    def get_int(self, buffer: str, i: Integer) -> str:
        """Entry i of an array of integers."""
        return self.load(self.ints, self.at(buffer, self.mul(i, 4 * self.lanes)), 4 * self.lanes)

    def put_int(self, value: str, buffer: str, i: Integer) -> None:
        """The inverse of `get_int`."""
        self.store(self.ints, value, self.at(buffer, self.mul(i, 4 * self.lanes)), 4 * self.lanes)

    def int_places(self, buffer: str, entries: str) -> str:
        """Addresses of the entry of an array of integers that each lane says."""
        index = self.int_op("mul", entries, self.int_splat(self.lanes))
        index = self.int_op("add", index, self.lane_numbers)
        return self.emit(f"getelementptr i32, ptr {buffer}, {self.ints} {index}")

    def get_int_row(self, buffer: str, entries: str) -> str:
        """The entry of an array of integers that each lane says."""
        return self.emit(
            f"call {self.ints} @llvm.masked.gather.v{self.lanes}i32.v{self.lanes}p0("
            f"<{self.lanes} x ptr> align 4 {self.int_places(buffer, entries)}, "
            f"{self.mask} splat (i1 true), {self.ints} poison)"
        )

    def put_int_row(self, value: str, buffer: str, entries: str) -> None:
        """The inverse of `get_int_row`."""
        self.do(
            f"call void @llvm.masked.scatter.v{self.lanes}i32.v{self.lanes}p0({self.ints} {value}, "
            f"<{self.lanes} x ptr> align 4 {self.int_places(buffer, entries)}, "
            f"{self.mask} splat (i1 true))"
        )

    # ---- numbers
    def constant(self, value: float) -> Number:
        """A real number in all lanes."""
        return (self.splat(value), *[self.splat(0.0)] * (self.parts - 1))

    def plus(self, a: Number, b: Number) -> Number:
        """a + b."""
        return tuple(self.fadd(x, y) for x, y in zip(a, b))

    def minus(self, a: Number, b: Number) -> Number:
        """a - b."""
        return tuple(self.fsub(x, y) for x, y in zip(a, b))

    def times(self, a: Number, b: Number) -> Number:
        """a * b; either may be real."""
        if len(a) == 1 or len(b) == 1:
            (factor,), many = (a, b) if len(a) == 1 else (b, a)
            return tuple(self.fmul(factor, part) for part in many)
        (ar, ai), (br, bi) = a, b
        return (
            self.fsub(self.fmul(ar, br), self.fmul(ai, bi)),
            self.fadd(self.fmul(ar, bi), self.fmul(ai, br)),
        )

    def minus_times(self, a: Number, b: Number, c: Number) -> Number:
        """a - b * c, in as many multiply-adds as there are products."""
        if len(b) == 1:
            return self.minus(a, self.times(b, c))
        (br, bi), (cr, ci) = b, c
        return (
            self.fadd(self.fsub(a[0], self.fmul(br, cr)), self.fmul(bi, ci)),
            self.fsub(self.fsub(a[1], self.fmul(br, ci)), self.fmul(bi, cr)),
        )

    def conjugate(self, a: Number) -> Number:
        """The complex conjugate."""
        return a if len(a) == 1 else (a[0], self.fneg(a[1]))

    def fdiv(self, a: str, b: str) -> str:
        """a / b of real numbers."""
        return self.emit(f"fdiv {self.vector} {a}, {b}")

    def divisor(self, b: Number) -> Number:
        """What `over` divides by: b itself, or the inverse of a complex number (Smith's)."""
        if len(b) == 1:
            return b
        re, im = b
        wide = self.compare("olt", self.absolute(re), self.absolute(im))
        big, small = self.choose(wide, im, re), self.choose(wide, re, im)
        ratio = self.fdiv(small, big)
        scale = self.fdiv(self.splat(1.0), self.fadd(big, self.fmul(small, ratio)))
        turned = self.fmul(ratio, scale)
        return (
            self.choose(wide, turned, scale),
            self.fneg(self.choose(wide, scale, turned)),
        )

    def over(self, a: Number, divisor: Number) -> Number:
        """a divided by what `divisor` was made from."""
        if len(divisor) == 1:
            return tuple(self.fdiv(part, divisor[0]) for part in a)
        return self.times(a, divisor)

    def absolute(self, a: str) -> str:
        """|a| of real numbers."""
        kind = f"v{self.lanes}{'f32' if self.bytes == 4 else 'f64'}"
        return self.emit(f"call {self.vector} @llvm.fabs.{kind}({self.vector} {a})")

    def root(self, a: str) -> str:
        """The square root of real numbers."""
        kind = f"v{self.lanes}{'f32' if self.bytes == 4 else 'f64'}"
        return self.emit(f"call {self.vector} @llvm.sqrt.{kind}({self.vector} {a})")

    def size(self, a: Number) -> str:
        """|re| + |im|: what LAPACK compares pivots by."""
        sizes = [self.absolute(part) for part in a]
        return sizes[0] if len(sizes) == 1 else self.fadd(sizes[0], sizes[1])

    def compare(self, how: str, a: str, b: str) -> str:
        """A mask: `fcmp` of real numbers."""
        return self.emit(f"fcmp {how} {self.vector} {a}, {b}")

    def choose(self, mask: str, a: str, b: str) -> str:
        """a where the mask is set, else b."""
        return self.emit(f"select {self.mask} {mask}, {self.vector} {a}, {self.vector} {b}")

    def choose_int(self, mask: str, a: str, b: str) -> str:
        """The same of integers."""
        return self.emit(f"select {self.mask} {mask}, {self.ints} {a}, {self.ints} {b}")

    def choose_number(self, mask: str, a: Number, b: Number) -> Number:
        """The same of numbers."""
        return tuple(self.choose(mask, x, y) for x, y in zip(a, b))

    def both(self, a: str, b: str) -> str:
        """A mask that is set where two are."""
        return self.emit(f"and {self.mask} {a}, {b}")
