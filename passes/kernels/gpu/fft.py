"""The kernels of `stablehlo.fft` between complex numbers, of lengths with small prime factors.

Stockham's autosort (Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, 1.7):
a step of radix R takes elements n/R apart, turns them, transforms them in registers, and puts them
where the next step finds them in order. All steps of a transform that fits run in one kernel, a few
transforms a block, through shared memory; a longer one is a kernel for each step. Roots of unity are
tables rounded from f64, of longer transforms the product of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import Array, Scalar, complex_of, constant, loop, split, true, when
from lamina.passes.framework.base import CompileError
from lamina.passes.kernels.gpu.device.job import Constant, Job
from lamina.passes.kernels.gpu.device.kernels import SHARED_BYTES, Kernel, Scratch
from lamina.passes.kernels.gpu.device.thread_numbers import block, synchronize, thread
from lamina.passes.stablehlo.analysis.fourier import is_smooth

_THREADS = 256
_ONE_TABLE = 1024  # the longest transform whose roots are one table

Pair = tuple[Scalar, Scalar]
"""Real and imaginary part."""


def write_fft(job: Job) -> None:
    """See the module's docstring."""
    op = job.op
    lengths = list(ir.DenseI64ArrayAttr(op.attributes["fft_length"]))
    inverse = "IFFT" in str(op.attributes["fft_type"])
    shape = list(op.results[0].type.shape)
    if "RFFT" in str(op.attributes["fft_type"]) or not all(map(is_smooth, lengths)):
        raise CompileError.at(op, "a transform that `stablehlo-expand-fft` should have rewritten")
    source: ir.Value = op.operands[0]
    axes = [axis for axis in range(len(shape) - len(lengths), len(shape))]
    todo = [axis for axis in axes if shape[axis] > 1] or axes[:1]
    for axis in reversed(todo):
        _Axis(job, source, op.results[0], axis, inverse).write()
        source = op.results[0]


