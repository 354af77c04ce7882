"""The kernels of QR with column pivoting and of tridiagonal forms, as LAPACK's geqp3 and sytrd,
without their blocking: Householder reflections, a block for each matrix."""

from __future__ import annotations

import math

from lamina.dialects.attributes import flag
from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import (
    Scalar,
    choose,
    constant,
    fold,
    index,
    loop,
    select,
    split,
    when,
)
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.thread_numbers import block, synchronize, thread
from lamina.passes.kernels.gpu.factorisations.factorisations import (
    SEARCHERS,
    apply_left,
    apply_right,
    reflect,
)
from lamina.passes.kernels.gpu.factorisations.matrices import (
    Matrix,
    complex_number,
    copy_matrix,
    real_type,
    share,
    threads_for,
)


def write_pivoted_qr(job: Job) -> None:
    """Columns that the second operand names go to the front; then the longest of what is left of the
    others comes first at each step. Lengths are measured anew each time, not updated."""
    op = job.op
    *batch, m, n = op.operands[0].type.shape
    real = real_type(op.operands[0].type.element_type)
    threads, word = threads_for(m * n), ir.IntegerType.get_signless(32)
    squares = job.scratch([math.prod(batch), n], real)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        given, r = (Matrix(job.array(kernel, v), at) for v in (op.operands[0], op.results[0]))
        named, order = (Matrix(job.array(kernel, v), at) for v in (op.operands[1], op.results[1]))
        taus, square = job.array(kernel, op.results[2]), Matrix(job.array(kernel, squares), [block()])
        sums = job.shared(kernel, [SEARCHERS], real)
        copy_matrix(given, r, [m, n], threads)  # column 0 is not exchanged; then there was a barrier

        def exchange(one: Scalar, other: Scalar) -> None:
            def row(i: Scalar) -> None:
                r[i, one], r[i, other] = r[i, other], r[i, one]

            with when(one.differs(other)):
                share(m, threads, row)

        def to_front(j: Scalar, fixed: Scalar) -> list[Scalar]:
            is_named = named[j,].differs(0)
            target = choose(is_named, fixed, j)
            exchange(target, j)
            with when(thread().equals(0)):
                order[j,] = (j + 1).to(word)
                with when(target.differs(j)):
                    order[j,] = order[target,]
                    order[target,] = (j + 1).to(word)
            synchronize()
            return [choose(is_named, fixed + 1, fixed)]

        (fixed,) = fold(0, n, [index(0)], to_front)
        with loop(0, min(m, n)) as k:

            def measure(item: Scalar) -> None:
                j = k + item
                (found,) = fold(k, m, [constant(0, real)], lambda i, s: [s + r[i, j].norm()])
                square[j,] = found

            share(n - k, threads, measure)
            synchronize()

            def longer(j: Scalar, best: Scalar, column: Scalar) -> list[Scalar]:
                wins = square[j,] > best
                return [choose(wins, square[j,], best), choose(wins, j, column)]

            _, longest = fold(k, n, [constant(-1, real), k], longer)
            p = choose(k < fixed, k, longest)
            exchange(k, p)
            with when(thread().equals(0)):
                order[k,], order[p,] = order[p,], order[k,]
            synchronize()
            tau = reflect(r, k, k, m, sums, threads)
            with when(thread().equals(0)):
                taus[[*at, k]] = tau

            def apply(column: Scalar) -> None:
                apply_left(r, k, k, m, tau.conjugate(), r, k + 1 + column)

            share(n - 1 - k, threads, apply)  # each column is measured by the same thread

    job.launch(math.prod(batch), threads, emit)


def write_tridiagonal(job: Job) -> None:
    """Reflectors that clear the columns below the first diagonal under the main one, from both sides
    of a Hermitian matrix. An upper triangle is a lower one, read from the last element on."""
    op = job.op
    lower = flag(op, "lower")
    *batch, n, _ = op.operands[0].type.shape
    element, threads = op.operands[0].type.element_type, threads_for(n * n)
    whole = job.scratch([math.prod(batch), n, n], element)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        given, packed = (Matrix(job.array(kernel, v), at) for v in (op.operands[0], op.results[0]))
        diagonal, beside, taus = (Matrix(job.array(kernel, v), at) for v in list(op.results)[1:])
        h = Matrix(job.array(kernel, whole), [block()])
        sums = job.shared(kernel, [SEARCHERS], real_type(element))

        def there(i: Scalar, size: int = n) -> Scalar:
            return i if lower else size - 1 - i

        def fill(item: Scalar) -> None:
            i, j = split(item, [n, n])
            (found,) = select(
                j <= i, lambda: [given[there(i), there(j)]],
                lambda: [given[there(j), there(i)].conjugate()], [element],
            )  # fmt: skip
            h[i, j] = choose(i.equals(j), complex_number(found.real, element), found)

        share(n * n, threads, fill)
        synchronize()
        with loop(0, n - 1) as k:
            first = k + 1
            tau = reflect(h, k, first, n, sums, threads)
            with when(thread().equals(0)):
                taus[there(k, n - 1),] = tau
            share(n - first, threads,
                  lambda row: apply_right(h, k, first, n, tau, h, first + row))  # fmt: skip
            synchronize()
            share(n - first, threads,
                  lambda column: apply_left(h, k, first, n, tau.conjugate(), h, first + column))  # fmt: skip
            synchronize()

        def finish(item: Scalar) -> None:
            i, j = split(item, [n, n])
            (packed[there(i), there(j)],) = select(
                j <= i, lambda: [h[i, j]], lambda: [given[there(i), there(j)]], [element]
            )
            with when(i.equals(j)):
                diagonal[there(i),] = h[i, j].real
            with when(i.equals(j + 1)):
                beside[there(j, n - 1),] = h[i, j].real

        share(n * n, threads, finish)

    job.launch(math.prod(batch), threads, emit)
