"""The kernels of triangular and tridiagonal systems and of Cholesky factors.

A block does one matrix, or 32 columns of one triangular system's right-hand sides, in the memory of
the result: step after step, each element by the thread that the step's loops give it to. Sums are
subtracted term by term in the order of the CPU's loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lamina.dialects.attributes import flag
from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import (
    Array,
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
from lamina.passes.kernels.gpu.device.job import Job, signless
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.kernels.gpu.device.thread_numbers import block, synchronize, thread
from lamina.passes.kernels.gpu.factorisations.matrices import (
    Matrix,
    copy_matrix,
    root,
    share,
    size,
    threads_for,
)

_COLUMNS, _ROWS = 32, 8  # threads of a block that solves a triangular system


def write_cholesky(job: Job) -> None:
    """Column after column: its pivot, the rest of it, and what it takes from those after it."""
    op = job.op
    lower = flag(op, "lower")
    *batch, n, _ = op.operands[0].type.shape
    element = op.operands[0].type.element_type
    threads = threads_for(n * n)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        given = _Lower(job.array(kernel, op.operands[0]), at, lower)
        factor = _Lower(job.array(kernel, op.results[0]), at, lower)
        zero = constant(0, element)

        def fill(item: Scalar) -> None:
            i, j = split(item, [n, n])
            (value,) = select(j <= i, lambda: [given[i, j]], lambda: [zero], [element])
            factor[i, j] = value

        share(n * n, threads, fill)
        synchronize()
        with loop(0, n) as k:
            pivot = root(factor[k, k])
            synchronize()

            def scale(item: Scalar) -> None:
                i = k + item
                factor[i, k] = select(
                    item.equals(0), lambda: [pivot], lambda: [factor[i, k] / pivot], [element]
                )[0]

            share(n - k, threads, scale)
            synchronize()
            left = n - 1 - k

            def subtract(item: Scalar) -> None:
                i, j = k + 1 + item // left, k + 1 + item % left
                with when(j <= i):
                    factor[i, j] = factor[i, j] - factor[i, k] * factor[j, k].conjugate()

            share(left * left, threads, subtract)
            synchronize()
        last = factor[index(n - 1), index(n - 1)]  # a pivot that is NaN makes all later ones NaN
        synchronize()
        with when(last.real.differs(last.real)):

            def spoil(item: Scalar) -> None:
                i, j = split(item, [n, n])
                with when(j <= i):
                    factor[i, j] = last

            share(n * n, threads, spoil)

    job.launch(math.prod(batch), threads, emit)


class _Lower(Matrix):
    """A matrix seen as its lower factor, though it may be the upper one."""

    def __init__(self, array: Array, at: Sequence[Scalar], lower: bool) -> None:
        super().__init__(array, at)
        self.lower = lower

    def __getitem__(self, place: Sequence[Scalar]) -> Scalar:
        i, j = place
        return super().__getitem__((i, j)) if self.lower else super().__getitem__((j, i)).conjugate()

    def __setitem__(self, place: Sequence[Scalar], value: Scalar) -> None:
        i, j = place
        if self.lower:
            super().__setitem__((i, j), value)
        else:
            super().__setitem__((j, i), value.conjugate())


def write_triangular_solve(job: Job) -> None:
    """Row after row of the unknowns: divide by the pivot, subtract from the rows that are left."""
    op = job.op
    a, b = op.operands
    left, lower, unit = (
        ir.BoolAttr(op.attributes[name]).value for name in ("left_side", "lower", "unit_diagonal")
    )
    transpose = str(op.attributes["transpose_a"])
    # x op(a) = b is op(a)^T x^T = b^T
    swapped = ("NO_TRANSPOSE" not in transpose) == left
    forward = lower != swapped
    *batch, rows, columns = b.type.shape
    if not left:
        rows, columns = columns, rows
    chunks = -(-columns // _COLUMNS)

    def emit(kernel: Kernel) -> None:
        *at, chunk = split(block(), [*batch, chunks])
        across, down = thread(), thread("y")
        column = chunk * _COLUMNS + across
        matrix = Matrix(job.array(kernel, a), at)
        given, x = (Matrix(job.array(kernel, v), at) for v in (b, op.results[0]))

        def coefficient(i: Scalar, j: Scalar) -> Scalar:
            value = matrix[(j, i) if swapped else (i, j)]
            return value.conjugate() if "ADJOINT" in transpose else value

        def place(i: Scalar) -> tuple[Scalar, Scalar]:
            return (i, column) if left else (column, i)

        inside = column < columns
        with when(inside), loop(down, rows, _ROWS) as i:
            x[place(i)] = given[place(i)]
        if unit or not forward:  # else the first rows are divided by those who copied them
            synchronize()
        with loop(0, rows) as step:
            i = step if forward else rows - 1 - step
            if not unit:
                with when(inside & down.equals(0)):
                    x[place(i)] = x[place(i)] / coefficient(i, i)
                synchronize()
            with when(inside), loop(down + step + 1, rows, _ROWS) as other:
                row = other if forward else rows - 1 - other
                x[place(row)] = x[place(row)] - coefficient(row, i) * x[place(i)]
            if unit:  # else the next row is divided by those who were last to subtract from it
                synchronize()

    job.launch(math.prod(batch) * chunks, (_COLUMNS, _ROWS), emit)


def write_tridiagonal_solve(job: Job) -> None:
    """Gauss's algorithm with row interchanges, as LAPACK's gtsv: a thread for each system."""
    op = job.op
    *batch, n, columns = op.operands[3].type.shape
    element = op.operands[3].type.element_type
    systems = math.prod(batch)
    lower, main, upper, second = (job.scratch([systems, n], element) for _ in range(4))

    def work(kernel: Kernel) -> Callable[[Scalar], None]:
        parts = [job.array(kernel, v, [systems, n]) for v in list(op.operands)[:3]]
        dl, d, du, du2 = (job.array(kernel, part) for part in (lower, main, upper, second))
        given, x = (job.array(kernel, v, [systems, n, columns]) for v in (op.operands[3], op.results[0]))
        bit = ir.IntegerType.get_signless(1)

        def one(s: Scalar) -> None:
            with loop(0, n) as i:
                for source, target in zip(parts, (dl, d, du), strict=True):
                    target[s, i] = source[s, i]
                du2[s, i] = constant(0, element)
                with loop(0, columns) as c:
                    x[s, i, c] = given[s, i, c]

            def eliminate(i: Scalar, singular: Scalar) -> list[Scalar]:
                below = dl[s, i + 1]
                swaps = size(d[s, i]) < size(below)
                pivot, other = choose(swaps, below, d[s, i]), choose(swaps, d[s, i], below)
                up, under = du[s, i], d[s, i + 1]
                far = choose(i < n - 2, du[s, i + 1], 0)
                zero = size(pivot).equals(0)
                factor = other / choose(zero, constant(1, element), pivot)
                d[s, i], du[s, i] = pivot, choose(swaps, under, up)
                du2[s, i] = choose(swaps, far, 0)
                d[s, i + 1] = choose(swaps, up, under) - factor * choose(swaps, under, up)
                du[s, i + 1] = choose(swaps, -(factor * far), far)
                with loop(0, columns) as c:
                    here, there = x[s, i, c], x[s, i + 1, c]
                    x[s, i, c] = choose(swaps, there, here)
                    x[s, i + 1, c] = choose(swaps, here, there) - factor * choose(swaps, there, here)
                return [singular | zero]

            def less(rest: Scalar, band: Array, away: int, i: Scalar, c: Scalar) -> Scalar:
                return select(
                    i + away < n, lambda: [rest - band[s, i] * x[s, i + away, c]],
                    lambda: [rest], [element],
                )[0]  # fmt: skip

            (singular,) = fold(0, n - 1, [constant(False, bit)], eliminate)
            singular = singular | size(d[s, n - 1]).equals(0)
            with loop(0, n) as step:
                i = n - 1 - step
                with loop(0, columns) as c:
                    rest = x[s, i, c]
                    for away, band in ((1, du), (2, du2)):
                        rest = less(rest, band, away, i, c)
                    x[s, i, c] = choose(singular, math.nan, rest / d[s, i])

        return one

    job.each(systems, work)


def write_cholesky_update(job: Job) -> None:
    """Givens rotations that bring a vector into an upper factor, row after row."""
    op = job.op
    *batch, n, _ = op.operands[0].type.shape
    element = signless(op.operands[0].type.element_type)
    threads = threads_for(4 * n)
    added = job.scratch([math.prod(batch), n], element)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        given, factor = (Matrix(job.array(kernel, v), at) for v in (op.operands[0], op.results[0]))
        vector, w = job.array(kernel, op.operands[1]), job.array(kernel, added)

        copy_matrix(given, factor, [n, n], threads)

        def copy(i: Scalar) -> None:
            w[block(), i] = vector[[*at, i]]

        share(n, threads, copy)
        synchronize()
        with loop(0, n) as k:
            a, b = factor[k, k], w[block(), k]
            length = (a * a + b * b).sqrt()
            none = length.equals(0)
            safe = choose(none, constant(1, element), length)
            c, s = choose(none, constant(1, element), a / safe), b / safe
            synchronize()

            def rotate(item: Scalar) -> None:
                j = k + item
                above, below = factor[k, j], w[block(), j]
                factor[k, j] = c * above + s * below
                w[block(), j] = c * below - s * above

            share(n - k, threads, rotate)
            synchronize()

    job.launch(math.prod(batch), threads, emit)