class _Axis:
    """The transforms along one axis, from one buffer to another or in place."""

    def __init__(
        self, job: Job, source: ir.Value, target: ir.Value, axis: int, inverse: bool
    ) -> None:
        self.job, self.source, self.target = job, source, target
        shape = list(source.type.shape)
        self.outer, self.n = math.prod(shape[:axis]), shape[axis]
        self.inner = math.prod(shape[axis + 1 :])
        self.element = ir.ComplexType(source.type.element_type)
        self.part = self.element.element_type
        self.sign = 1 if inverse else -1
        self.scale = 1 / self.n if inverse else None
        self.radices = _radices(self.n)
        self.tables = self._tables()

    def write(self) -> None:
        size = 2 * self.part.width // 8
        if len(self.radices) == 1 or 2 * self.n * size <= SHARED_BYTES:
            self._in_one_kernel(size)
        else:
            self._in_kernels()

    # ---- roots of unity --------------------------------------------------------------------------
    def _tables(self) -> list[Constant]:
        """w^m of one table; of two, w^m with m = q b + r is w^r w^(q b), b being the first's size."""
        if len(self.radices) == 1:
            return []
        short = 1 << (math.isqrt(self.n - 1).bit_length())
        powers = [np.arange(self.n)]
        if self.n > _ONE_TABLE:
            powers = [np.arange(short), np.arange(-(-self.n // short)) * short]
        dtype = np.float32 if self.part.width == 32 else np.float64
        turns = [self.sign * 2j * np.pi * p / self.n for p in powers]
        return [
            self.job.constant(np.stack([np.cos(t.imag), np.sin(t.imag)]).astype(dtype))
            for t in turns
        ]

    def _root(self, tables: Sequence[Array], power: Scalar) -> Pair:
        if len(tables) == 1:
            return tables[0][0, power], tables[0][1, power]
        low, high = power % tables[0].shape[1], power // tables[0].shape[1]
        return _times((tables[0][0, low], tables[0][1, low]), (tables[1][0, high], tables[1][1, high]))

    # ---- a step ----------------------------------------------------------------------------------
    def _step(
        self, number: int, tables: Sequence[Array], j: Scalar, read: Callable[[Scalar], Pair],
        write: Callable[[Scalar, Pair], None],
    ) -> None:  # fmt: skip
        """Butterfly j of a step, between places of a row."""
        radix = self.radices[number]
        done = math.prod(self.radices[:number])
        k = j % done if done > 1 else None
        values = [read(j + r * (self.n // radix)) for r in range(radix)]
        if k is not None:
            turn = self.n // (done * radix)
            values = values[:1] + [
                _times(value, self._root(tables, k * (r * turn)))
                for r, value in enumerate(values[1:], 1)
            ]
        values = _dft(values, self.sign)
        first = j // done * (done * radix) + k if k is not None else j * radix
        for r, (re, im) in enumerate(values):
            if self.scale is not None and number == len(self.radices) - 1:
                re, im = re * self.scale, im * self.scale
            write(first + r * done, (re, im))

    def _seen(self, kernel: Kernel, of: ir.Value | Scratch) -> Array:
        """A buffer as [outer, n, inner]."""
        return self.job.array(kernel, of, [self.outer, self.n, self.inner])

    def _in_one_kernel(self, size: int) -> None:
        rows, last = self.outer * self.inner, len(self.radices) - 1
        butterflies = self.n // min(self.radices)
        fits = SHARED_BYTES // (2 * self.n * size) if last else rows
        together = max(1, min(rows, _THREADS // butterflies, fits))
        threads = min(_THREADS, max(32, -(-together * butterflies // 32) * 32))
        blocks = -(-rows // together)

        def emit(kernel: Kernel) -> None:
            source, target = self._seen(kernel, self.source), self._seen(kernel, self.target)
            tables = [self.job.named(table) for table in self.tables]
            parts = 2 * min(last, 1)
            halves = [
                self.job.shared(kernel, [2, together * self.n], self.part) for _ in range(parts)
            ]
            for number, radix in enumerate(self.radices):
                count = self.n // radix
                with loop(thread(), together * count, threads) as item:
                    # Neighbouring threads: along the axis where it is dense, else across rows.
                    if self.inner == 1:
                        of_block, j = split(item, [together, count])
                    else:
                        j, of_block = split(item, [count, together])
                    row = block() * together + of_block
                    inside = row < rows if rows % together else true()
                    with when(inside):
                        o, i = split(row, [self.outer, self.inner])
                        first = of_block * self.n
                        read = _whole(source, o, i) if number == 0 else _halves(halves, number - 1, first)
                        write = _halves(halves, number, first)
                        if number == last:
                            write = _whole(target, o, i)
                        self._step(number, tables, j, read[0], write[1])
                if number != last:
                    synchronize()

        self.job.launch(blocks, threads, emit)

    def _in_kernels(self) -> None:
        last = len(self.radices) - 1
        buffers = [
            self.job.scratch([self.outer, self.n, self.inner], self.element)
            for _ in range(min(last, 2))
        ]
        for number, radix in enumerate(self.radices):
            count = self.n // radix
            before = buffers[(number - 1) % 2] if number else self.source
            after = self.target if number == last else buffers[number % 2]

            def work(
                kernel: Kernel, number: int = number, count: int = count,
                before: ir.Value | Scratch = before, after: ir.Value | Scratch = after,
            ) -> Callable[[Scalar], None]:  # fmt: skip
                source, target = self._seen(kernel, before), self._seen(kernel, after)
                tables = [self.job.named(table) for table in self.tables]

                def one(item: Scalar) -> None:
                    o, j, i = split(item, [self.outer, count, self.inner])

                    read, write = _whole(source, o, i)[0], _whole(target, o, i)[1]
                    self._step(number, tables, j, read, write)

                return one

            self.job.each(self.outer * count * self.inner, work)


Places = tuple[Callable[[Scalar], Pair], Callable[[Scalar, Pair], None]]
"""How the numbers of a row are read and written."""


def _whole(array: Array, outer: Scalar, inner: Scalar) -> Places:
    def read(at: Scalar) -> Pair:
        value = array[outer, at, inner]
        return value.real, value.imag

    def write(at: Scalar, value: Pair) -> None:
        array[outer, at, inner] = complex_of(*value)

    return read, write


def _halves(halves: Sequence[Array], number: int, first: Scalar) -> Places:
    """Of a row in shared memory, where steps take turns between two halves."""

    def read(at: Scalar) -> Pair:
        re, im = (half[number % 2, first + at] for half in halves)
        return re, im

    def write(at: Scalar, value: Pair) -> None:
        for half, part in zip(halves, value, strict=True):
            half[number % 2, first + at] = part

    return read, write


# ---- transforms in registers ---------------------------------------------------------------------
def _radices(n: int) -> list[int]:
    """Small factors of n, the largest that registers bear first."""
    found = []
    for radix in (8, 4, 2, 3, 5, 7, 11, 13):
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found or [1]


def _times(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _turned(a: Pair, numerator: int, denominator: int) -> Pair:
    """a times exp(2 pi i numerator / denominator)."""
    quarter, rest = divmod(4 * (numerator % denominator), denominator)
    if rest:
        angle = 2 * math.pi * (numerator % denominator) / denominator
        part = a[0].type
        return _times(a, (constant(math.cos(angle), part), constant(math.sin(angle), part)))
    re, im = a
    return [(re, im), (-im, re), (-re, -im), (im, -re)][quarter]


def _dft(values: list[Pair], sign: int) -> list[Pair]:
    """The transform of values in registers: by halves, of odd lengths by pairs."""
    n = len(values)
    if n == 1:
        return values
    if n % 2 == 0:
        even, odd = _dft(values[::2], sign), _dft(values[1::2], sign)
        odd = [_turned(value, sign * k, n) for k, value in enumerate(odd)]
        return [(e[0] + o[0], e[1] + o[1]) for e, o in zip(even, odd)] + [
            (e[0] - o[0], e[1] - o[1]) for e, o in zip(even, odd)
        ]
    # Of x_r and x_(n-r) cosines multiply the sum and sines the difference.
    pairs = [(values[r], values[n - r]) for r in range(1, n // 2 + 1)]
    sums = [(a[0] + b[0], a[1] + b[1]) for a, b in pairs]
    differences = [(a[0] - b[0], a[1] - b[1]) for a, b in pairs]
    result: list[Pair] = [values[0]] * n
    for re, im in sums:
        result[0] = result[0][0] + re, result[0][1] + im
    for k in range(1, n // 2 + 1):
        (even_re, even_im), odd_re, odd_im = values[0], None, None
        for r, ((sum_re, sum_im), (diff_re, diff_im)) in enumerate(zip(sums, differences), 1):
            cosine = math.cos(2 * math.pi * r * k / n)
            sine = sign * math.sin(2 * math.pi * r * k / n)
            even_re, even_im = even_re + sum_re * cosine, even_im + sum_im * cosine
            step_re, step_im = diff_im * -sine, diff_re * sine
            odd_re = step_re if odd_re is None else odd_re + step_re
            odd_im = step_im if odd_im is None else odd_im + step_im
        result[k] = even_re + odd_re, even_im + odd_im
        result[n - k] = even_re - odd_re, even_im - odd_im
    return result
