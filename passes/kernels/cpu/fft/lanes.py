"""Fourier transforms of one length, one in each vector lane.

A transform is a sequence of passes (Stockham's: the result comes out in order). A pass of radix r
reads r rows, transforms them, multiplies by roots of unity and writes r rows; a row is one number
of each lane's transform, as a vector of real and one of imaginary parts. Passes work in two buffers
in turn. The first may read and the last write the user's array, where rows lie apart and real and
imaginary parts alternate. Source: Van Loan, section 1.7.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from lamina.passes.kernels.cpu.emit.llvm_text import Integer, Text, byte_string
from lamina.passes.kernels.cpu.fft import butterflies
from lamina.passes.kernels.cpu.fft.butterflies import Complex
from lamina.passes.kernels.cpu.fft.primes import prime_scratch, prime_table, prime_transform
from lamina.passes.stablehlo.analysis.fourier import SMALL_PRIME, prime_factors
from lamina.records import Record

_RADICES = (13, 11, 7, 9, 5, 3, 8, 4, 2)


class Numbers(Record):
    """What transforms compute with: the element type and how many of them a vector holds."""

    element: str
    lanes: int

    @property
    def bytes(self) -> int:
        """Of a real number."""
        return 4 if self.element == "float" else 8

    @property
    def row_bytes(self) -> int:
        """Of a row of a buffer."""
        return 2 * self.lanes * self.bytes

    @property
    def dtype(self) -> np.dtype:
        """Of a real number."""
        return np.dtype(np.float32 if self.element == "float" else np.float64)


class LaneTransform(Record):
    """A function `void @name(ptr source, i64 apart, ptr target, i64 apart, ptr a, ptr b, ptr turn)`.

    Transforms rows at `source`, `apart` bytes from one to the next, or, without `reads`, the rows
    of buffer `a`; writes rows to `target`, or, without `writes`, leaves them in the buffer that
    `result` names. With `turns`, row k is multiplied by the product of rows k % s and s + k // s of
    the table at `turn`, where s is `stride`.
    """

    name: str
    numbers: Numbers
    length: int
    inverse: bool
    reads: bool
    writes: bool
    turns: bool
    scale: float

    @property
    def radices(self) -> list[int]:
        """Of the passes; the product is the length."""
        return radices(self.length)

    @property
    def stride(self) -> int:
        """How many rows lie between those that one butterfly of the last pass writes."""
        return self.length // self.radices[-1]

    @property
    def result(self) -> str:
        """The buffer that holds the result where no array does."""
        return "ab"[self._last_target()]

    def _last_target(self) -> int:
        passes = len(self.radices)
        return passes % 2 if not self.reads else (passes - 1) % 2

    def text(self) -> str:
        """The function and its tables."""
        t = Text(self.numbers.element, self.numbers.lanes)
        tables: list[str] = []
        stride, rest = 1, self.length
        for number, radix in enumerate(self.radices):
            rest //= radix
            last = rest == 1
            source = self._source(t, number)
            sink = self._sink(t, number, last)
            table = None
            if not last:
                table = f"@{self.name}_roots{number}"
                tables.append(self._roots(table, radix, rest))
            if radix > SMALL_PRIME:
                factors = prime_table(radix).astype(self.numbers.dtype)
                tables.append(constant(f"@{self.name}_prime{number}", factors.tobytes()))
                self._prime_pass(t, number, radix, rest, stride, source, sink, table)
            else:
                self._pass(t, radix, rest, stride, source, sink, table)
            stride *= radix
        body = "\n".join([*t.stack, *t.lines])
        return (
            "\n".join(tables)
            + f"\ndefine internal void @{self.name}(ptr %source, i64 %source_apart, ptr %target, "
            f"i64 %target_apart, ptr noalias %a, ptr noalias %b, ptr %turn) noinline #0 {{\n"
            f"entry:\n{body}\n  ret void\n}}\n"
        )

    def _pass(
        self,
        t: Text,
        radix: int,
        rest: int,
        stride: int,
        source: Callable[[Integer], Complex],
        sink: Callable[[Integer, Integer, Integer, Complex], None],
        table: str | None,
    ) -> None:
        """Rows q + stride * (p + rest * j), j < radix -> rows q + stride * (radix * p + k)."""
        with t.loop(rest) as p:
            roots: list[Complex] = []
            if table:
                place = t.at(table, t.mul(p, (radix - 1) * 2 * t.bytes))
                for k in range(radix - 1):
                    at = 2 * k * t.bytes
                    roots.append(
                        (t.broadcast(t.at(place, at)), t.broadcast(t.at(place, at + t.bytes)))
                    )
            with t.loop(stride) as q:
                x = [
                    source(t.add(q, t.add(t.mul(p, stride), stride * rest * j)))
                    for j in range(radix)
                ]
                for k, value in enumerate(butterflies.transform(t, x)):
                    if roots and k:
                        value = butterflies.multiply(t, value, roots[k - 1])
                    sink(t.add(q, t.add(t.mul(p, stride * radix), stride * k)), q, k, value)

    def _prime_pass(
        self,
        t: Text,
        number: int,
        prime: int,
        rest: int,
        stride: int,
        source: Callable[[Integer], Complex],
        sink: Callable[[Integer, Integer, Integer, Complex], None],
        table: str | None,
    ) -> None:
        """The same for a large prime, by loops."""
        scratch = t.allocate(prime_scratch(prime, self.numbers.row_bytes))
        with t.loop(rest) as p, t.loop(stride) as q:
            before = t.add(q, t.mul(p, stride))
            after = t.add(q, t.mul(p, stride * prime))

            def read(j: Integer, before: Integer = before) -> Complex:
                return source(t.add(before, t.mul(j, stride * rest)))

            def write(
                k: Integer, value: Complex, p: Integer = p, q: Integer = q, after: Integer = after
            ) -> None:
                if table and k:
                    root = t.add(t.mul(p, prime - 1), t.add(k, -1))
                    at = t.at(table, t.mul(root, 2 * t.bytes))
                    factor = t.broadcast(at), t.broadcast(t.at(at, t.bytes))
                    value = butterflies.multiply(t, value, factor)
                sink(t.add(after, t.mul(k, stride)), q, k, value)

            prime_transform(t, prime, f"@{self.name}_prime{number}", scratch, read, write)

    def _source(self, t: Text, number: int) -> Callable[[Integer], Complex]:
        if number == 0 and self.reads:
            return lambda row: load_pairs(
                t, t.at("%source", t.mul(row, "%source_apart")), self.inverse
            )
        buffer = "%ab"[1 + (number % 2 if not self.reads else (number - 1) % 2)]
        return lambda row: load_row(t, t.at(f"%{buffer}", t.mul(row, self.numbers.row_bytes)))

    def _sink(
        self, t: Text, number: int, last: bool
    ) -> Callable[[Integer, Integer, Integer, Complex], None]:
        buffer = "ab"[(number + 1) % 2 if not self.reads else number % 2]
        row_bytes = self.numbers.row_bytes

        def sink(row: Integer, q: Integer, k: Integer, value: Complex) -> None:
            if last and self.turns:
                fine = load_row(t, t.at("%turn", t.mul(q, row_bytes)))
                coarse = load_row(t, t.at("%turn", t.mul(t.add(k, self.stride), row_bytes)))
                value = butterflies.multiply(t, value, butterflies.multiply(t, fine, coarse))
            if last and self.scale != 1:
                value = tuple(t.fmul(part, t.splat(self.scale)) for part in value)  # type: ignore[assignment]
            if last and self.writes:
                store_pairs(t, value, t.at("%target", t.mul(row, "%target_apart")), self.inverse)
            else:
                store_row(t, value, t.at(f"%{buffer}", t.mul(row, row_bytes)))

        return sink

    def _roots(self, name: str, radix: int, rest: int) -> str:
        """exp(-2 pi i p k / (rest * radix)) for each p and 0 < k < radix, as pairs."""
        exponents = np.outer(np.arange(rest), np.arange(1, radix))
        return constant(name, pairs(roots_of_unity(rest * radix, exponents), self.numbers))


def radices(length: int) -> list[int]:
    """Of the passes of a transform: few of them, each small enough for the registers."""
    found = [prime for prime in prime_factors(length)[::-1] if prime > SMALL_PRIME]
    length //= prod(found)
    for radix in _RADICES:
        while length % radix == 0:
            found.append(radix)
            length //= radix
    if found[-2:] == [8, 2]:
        found[-2:] = [4, 4]
    return found or [1]


def roots_of_unity(order: int, exponents: np.ndarray) -> np.ndarray:
    """exp(-2 pi i e / order), exact to the last bit or two of complex128."""
    exponents = exponents % order
    # The angle is folded into the first eighth of the circle, where sine and cosine are exact.
    eighth, angle = np.divmod(8 * exponents, order)
    odd = eighth % 2 == 1
    angle = np.where(odd, order - angle, angle) * (2 * np.pi / 8 / order)
    cosine, sine = np.cos(angle), np.sin(angle)
    quarter = (eighth + 1) // 2 % 4
    swapped = odd
    c, s = cosine, np.where(swapped, -sine, sine)
    re = np.choose(quarter, [c, -s, -c, s])
    im = np.choose(quarter, [s, c, -s, -c])
    return re - 1j * im


def pairs(values: np.ndarray, numbers: Numbers) -> bytes:
    """Real and imaginary parts in turn, in the element type."""
    return np.stack([values.real, values.imag], -1).astype(numbers.dtype).tobytes()


def constant(name: str, data: bytes) -> str:
    """A table that only this module sees."""
    return (
        f"{name} = private unnamed_addr constant [{len(data)} x i8] {byte_string(data)}, align 64"
    )


def load_row(t: Text, place: str) -> Complex:
    """A row of a buffer."""
    return t.load(t.vector, place), t.load(t.vector, t.at(place, t.lanes * t.bytes))


def store_row(t: Text, value: Complex, place: str) -> None:
    """The inverse of `load_row`."""
    t.store(t.vector, value[0], place)
    t.store(t.vector, value[1], t.at(place, t.lanes * t.bytes))


def load_pairs(t: Text, place: str, swapped: bool) -> Complex:
    """Complex numbers that lie side by side. An inverse transform is a forward one of numbers with
    their parts swapped, swapped back."""
    n = t.lanes
    low = t.load(t.vector, place)
    high = t.load(t.vector, t.at(place, n * t.bytes))
    re = t.shuffle(low, high, range(0, 2 * n, 2))
    im = t.shuffle(low, high, range(1, 2 * n, 2))
    return (im, re) if swapped else (re, im)


def store_pairs(t: Text, value: Complex, place: str, swapped: bool) -> None:
    """The inverse of `load_pairs`."""
    n = t.lanes
    re, im = value[::-1] if swapped else value
    for half in (0, 1):
        picks = [half * n // 2 + i // 2 + n * (i % 2) for i in range(n)]
        t.store(t.vector, t.shuffle(re, im, picks), t.at(place, half * n * t.bytes))
