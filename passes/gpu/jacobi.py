"""The kernel of eigenvalues and eigenvectors of Hermitian matrices, and what one of singular values
shares with it: Jacobi's method, a block for each matrix.

In a round, all columns are paired, and each pair is rotated such that its element off the diagonal
vanishes; so many rounds that each two columns met are a sweep (Golub, Van Loan, Matrix Computations,
8.5; the order is that of a round-robin tournament). It is slower than LAPACK's ways by a constant,
at least as exact, and all threads have work.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lamina.dialects.attributes import flag
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.gpu.job import Job
from lamina.passes.gpu.kernels import Kernel
from lamina.passes.gpu.solvers import Matrix, complex_number, share, threads_for
from lamina.passes.gpu.thread_numbers import block, synchronize, thread
from lamina.passes.scalars import (
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
    split,
    when,
)

_MOST_SWEEPS = 40  # quadratic convergence takes 6 to 10


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

        def triangle(i: Scalar, j: Scalar) -> Scalar:
            (found,) = select(
                (j <= i) if lower else (i <= j),
                lambda: [given[i, j]], lambda: [given[j, i].conjugate()], [element],
            )  # fmt: skip
            return choose(i.equals(j), complex_number(found.real, element), found)

        scale = largest(shared, n * n, threads, lambda i: absolute(triangle(*split(i, [n, n]))))
        by = choose(scale > 0, scale, 1)

        def fill(item: Scalar) -> None:
            i, j = split(item, [n, n])
            a[i, j] = scaled(triangle(i, j), 1 / by)
            v[i, j] = choose(i.equals(j), constant(1, element), 0)

        share(n * n, threads, fill)
        synchronize()

        def off(item: Scalar) -> Scalar:
            i, j = split(item, [n, n])
            return choose(j < i, absolute(a[i, j]), 0)

        def sweep() -> Scalar:
            with loop(0, 2 * pairs(n) - 1) as round_:

                def rotate(item: Scalar) -> None:
                    i, j = pair(round_, item, n)
                    with when(j < n):
                        c[item,], s[item,] = rotation(a[i, i].real, a[j, j].real, a[i, j])

                share(pairs(n), threads, rotate)
                synchronize()

                def rows(item: Scalar) -> None:
                    which, k = split(item, [pairs(n), n])
                    i, j = pair(round_, which, n)
                    with when(j < n):
                        above, below = a[i, k], a[j, k]
                        a[i, k] = scaled(above, c[which,]) - s[which,] * below
                        a[j, k] = s[which,].conjugate() * above + scaled(below, c[which,])

                share(pairs(n) * n, threads, rows)
                synchronize()

                def columns(item: Scalar) -> None:
                    k, which = split(item, [n, pairs(n)])
                    i, j = pair(round_, which, n)
                    with when(j < n):
                        for matrix in (a, v):
                            rotate_columns(matrix, k, i, j, c[which,], s[which,])

                share(pairs(n) * n, threads, columns)
                synchronize()
            return largest(shared, n * n, threads, off)

        until_converged(largest(shared, n * n, threads, off), sweep, 4 * epsilon(real))
        bad = (scale - scale).differs(0)

        def finish(i: Scalar) -> None:
            mine = a[i, i].real
            rank = count_of(n, lambda j: comes_before(a[j, j].real, j, mine, i))
            values[[*at, rank]] = choose(bad, math.nan, mine * by)
            with loop(0, n) as k:
                vectors[k, rank] = choose(bad, math.nan, v[k, i])

        share(n, threads, finish)

    job.launch(matrices, threads, emit)


# ---- pairs of columns ----------------------------------------------------------------------------
def pairs(n: int) -> int:
    """In a round; one of them is of a column that is not there where n is odd."""
    return -(-n // 2)


def pair(round_: Scalar, item: Scalar, n: int) -> tuple[Scalar, Scalar]:
    """The columns i < j of a pair, in round 0 to 2 * pairs(n) - 2; j may be n, where n is odd."""
    others = 2 * pairs(n) - 1
    one = choose(item.equals(0), index(others), (round_ + item) % others)
    two = (round_ + others - item) % others
    swapped = two < one
    return choose(swapped, two, one), choose(swapped, one, two)


def rotation(first: Scalar, second: Scalar, between: Scalar) -> tuple[Scalar, Scalar]:
    """(c, s) such that [c, s; -s*, c] makes [first, between; between*, second] diagonal: c is real,
    and the smaller of two angles is taken."""
    size = absolute(between)
    none = size.equals(0)
    safe = choose(none, constant(1, size.type), size)
    ratio = (second - first) / (safe + safe)
    tangent = 1 / (absolute(ratio) + (ratio * ratio + 1).sqrt())
    tangent = choose(none, 0, choose(ratio < 0, -tangent, tangent))
    cosine = 1 / (tangent * tangent + 1).sqrt()
    return cosine, scaled(between, tangent * cosine / safe)


def rotate_columns(
    matrix: Matrix, row: Scalar, i: Scalar, j: Scalar, cosine: Scalar, sine: Scalar
) -> None:
    """One row of a matrix times such a rotation."""
    left, right = matrix[row, i], matrix[row, j]
    matrix[row, i] = scaled(left, cosine) - sine.conjugate() * right
    matrix[row, j] = sine * left + scaled(right, cosine)


# ---- all threads of a block ----------------------------------------------------------------------
def until_converged(first: Scalar, sweep: Callable[[], Scalar], bound: float) -> None:
    """Sweeps as long as what is left, at first `first`, then what `sweep` gives, is above a bound."""

    def goes_on(done: Scalar, left: Scalar) -> Scalar:
        return (left > bound) & (done < _MOST_SWEEPS)

    repeat_while([index(0), first], goes_on, lambda done, left: [done + 1, sweep()])


def largest(
    shared: Array, count: int, threads: int, value: Callable[[Scalar], Scalar]
) -> Scalar:
    """The largest of `count` real numbers that are not negative; NaN if one is. All threads of the
    block know it; `shared` has an element for each, and a barrier must come before it is used again."""

    def worse(mine: Scalar, best: Scalar) -> Scalar:
        return choose((mine > best) | mine.differs(mine), mine, best)

    zero = constant(0, shared.element)
    (mine,) = fold(thread(), count, [zero], lambda i, best: [worse(value(i), best)], threads)
    shared[thread(),] = mine
    synchronize()
    (found,) = fold(0, threads, [zero], lambda t, best: [worse(shared[t,], best)])
    return found


def count_of(count: int, holds: Callable[[Scalar], Scalar]) -> Scalar:
    """For how many of the first numbers something holds."""
    return fold(0, count, [index(0)], lambda j, n: [choose(holds(j), n + 1, n)])[0]


def comes_before(theirs: Scalar, j: Scalar, mine: Scalar, i: Scalar) -> Scalar:
    """Whether value j is before value i in ascending order; a NaN is where it was, as all are then."""
    either = theirs.differs(theirs) | mine.differs(mine)
    before = choose(either, (j < i), theirs < mine)
    return before | (theirs.equals(mine) & (j < i))


# ---- numbers -------------------------------------------------------------------------------------
def real_type(element: ir.Type) -> ir.Type:
    """Of the parts of a complex type; a real one as it is."""
    return element.element_type if isinstance(element, ir.ComplexType) else element


def epsilon(real: ir.Type) -> float:
    """The distance from 1 to the next larger number."""
    return float(np.finfo(dtype_of(ir.RankedTensorType.get([], real))).eps)


def absolute(x: Scalar) -> Scalar:
    """The absolute value, a real number."""
    return x.norm().sqrt() if x.is_complex else choose(x < 0, -x, x)


def scaled(x: Scalar, by: Scalar) -> Scalar:
    """A number times a real one."""
    return complex_of(x.real * by, x.imag * by) if x.is_complex else x * by
