"""The kernel of singular values and vectors: Jacobi's method (`jacobi.py`) from one side, a block
for each matrix.

Pairs of columns are rotated until all are orthogonal (Hestenes 1958; Demmel, Veselic 1992, for how
exact that is): then their lengths are the singular values, they themselves left vectors, and the
product of the rotations is the right ones. A matrix with more columns than rows is done as its
adjoint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lamina.dialects.attributes import flag
from lamina.passes.emit.scalars import (
    Array,
    Scalar,
    choose,
    constant,
    fold,
    index,
    loop,
    split,
    when,
)
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.thread_numbers import block, synchronize, thread
from lamina.passes.kernels.gpu.factorisations.jacobi import (
    comes_before,
    pair,
    pairs,
    rotate_columns,
    rotation,
    until_converged,
)
from lamina.passes.kernels.gpu.factorisations.matrices import (
    Matrix,
    absolute,
    count_of,
    epsilon,
    largest,
    real_type,
    scaled,
    share,
    threads_for,
)
from lamina.records import Record


def write_svd(job: Job) -> None:
    """Singular values in descending order, with vectors where they are asked for."""
    op = job.op
    full, vectors = flag(op, "full"), flag(op, "vectors")
    *batch, m, n = op.operands[0].type.shape
    long, short = max(m, n), min(m, n)
    element, real = op.operands[0].type.element_type, real_type(op.operands[0].type.element_type)
    matrices, threads = math.prod(batch), threads_for(long * short)
    rotated = job.scratch([matrices, long, short], element)
    product = job.scratch([matrices, short, short], element)
    # For each pair how far from orthogonal it was; for each column its length, and its weight.
    angles, lengths, weights = (job.scratch([matrices, size], real) for size in (pairs(short), short, long))
    dots = job.scratch([matrices, long], element)
    bound = 4 * epsilon(real) * math.sqrt(long)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        kind, other = (Matrix, _Adjoint) if m >= n else (_Adjoint, Matrix)
        given = kind(job.array(kernel, op.operands[0]), at)
        values = job.array(kernel, op.results[0])
        w, v, angle, length = (
            Matrix(job.array(kernel, part), [block()]) for part in (rotated, product, angles, lengths)
        )
        shared = job.shared(kernel, [threads], real)
        columns = _Columns(w, v, angle, length, long, short, threads, shared)
        scale = largest(shared, long * short, threads, lambda i: absolute(given[split(i, [long, short])]))
        by = choose(scale > 0, scale, 1)
        columns.begin(given, by)
        until_converged(constant(1, real) + (scale - scale), columns.sweep, bound)
        columns.measure()
        longest = largest(shared, short, threads, lambda i: length[i,])
        least = longest * (epsilon(real) * short)
        bad = (scale - scale).differs(0)
        left = right = None
        if vectors:
            u, vt = (job.array(kernel, op.results[1]), job.array(kernel, op.results[2]))
            left, right = (kind(u, at), other(vt, at)) if m >= n else (kind(vt, at), other(u, at))

        def finish(i: Scalar) -> None:
            mine = length[i,]
            rank = count_of(short, lambda j: comes_before(-length[j,], j, -mine, i))
            values[[*at, rank]] = choose(bad, math.nan, mine * by)
            if left is not None and right is not None:
                with loop(0, short) as k:
                    right[k, rank] = choose(bad, math.nan, v[k, i])
                safe = choose(mine > least, mine, 1)
                with loop(0, long) as k:
                    left[k, rank] = choose(bad, math.nan, scaled(w[k, i], 1 / safe))

        share(short, threads, finish)
        if left is None:
            return
        synchronize()
        good = count_of(short, lambda i: (length[i,] > least) | bad)
        wanted = long if full else short
        with when(bad), loop(thread(), long * (wanted - short), threads) as item:
            i, j = split(item, [long, max(wanted - short, 1)])
            left[i, j + short] = constant(math.nan, element)
        with loop(choose(bad, index(wanted), good), wanted) as column:
            _complete(
                left, column, long, threads,
                Matrix(job.array(kernel, weights), [block()]), Matrix(job.array(kernel, dots), [block()]),
            )  # fmt: skip

    job.launch(matrices, threads, emit)


class _Adjoint(Matrix):
    """A matrix as its adjoint is stored."""

    def __getitem__(self, place: Sequence[Scalar]) -> Scalar:
        i, j = place
        return super().__getitem__((j, i)).conjugate()

    def __setitem__(self, place: Sequence[Scalar], value: Scalar) -> None:
        i, j = place
        super().__setitem__((j, i), value.conjugate())


class _Columns(Record):
    """One matrix on its way to orthogonal columns: `w`, and the product `v` of what was done; of each
    pair of a round the `angle` that it lacked, of each column at last its `length`."""

    w: Matrix
    v: Matrix
    angle: Matrix
    length: Matrix
    long: int
    short: int
    threads: int
    shared: Array

    def begin(self, given: Matrix, by: Scalar) -> None:
        """The matrix over its largest element, and the identity."""

        def fill(item: Scalar) -> None:
            place = split(item, [self.long, self.short])
            self.w[place] = scaled(given[place], 1 / by)

        def identity(item: Scalar) -> None:
            i, j = split(item, [self.short, self.short])
            self.v[i, j] = choose(i.equals(j), constant(1, self.v.array.element), 0)

        share(self.long * self.short, self.threads, fill)
        share(self.short * self.short, self.threads, identity)
        synchronize()

    def sweep(self) -> Scalar:
        """Each two columns are rotated once; how far from orthogonal any were."""
        count, threads = pairs(self.short), self.threads

        def none_yet(item: Scalar) -> None:
            self.angle[item,] = constant(0, self.angle.array.element)

        share(count, threads, none_yet)
        with loop(0, 2 * count - 1) as round_:
            share(count, threads, lambda item: self._rotate(round_, item))
            synchronize()
        return largest(self.shared, count, threads, lambda item: self.angle[item,])

    def _rotate(self, round_: Scalar, item: Scalar) -> None:
        i, j = pair(round_, item, self.short)
        with when(j < self.short):
            c, s = self._rotation(i, j, item)
            for matrix, rows in ((self.w, self.long), (self.v, self.short)):
                with loop(0, rows) as k:
                    rotate_columns(matrix, k, i, j, c, s)

    def _rotation(self, i: Scalar, j: Scalar, item: Scalar) -> tuple[Scalar, Scalar]:
        w, angle, real = self.w, self.angle, self.angle.array.element
        zero = constant(0, real)
        first, second, between = fold(
            0, self.long, [zero, zero, constant(0, w.array.element)],
            lambda k, a, b, d: [
                a + w[k, i].norm(), b + w[k, j].norm(), d + w[k, i].conjugate() * w[k, j]
            ],
        )  # fmt: skip
        lengths = first.sqrt() * second.sqrt()
        counts = (first.sqrt() > epsilon(real)) & (second.sqrt() > epsilon(real))
        found = choose(counts, absolute(between) / choose(counts, lengths, 1), 0)
        angle[item,] = choose(found > angle[item,], found, angle[item,])
        return rotation(first, second, between)

    def measure(self) -> None:
        """The lengths of all columns."""
        zero = constant(0, self.length.array.element)

        def one(i: Scalar) -> None:
            (square,) = fold(0, self.long, [zero], lambda k, s: [s + self.w[k, i].norm()])
            self.length[i,] = square.sqrt()

        share(self.short, self.threads, one)
        synchronize()


def _complete(
    u: Matrix, column: Scalar, n: int, threads: int, weight: Matrix, dot: Matrix
) -> None:
    """Make a column that is orthogonal to all before it: of the axes that which they reach least,
    less its parts along them, taken away twice (Kahan's and Parlett's "twice is enough")."""

    def weigh(i: Scalar) -> None:
        zero = constant(0, weight.array.element)
        (weight[i,],) = fold(0, column, [zero], lambda k, s: [s + u[i, k].norm()])

    share(n, threads, weigh)
    synchronize()

    def lighter(i: Scalar, best: Scalar, row: Scalar) -> list[Scalar]:
        less = weight[i,] < best
        return [choose(less, weight[i,], best), choose(less, i, row)]

    _, axis = fold(0, n, [constant(math.inf, weight.array.element), index(0)], lighter)

    def begin(i: Scalar) -> None:
        u[i, column] = choose(i.equals(axis), constant(1, u.array.element), 0)

    share(n, threads, begin)
    synchronize()
    with loop(0, 2) as _:

        def along(k: Scalar) -> None:
            zero = constant(0, u.array.element)
            (dot[k,],) = fold(0, n, [zero], lambda i, s: [s + u[i, k].conjugate() * u[i, column]])

        share(column, threads, along)
        synchronize()

        def subtract(i: Scalar) -> None:
            (u[i, column],) = fold(0, column, [u[i, column]], lambda k, s: [s - u[i, k] * dot[k,]])

        share(n, threads, subtract)
        synchronize()
    zero = constant(0, weight.array.element)
    (square,) = fold(0, n, [zero], lambda i, s: [s + u[i, column].norm()])
    synchronize()

    def divide(i: Scalar) -> None:
        u[i, column] = scaled(u[i, column], 1 / square.sqrt())

    share(n, threads, divide)  # row i is the same thread's in the next column
