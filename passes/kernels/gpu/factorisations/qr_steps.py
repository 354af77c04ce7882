"""QR steps: what turns a square matrix into a triangle, as all threads of a block do it.

Reflectors lead to Hessenberg form, then shifted QR steps chase a bulge down its diagonal until
elements below that are negligible: two rows at a time with one shift where the matrix is complex, three
with both shifts of a pair where it is real (Golub, Van Loan, Matrix Computations, 7.4 and 7.5). All
threads share a step's rows, then its columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import (
    Array,
    Scalar,
    choose,
    complex_of,
    constant,
    fold,
    index,
    loop,
    repeat_while,
    select,
    smaller,
    when,
)
from lamina.passes.kernels.gpu.device.thread_numbers import synchronize, thread
from lamina.passes.kernels.gpu.factorisations.factorisations import apply_left, apply_right, reflect
from lamina.passes.kernels.gpu.factorisations.matrices import (
    Matrix,
    absolute,
    complex_number,
    epsilon,
    real_type,
    scaled,
    share,
)

_STEPS = 30  # for each eigenvalue; 2 or 3 are usual
_UNUSUAL = 10  # so many steps without one ending: other shifts


class Iteration:
    """One matrix on its way to a triangle: `h`, whose largest element is about 1, and the product `z`
    of what was done."""

    def __init__(self, h: Matrix, z: Matrix | None, n: int, threads: int) -> None:
        self.h, self.z, self.n, self.threads = h, z, n, threads
        self.real = real_type(h.array.element)
        self.is_complex = isinstance(h.array.element, ir.ComplexType)

    def to_hessenberg(self, sums: Array) -> None:
        h, n, threads = self.h, self.n, self.threads
        with loop(0, max(n - 2, 0)) as k:
            first = k + 1
            tau = reflect(h, k, first, n, sums, threads)

            def right(row: Scalar) -> None:
                apply_right(h, k, first, n, tau, h, row)
                if self.z is not None:
                    apply_right(h, k, first, n, tau, self.z, row)

            def left(column: Scalar) -> None:
                apply_left(h, k, first, n, tau.conjugate(), h, first + column)

            def clear(i: Scalar) -> None:
                h[first + 1 + i, k] = constant(0, h.array.element)

            share(n, threads, right)
            synchronize()
            share(n - first, threads, left)
            synchronize()
            share(n - 1 - first, threads, clear)  # which steps read after a barrier of theirs

    def run(self) -> Scalar:
        """Steps until all is a triangle; how many rows are not, which is 0 but for NaN."""

        def goes_on(high: Scalar, steps: Scalar, left: Scalar) -> Scalar:
            return (high > 0) & (left > 0)

        def step(high: Scalar, steps: Scalar, left: Scalar) -> list[Scalar]:
            low = self._start_of_block(high)
            one = low.equals(high)
            two = (low + 1).equals(high) if not self.is_complex else one
            pair = self._pair(high) if not self.is_complex else []
            start = self._start(low, high, (steps % _UNUSUAL).equals(_UNUSUAL - 1))
            synchronize()
            with when((one | two) & (low > 0) & thread().equals(0)):
                self.h[low, low - 1] = constant(0, self.h.array.element)
            if not self.is_complex:
                with when(two):
                    self._split(high, pair)
            with when(~(one | two)):
                (self._chase_one if self.is_complex else self._chase_two)(low, high, start)
            synchronize()
            done = one if self.is_complex else one | two
            down = choose(one, index(1), choose(done, index(2), 0))
            down = smaller(down, high)
            return [high - down, choose(done, index(0), steps + 1), left - 1]

        steps = index(_STEPS * self.n + 1)
        return repeat_while([index(self.n - 1), index(0), steps], goes_on, step)[0]

    def _start_of_block(self, high: Scalar) -> Scalar:
        """The last row, up to `high`, whose element left of the diagonal is negligible."""
        h = self.h

        def look(i: Scalar, found: Scalar) -> list[Scalar]:
            around = absolute(h[i, i]) + absolute(h[i - 1, i - 1])
            around = choose(around > 0, around, 1)  # the largest element
            small = absolute(h[i, i - 1]) <= around * epsilon(self.real)
            return [choose(small, i, found)]

        return fold(1, high + 1, [index(0)], look)[0]

    def _start(self, low: Scalar, high: Scalar, unusual: Scalar) -> list[Scalar]:
        """The first column of the shifted matrix, or product of two, as far as it is not zero."""
        h, before = self.h, high - 1
        a, b, c, d = h[before, before], h[before, high], h[high, before], h[high, high]
        # Where the block is a row or two, nobody uses what is read here.
        second, third = (smaller(low + more, self.n - 1) for more in (1, 2))
        if self.is_complex:
            p = scaled(a - d, constant(0.5, self.real))
            root = _complex_sqrt(p * p + b * c)
            along = p.real * root.real + p.imag * root.imag
            far = p + choose(along < 0, -root, root)
            none = far.norm().equals(0)
            shift = d - b * c / choose(none, constant(1, far.type), far)
            shift = choose(none, d, shift)
            shift = choose(unusual, d + complex_number(absolute(c), d.type), shift)
            return [h[low, low] - shift, h[second, low]]
        total, product = a + d, a * d - b * c
        width = absolute(c) * 1.5
        total, product = choose(unusual, width, total), choose(unusual, width * width, product)
        first, below = h[low, low], h[second, low]
        return [
            first * first + h[low, second] * below - total * first + product,
            below * (first + h[second, second] - total),
            below * h[third, second],
        ]

    def _chase_one(self, low: Scalar, high: Scalar, start: Sequence[Scalar]) -> None:
        h = self.h

        def step(k: Scalar, x: Scalar, y: Scalar) -> list[Scalar]:
            c, s, r = rotation_to_zero(x, y)
            self.rotate(k, c, s, smaller(k + 2, high))
            with when((k > low) & thread().equals(0)):
                h[k, k - 1], h[k + 1, k - 1] = r, r - r
            synchronize()
            below = smaller(k + 2, high)
            return [h[k + 1, k], choose((k + 2) <= high, h[below, k], 0)]

        fold(low, high, start, step)

    def _chase_two(self, low: Scalar, high: Scalar, start: Sequence[Scalar]) -> None:
        h, n, threads = self.h, self.n, self.threads

        def step(k: Scalar, x: Scalar, y: Scalar, z: Scalar) -> list[Scalar]:
            length = (x * x + y * y + z * z).sqrt()
            none = length.equals(0)
            end = choose(none, constant(1, self.real), choose(x < 0, length, -length))
            tau = choose(none, 0, (end - x) / end)
            far = choose(none, constant(1, self.real), x - end)
            v2, v3 = y / far, z / far
            three, third = (k + 2) <= high, smaller(k + 2, high)

            def reflected(of: Matrix, places: Sequence[tuple[Scalar, Scalar]]) -> None:
                a, b, c = (of[place] for place in places)
                by = tau * (a + v2 * b + choose(three, v3 * c, 0))
                of[places[0]], of[places[1]] = a - by, b - by * v2
                with when(three):
                    of[places[2]] = c - by * v3

            def row(item: Scalar) -> None:
                reflected(h, [(i, k + item) for i in (k, k + 1, third)])

            def column(i: Scalar) -> None:
                reflected(h, [(i, j) for j in (k, k + 1, third)])

            def of_product(i: Scalar) -> None:
                assert self.z is not None
                reflected(self.z, [(i, j) for j in (k, k + 1, third)])

            share(n - k, threads, row)
            synchronize()
            share(smaller(k + 3, high) + 1, threads, column)
            if self.z is not None:
                share(n, threads, of_product)
            with when((k > low) & thread().equals(0)):
                with when(~none):
                    h[k, k - 1] = end
                h[k + 1, k - 1] = constant(0, self.real)
                with when(three):
                    h[third, k - 1] = constant(0, self.real)
            synchronize()
            fourth = smaller(k + 3, high)
            return [h[k + 1, k], choose(three, h[third, k], 0),
                    choose((k + 3) <= high, h[fourth, k], 0)]  # fmt: skip

        fold(low, high, start, step)

    def _pair(self, high: Scalar) -> list[Scalar]:
        """A rotation of the last two rows that makes their block a triangle, or, where its
        eigenvalues are complex, its diagonal elements equal; whether they are real; half their sum."""
        h, before = self.h, high - 1
        a, b, c, d = h[before, before], h[before, high], h[high, before], h[high, high]
        one = constant(1, self.real)
        p, total = (a - d) * 0.5, b + c
        square = p * p + b * c
        real = square >= 0
        root = choose(real, square, 0).sqrt()
        along = p + choose(p < 0, -root, root)
        length = (along * along + c * c).sqrt()
        none = length.equals(0)
        safe = choose(none, one, length)
        difference = a - d
        twice = (total * total + difference * difference).sqrt()
        flat = twice.equals(0)
        twice = choose(flat, one, twice)
        cosine2 = choose(flat, one, absolute(total) / twice)
        sine2 = choose(total < 0, difference, -difference) / twice
        cosine = ((cosine2 + 1) * 0.5).sqrt()
        return [
            choose(real, choose(none, one, along / safe), cosine),
            choose(real, choose(none, 0, c / safe), sine2 * 0.5 / cosine),
            real,
            (a + d) * 0.5,
        ]

    def _split(self, high: Scalar, pair: Sequence[Scalar]) -> None:
        c, s, real, middle = pair
        before = high - 1
        self.rotate(before, c, s, high)
        synchronize()
        with when(thread().equals(0)):
            with when(real):
                self.h[high, before] = constant(0, self.real)
            with when(~real):
                self.h[high, high] = middle
                self.h[before, before] = middle

    def rotate(self, k: Scalar, c: Scalar, s: Scalar, last: Scalar) -> None:
        """Rows k and k + 1 from column k on by [c, s; -s*, c], then columns down to row `last`."""
        h, n, threads = self.h, self.n, self.threads
        back = s.conjugate()

        def row(item: Scalar) -> None:
            j = k + item
            above, below = h[k, j], h[k + 1, j]
            h[k, j], h[k + 1, j] = scaled(above, c) + s * below, scaled(below, c) - back * above

        def columns(of: Matrix, i: Scalar) -> None:
            left, right = of[i, k], of[i, k + 1]
            of[i, k], of[i, k + 1] = scaled(left, c) + back * right, scaled(right, c) - s * left

        share(n - k, threads, row)
        synchronize()
        share(last + 1, threads, lambda i: columns(h, i))
        if self.z is not None:
            share(n, threads, lambda i: columns(self.z, i))  # type: ignore[arg-type]


def rotation_to_zero(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(c, s, r) such that [c, s; -s*, c] (x, y) is (r, 0); c is real."""
    a, b = absolute(x), absolute(y)
    length = (a * a + b * b).sqrt()
    one = constant(1, length.type)
    empty, none = a.equals(0), length.equals(0)
    phase = choose(empty, constant(1, x.type), scaled(x, 1 / choose(empty, one, a)))
    safe = choose(none, one, length)
    c = choose(none, one, a / safe)
    s = phase * scaled(y.conjugate(), 1 / safe)
    return c, s, scaled(phase, length)


def _complex_sqrt(x: Scalar) -> Scalar:
    """The root with a real part that is not negative."""
    size = absolute(x)

    def part(of: Scalar) -> Scalar:
        half = of * 0.5
        return choose(half > 0, half, 0).sqrt()

    (imaginary,) = select(
        x.imag < 0, lambda: [-part(size - x.real)], lambda: [part(size - x.real)], [size.type]
    )
    return complex_of(part(size + x.real), imaginary)
