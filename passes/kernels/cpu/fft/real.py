"""Fourier transforms of rows of real numbers, and back.

An even number of real numbers is half as many complex ones, the even and the odd elements. With
their transforms E and O, told apart by symmetry (Van Loan, section 4.3), and w = exp(-2 pi i / n):

    Z[k] = E[k] + i O[k]                          E[k] = (Z[k] + conj Z[m - k]) / 2
    X[k] = E[k] + w^k O[k]       for n = 2 m      O[k] = (Z[k] - conj Z[m - k]) / 2i

An odd number of them are complex ones without imaginary parts. Rows share no transform, so that what
is in one, were it NaN, leaves the others as they are.
"""

from __future__ import annotations

import numpy as np

from lamina.passes.kernels.cpu.emit.llvm_text import Text
from lamina.passes.kernels.cpu.emit.tasks_text import unpack
from lamina.passes.kernels.cpu.fft.butterflies import Complex, add, multiply, subtract
from lamina.passes.kernels.cpu.fft.lanes import (
    LaneTransform,
    Numbers,
    constant,
    load_row,
    pairs,
    roots_of_unity,
    store_row,
)
from lamina.passes.kernels.cpu.fft.rows import (
    complex_in,
    complex_out,
    real_in,
    real_out,
    row_addresses,
)
from lamina.records import Record

_ZERO = "zeroinitializer"


