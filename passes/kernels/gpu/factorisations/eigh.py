"""The kernel of eigenvalues and eigenvectors of Hermitian matrices: Jacobi's method (`jacobi.py`), a block
for each matrix."""

from __future__ import annotations

import math

from lamina.dialects.attributes import flag
from lamina.passes.emit.scalars import Array, Scalar, choose, constant, loop, select, split, when
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.thread_numbers import block, synchronize
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
    complex_number,
    count_of,
    epsilon,
    largest,
    real_type,
    scaled,
    share,
    threads_for,
)
from lamina.records import Record


def write_eigh(job: Job) -> None:
    """Rotations of rows and columns until the matrix is diagonal, and their product."""
    op = job.op
    lower = flag(op, "lower")
    *batch, n, _ = op.operands[0].type.shape
    element, real = op.operands[0].type.element_type, real_type(op.operands[0].type.element_type)
    matrices, threads = math.prod(batch), threads_for(n * n)
    diagonalised, product = (job.scratch([matrices, n, n], element) for _ in range(2))
    cosines = job.scratch([matrices, pairs(n)], real)
    sines = job.scratch([matrices, pairs(n)], element)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        given, vectors = (Matrix(job.array(kernel, v), at) for v in (op.operands[0], op.results[0]))
        values = job.array(kernel, op.results[1])
        a, v = (Matrix(job.array(kernel, part), [block()]) for part in (diagonalised, product))
        c, s = (Matrix(job.array(kernel, part), [block()]) for part in (cosines, sines))
        shared = job.shared(kernel, [threads], real)
        hermitian = _Hermitian(given, lower)

        scale = largest(shared, n * n, threads, lambda i: absolute(hermitian.at(*split(i, [n, n]))))
        by = choose(scale > 0, scale, 1)
        rotated = _Rotated(a, v, c, s, n, threads, shared)
        rotated.begin(hermitian, by)
        until_converged(rotated.left(), rotated.sweep, 4 * epsilon(real))
        bad = (scale - scale).differs(0)

        def finish(i: Scalar) -> None:
            mine = a[i, i].real
            rank = count_of(n, lambda j: comes_before(a[j, j].real, j, mine, i))
            values[[*at, rank]] = choose(bad, math.nan, mine * by)
            with loop(0, n) as k:
                vectors[k, rank] = choose(bad, math.nan, v[k, i])

        share(n, threads, finish)

    job.launch(matrices, threads, emit)


class _Hermitian(Record):
    """A matrix of which one triangle is given."""

    given: Matrix
    lower: bool

    def at(self, i: Scalar, j: Scalar) -> Scalar:
        """An element of either triangle; those of the diagonal are real."""
        given, element = self.given, self.given.array.element
        (found,) = select(
            (j <= i) if self.lower else (i <= j),
            lambda: [given[i, j]], lambda: [given[j, i].conjugate()], [element],
        )  # fmt: skip
        return choose(i.equals(j), complex_number(found.real, element), found)


class _Rotated(Record):
    """One matrix on its way to a diagonal one: `a`, and the product `v` of what was done; of each pair
    of a round the rotation, `c` and `s`."""

    a: Matrix
    v: Matrix
    c: Matrix
    s: Matrix
    n: int
    threads: int
    shared: Array

    def begin(self, hermitian: _Hermitian, by: Scalar) -> None:
        """The matrix over its largest element, and the identity."""

        def fill(item: Scalar) -> None:
            i, j = split(item, [self.n, self.n])
            self.a[i, j] = scaled(hermitian.at(i, j), 1 / by)
            self.v[i, j] = choose(i.equals(j), constant(1, self.v.array.element), 0)

        share(self.n * self.n, self.threads, fill)
        synchronize()

    def left(self) -> Scalar:
        """The largest element off the diagonal."""

        def off(item: Scalar) -> Scalar:
            i, j = split(item, [self.n, self.n])
            return choose(j < i, absolute(self.a[i, j]), 0)

        return largest(self.shared, self.n * self.n, self.threads, off)

    def sweep(self) -> Scalar:
        """Each two columns are rotated once; what is left then."""
        n, threads = self.n, self.threads
        with loop(0, 2 * pairs(n) - 1) as round_:
            share(pairs(n), threads, lambda item: self._choose_rotation(round_, item))
            synchronize()
            share(pairs(n) * n, threads, lambda item: self._rotate_rows(round_, item))
            synchronize()
            share(pairs(n) * n, threads, lambda item: self._rotate_columns(round_, item))
            synchronize()
        return self.left()

    def _choose_rotation(self, round_: Scalar, item: Scalar) -> None:
        a = self.a
        i, j = pair(round_, item, self.n)
        with when(j < self.n):
            self.c[item,], self.s[item,] = rotation(a[i, i].real, a[j, j].real, a[i, j])

    def _rotate_rows(self, round_: Scalar, item: Scalar) -> None:
        a, c, s = self.a, self.c, self.s
        which, k = split(item, [pairs(self.n), self.n])
        i, j = pair(round_, which, self.n)
        with when(j < self.n):
            above, below = a[i, k], a[j, k]
            a[i, k] = scaled(above, c[which,]) - s[which,] * below
            a[j, k] = s[which,].conjugate() * above + scaled(below, c[which,])

    def _rotate_columns(self, round_: Scalar, item: Scalar) -> None:
        k, which = split(item, [self.n, pairs(self.n)])
        i, j = pair(round_, which, self.n)
        with when(j < self.n):
            for matrix in (self.a, self.v):
                rotate_columns(matrix, k, i, j, self.c[which,], self.s[which,])
