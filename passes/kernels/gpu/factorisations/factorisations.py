"""The kernels of LU and QR factorisations and of products of Householder reflectors, as LAPACK's
getrf, geqrf, orgqr and ormqr (Anderson et al., LAPACK Users' Guide, 1999), without their blocking.

A block factors one matrix in the memory of the result. A product of reflectors changes each column
(or row) on its own: a thread for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lamina.dialects.attributes import flag
from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import (
    Array,
    Scalar,
    choose,
    complex_of,
    constant,
    fold,
    loop,
    split,
    when,
)
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.thread_numbers import block, synchronize, thread
from lamina.passes.kernels.gpu.factorisations.matrices import (
    Matrix,
    complex_number,
    copy_matrix,
    share,
    size,
    threads_for,
)

SEARCHERS = 32  # threads that look for a pivot or add up a column


def write_lu(job: Job) -> None:
    """Rows are interchanged so that each pivot is the largest of its column."""
    op = job.op
    *batch, m, n = op.operands[0].type.shape
    count = min(m, n)
    threads = threads_for(m * n)
    word = ir.IntegerType.get_signless(32)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        given, lu = (Matrix(job.array(kernel, v), at) for v in (op.operands[0], op.results[0]))
        pivots, order = (job.array(kernel, v) for v in list(op.results)[1:])
        real = size(constant(0, op.operands[0].type.element_type)).type
        sizes = job.shared(kernel, [SEARCHERS], real)
        rows = job.shared(kernel, [SEARCHERS], word)

        copy_matrix(given, lu, [m, n], threads)

        def name(i: Scalar) -> None:
            order[[*at, i]] = i.to(word)

        share(m, threads, name)
        synchronize()
        with loop(0, count) as k:
            p = _largest(lu, k, m, sizes, rows, word)

            def exchange(j: Scalar) -> None:
                lu[k, j], lu[p, j] = lu[p, j], lu[k, j]

            with when(p.differs(k)):
                share(n, threads, exchange)
            with when(thread().equals(0)):
                pivots[[*at, k]] = p.to(word)
                order[[*at, k]], order[[*at, p]] = order[[*at, p]], order[[*at, k]]
            synchronize()
            pivot = lu[k, k]
            with when(size(pivot).differs(0)):

                def scale(i: Scalar) -> None:
                    lu[k + 1 + i, k] = lu[k + 1 + i, k] / pivot

                share(m - 1 - k, threads, scale)
            synchronize()
            below, right = m - 1 - k, n - 1 - k

            def subtract(item: Scalar) -> None:
                i, j = k + 1 + item // right, k + 1 + item % right
                lu[i, j] = lu[i, j] - lu[i, k] * lu[k, j]

            share(below * right, threads, subtract)
            synchronize()

    job.launch(math.prod(batch), threads, emit)


def _largest(lu: Matrix, k: Scalar, m: int, sizes: Array, rows: Array, word: ir.Type) -> Scalar:
    """The first row, from k on, with the largest element of column k."""

    def look(i: Scalar, best: Scalar, row: Scalar) -> list[Scalar]:
        mine = size(lu[i, k])
        return [choose(mine > best, mine, best), choose(mine > best, i, row)]

    with when(thread() < SEARCHERS):
        none = constant(-1, sizes.element)
        best, row = fold(k + thread(), m, [none, k], look, SEARCHERS)
        sizes[thread()] = best
        rows[thread()] = row.to(word)
    synchronize()

    def compare(t: Scalar, best: Scalar, row: Scalar) -> list[Scalar]:
        theirs, where = sizes[t], rows[t].to(ir.IndexType.get())
        wins = (theirs > best) | (theirs.equals(best) & (where < row))
        return [choose(wins, theirs, best), choose(wins, where, row)]

    return fold(0, SEARCHERS, [constant(-1, sizes.element), k], compare)[1]


def write_permutation(job: Job) -> None:
    """The order of rows that interchanges leave: a thread for each sequence of them."""
    op = job.op
    *batch, count = op.operands[0].type.shape
    length = op.results[0].type.shape[-1]
    word = ir.IntegerType.get_signless(32)

    def work(kernel: Kernel) -> Callable[[Scalar], None]:
        pivots, order = (job.array(kernel, v) for v in (op.operands[0], op.results[0]))

        def one(number: Scalar) -> None:
            at = split(number, batch)
            with loop(0, length) as i:
                order[[*at, i]] = i.to(word)
            with loop(0, count) as i:
                p = pivots[[*at, i]].to(ir.IndexType.get())
                with when((p >= 0) & (p < length)):
                    here, there = order[[*at, i]], order[[*at, p]]
                    order[[*at, i]] = there
                    order[[*at, p]] = here

        return one

    job.each(math.prod(batch), work)


def write_qr(job: Job) -> None:
    """Reflectors that clear the columns below the diagonal, one after another."""
    op = job.op
    *batch, m, n = op.operands[0].type.shape
    threads = threads_for(m * n)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        given, r = (Matrix(job.array(kernel, v), at) for v in (op.operands[0], op.results[0]))
        taus = job.array(kernel, op.results[1])
        real = constant(0, op.operands[0].type.element_type).real.type
        sums = job.shared(kernel, [SEARCHERS], real)

        copy_matrix(given, r, [m, n], threads)
        synchronize()
        with loop(0, min(m, n)) as k:
            tau = reflect(r, k, k, m, sums, threads)
            with when(thread().equals(0)):
                taus[[*at, k]] = tau

            def apply(column: Scalar) -> None:
                apply_left(r, k, k, m, tau.conjugate(), r, k + 1 + column)

            share(n - 1 - k, threads, apply)
            synchronize()

    job.launch(math.prod(batch), threads, emit)


def reflect(r: Matrix, k: Scalar, first: Scalar, m: int, sums: Array, threads: int) -> Scalar:
    """Make column k from row `first` on a reflector below what it leaves there; its factor tau.

    The reflector's first element is 1, which is not stored (Golub, Van Loan, Matrix Computations,
    5.1; LAPACK's larfg).
    """
    with when(thread() < SEARCHERS):
        zero = constant(0, sums.element)
        (part,) = fold(
            first + 1 + thread(), m, [zero], lambda i, s: [s + r[i, k].norm()], SEARCHERS
        )
        sums[thread()] = part
    alpha = r[first, k]
    synchronize()
    (rest,) = fold(0, SEARCHERS, [constant(0, sums.element)], lambda t, s: [s + sums[t]])
    trivial = rest.equals(0)
    if alpha.is_complex:
        trivial = trivial & alpha.imag.equals(0)
    length = (alpha.norm() + rest).sqrt()
    beta = choose(trivial, constant(1, length.type), choose(alpha.real < 0, length, -length))
    tau = (beta - alpha.real) / beta
    tau = choose(trivial, 0, tau)
    if alpha.is_complex:
        tau = complex_of(tau, choose(trivial, 0, -alpha.imag / beta))
    left = complex_number(beta, alpha.type)
    by = choose(trivial, constant(1, alpha.type), alpha - left)

    def scale(i: Scalar) -> None:
        r[first + 1 + i, k] = r[first + 1 + i, k] / by

    share(m - 1 - first, threads, scale)
    with when(thread().equals(0) & ~trivial):
        r[first, k] = left
    synchronize()
    return tau


def apply_left(
    v: Matrix, k: Scalar, first: Scalar, m: int, tau: Scalar, c: Matrix, column: Scalar
) -> None:
    """(1 - tau v v^H) times a column of c, v being a reflector in column k from row `first` on."""
    (dot,) = fold(
        first + 1, m, [c[first, column]],
        lambda i, s: [s + v[i, k].conjugate() * c[i, column]],
    )  # fmt: skip
    step = tau * dot
    c[first, column] = c[first, column] - step
    with loop(first + 1, m) as i:
        c[i, column] = c[i, column] - v[i, k] * step


def apply_right(
    v: Matrix, k: Scalar, first: Scalar, n: int, tau: Scalar, c: Matrix, row: Scalar
) -> None:
    """A row of c times (1 - tau v v^H), v being a reflector in column k from row `first` on."""
    (dot,) = fold(first + 1, n, [c[row, first]], lambda j, s: [s + c[row, j] * v[j, k]])
    step = tau * dot
    c[row, first] = c[row, first] - step
    with loop(first + 1, n) as j:
        c[row, j] = c[row, j] - step * v[j, k].conjugate()


def write_reflectors(job: Job) -> None:
    """The first columns of a product of reflectors: each applied to those of the identity."""
    op = job.op
    *batch, m, n = op.operands[0].type.shape
    count = op.operands[1].type.shape[-1]
    element = op.operands[0].type.element_type

    def work(kernel: Kernel) -> Callable[[Scalar], None]:
        v, taus, q = (job.array(kernel, x) for x in (*op.operands, op.results[0]))

        def one(item: Scalar) -> None:
            *at, column = split(item, [*batch, n])
            reflectors, product = Matrix(v, at), Matrix(q, at)
            with loop(0, m) as i:
                product[i, column] = choose(i.equals(column), constant(1, element), 0)
            with loop(0, count) as step:
                k = count - 1 - step
                apply_left(reflectors, k, k, m, taus[[*at, k]], product, column)

        return one

    job.each(math.prod(batch) * n, work)


def write_reflected(job: Job) -> None:
    """A matrix times a product of reflectors or its adjoint, from the left or the right."""
    op = job.op
    left, adjoint = flag(op, "left"), flag(op, "transpose")
    rows, count = list(op.operands[0].type.shape)[-2:]
    *batch, m, n = op.operands[2].type.shape
    lines = n if left else m

    def work(kernel: Kernel) -> Callable[[Scalar], None]:
        v, taus, given, result = (job.array(kernel, x) for x in (*op.operands, op.results[0]))

        def one(item: Scalar) -> None:
            *at, line = split(item, [*batch, lines])
            reflectors, c = Matrix(v, at), Matrix(result, at)
            with loop(0, m if left else n) as i:
                place = (i, line) if left else (line, i)
                c[place] = Matrix(given, at)[place]
            with loop(0, count) as step:
                k = step if left == adjoint else count - 1 - step
                tau = taus[[*at, k]]
                tau = tau.conjugate() if adjoint else tau
                if left:
                    apply_left(reflectors, k, k, rows, tau, c, line)
                else:
                    apply_right(reflectors, k, k, rows, tau, c, line)

        return one

    job.each(math.prod(batch) * lines, work)


def write_hessenberg(job: Job) -> None:
    """Reflectors that clear the columns below the first diagonal under the main one, from both
    sides."""
    op = job.op
    *batch, n, _ = op.operands[0].type.shape
    threads = threads_for(n * n)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        given, h = (Matrix(job.array(kernel, v), at) for v in (op.operands[0], op.results[0]))
        taus = job.array(kernel, op.results[1])
        real = constant(0, op.operands[0].type.element_type).real.type
        sums = job.shared(kernel, [SEARCHERS], real)

        copy_matrix(given, h, [n, n], threads)
        synchronize()
        with loop(0, n - 1) as k:
            first = k + 1
            tau = reflect(h, k, first, n, sums, threads)
            with when(thread().equals(0)):
                taus[[*at, k]] = tau

            def from_right(row: Scalar) -> None:
                apply_right(h, k, first, n, tau, h, row)

            def from_left(column: Scalar) -> None:
                apply_left(h, k, first, n, tau.conjugate(), h, first + column)

            share(n, threads, from_right)
            synchronize()
            share(n - first, threads, from_left)
            synchronize()

    job.launch(math.prod(batch), threads, emit)