class RealTask(Record):
    """`void @name(ptr ctx, i64 low, i64 high)`: blocks [low, high) of `rows` transforms of `length`
    real numbers each, from the array at ctx[0] to that at ctx[1]."""

    name: str
    length: int
    rows: int
    numbers: Numbers
    inverse: bool

    @property
    def blocks(self) -> int:
        """How many there are."""
        return -(-self.rows // self.numbers.lanes)

    @property
    def _kept(self) -> int:
        """How many numbers of a real transform are kept."""
        return self.length // 2 + 1

    @property
    def _is_even(self) -> bool:
        return self.length % 2 == 0

    def text(self) -> str:
        """The task function, the transform that it calls, its table."""
        numbers, length = self.numbers, self.length // 2 if self._is_even else self.length
        scale = 1 / self.length if self.inverse else (0.5 if self._is_even else 1.0)
        lane = LaneTransform(
            f"{self.name}_lanes", numbers, length, False,
            reads=False, writes=False, turns=False, scale=scale,
        )  # fmt: skip
        t = Text(numbers.element, numbers.lanes)
        for buffer in "ab":
            t.do(f"%{buffer} = alloca [{(length + 1) * numbers.row_bytes} x i8], align 64")
        t.lines += unpack(("%source", "%target"))
        sizes = [self.length * numbers.bytes, 2 * self._kept * numbers.bytes]
        with t.loop("%high", "%low") as block:
            first = t.mul(block, numbers.lanes)
            source, target = (
                row_addresses(t, base, first, numbers, self.rows - 1, size)
                for base, size in zip(("%source", "%target"), sizes[:: -1 if self.inverse else 1])
            )
            self._read(t, source)
            t.do(f"call void @{lane.name}(ptr null, i64 0, ptr null, i64 0, ptr %a, ptr %b, ptr null)")
            self._write(t, target, f"%{lane.result}")
        body = "\n".join(t.lines)
        return (
            f"{self._table()}{lane.text()}"
            f"define internal void @{self.name}(ptr %ctx, i64 %low, i64 %high) #0 {{\n"
            f"entry:\n{body}\n  ret void\n}}"
        )

    def _table(self) -> str:
        roots = roots_of_unity(self.length, np.arange(self.length // 4 + 1))
        return constant(f"@{self.name}_roots", pairs(roots, self.numbers)) + "\n"

    def _read(self, t: Text, rows: list[str]) -> None:
        """Rows to buffer a, as a transform of complex numbers takes them. An inverse one takes them
        with their parts swapped."""
        numbers = self.numbers
        if not self.inverse:
            if self._is_even:
                complex_in(t, numbers, rows, self.length // 2, "%a", swapped=False)
            else:
                real_in(t, numbers, rows, self.length, "%a")
            return
        complex_in(t, numbers, rows, self._kept, "%a", swapped=False)
        if self._is_even:
            self._join(t)
        else:
            self._mirror(t)

    def _write(self, t: Text, rows: list[str], buffer: str) -> None:
        """The inverse, from a buffer."""
        numbers = self.numbers
        if not self.inverse:
            if self._is_even:
                self._part(t, buffer)
            complex_out(t, numbers, rows, self._kept, buffer, swapped=False)
        elif self._is_even:
            complex_out(t, numbers, rows, self.length // 2, buffer, swapped=True)
        else:
            real_out(t, numbers, rows, self.length, buffer, part=1)

    def _part(self, t: Text, buffer: str) -> None:
        """X from half of Z."""
        m, row = self.length // 2, self.numbers.row_bytes
        re, im = load_row(t, buffer)
        two = t.splat(2.0)
        store_row(t, (t.fmul(t.fadd(re, im), two), _ZERO), buffer)
        store_row(t, (t.fmul(t.fsub(re, im), two), _ZERO), t.at(buffer, m * row))
        if m < 2:
            return
        with t.loop(m // 2 + 1, 1) as k:
            at = t.at(buffer, t.mul(k, row))
            mirrored = t.at(buffer, t.mul(t.difference(m, k), row))
            (re, im), (back_re, back_im) = load_row(t, at), load_row(t, mirrored)
            even = t.fadd(re, back_re), t.fsub(im, back_im)
            odd = multiply(t, (t.fadd(im, back_im), t.fsub(back_re, re)), self._root(t, k))
            store_row(t, add(t, even, odd), at)
            re, im = subtract(t, even, odd)
            store_row(t, (re, t.fneg(im)), mirrored)

    def _join(self, t: Text) -> None:
        """Z from X, with real and imaginary parts swapped. The ends are real, whatever they hold."""
        m, row = self.length // 2, self.numbers.row_bytes
        (first, _), (last, _) = load_row(t, "%a"), load_row(t, t.at("%a", m * row))
        store_row(t, (t.fsub(first, last), t.fadd(first, last)), "%a")
        if m < 2:
            return
        with t.loop(m // 2 + 1, 1) as k:
            at = t.at("%a", t.mul(k, row))
            mirrored = t.at("%a", t.mul(t.difference(m, k), row))
            (re, im), (back_re, back_im) = load_row(t, at), load_row(t, mirrored)
            even = t.fadd(re, back_re), t.fsub(im, back_im)
            cosine, sine = self._root(t, k)
            gap = t.fsub(re, back_re), t.fadd(im, back_im)
            odd = multiply(t, gap, (cosine, t.fneg(sine)))
            store_row(t, (t.fadd(even[1], odd[0]), t.fsub(even[0], odd[1])), at)
            store_row(t, (t.fsub(odd[0], even[1]), t.fadd(even[0], odd[1])), mirrored)

    def _mirror(self, t: Text) -> None:
        """All of X from its first half, with real and imaginary parts swapped."""
        n, row = self.length, self.numbers.row_bytes
        re, _ = load_row(t, "%a")
        store_row(t, (_ZERO, re), "%a")
        if n < 3:
            return
        with t.loop(self._kept, 1) as k:
            at = t.at("%a", t.mul(k, row))
            re, im = load_row(t, at)
            store_row(t, (im, re), at)
            store_row(t, (t.fneg(im), re), t.at("%a", t.mul(t.difference(n, k), row)))

    def _root(self, t: Text, k: int | str) -> Complex:
        """w^k in all lanes."""
        at = t.at(f"@{self.name}_roots", t.mul(k, 2 * self.numbers.bytes))
        return t.broadcast(at), t.broadcast(t.at(at, self.numbers.bytes))
