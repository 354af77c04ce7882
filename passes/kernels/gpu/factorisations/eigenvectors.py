"""The kernels of eigenvalues and eigenvectors of any square matrices, from their Schur forms.

Eigenvectors of the triangle are found by substitution, a thread for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lamina.dialects.attributes import flag
from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import (
    Scalar,
    choose,
    complex_of,
    constant,
    fold,
    index,
    loop,
    split,
    when,
)
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel, Scratch
from lamina.passes.kernels.gpu.device.thread_numbers import block, synchronize, thread
from lamina.passes.kernels.gpu.factorisations.matrices import (
    Matrix,
    absolute,
    complex_number,
    epsilon,
    real_type,
    scaled,
    share,
    threads_for,
)
from lamina.passes.kernels.gpu.factorisations.qr_steps import Iteration, rotation_to_zero
from lamina.passes.kernels.gpu.factorisations.schur import launch_schur


def write_eig(job: Job) -> None:
    """Eigenvalues, then left and right eigenvectors as asked."""
    op = job.op
    *batch, n, _ = op.operands[0].type.shape
    given, element = op.operands[0].type.element_type, op.results[0].type.element_type
    shape = [*batch, n, n]
    triangle, product = (job.scratch(shape, given) for _ in range(2))
    scales = job.scratch([math.prod(batch)], real_type(given))
    launch_schur(job, triangle, product, scales)
    upper, basis = triangle, product
    if given != element:
        upper, basis = (job.scratch(shape, element) for _ in range(2))
        _launch_complex(job, triangle, product, upper, basis)
    values, *vectors = op.results

    def work(kernel: Kernel) -> Callable[[Scalar], None]:
        t, found, by = (job.array(kernel, part) for part in (upper, values, scales))

        def one(item: Scalar) -> None:
            at = split(item, [*batch, n])
            found[at] = scaled(t[[*at, at[-1]]], by[item // n,])

        return one

    job.each(math.prod(batch) * n, work)
    sides = [side for side in ("left", "right") if flag(op, side)]
    for side, result in zip(sides, vectors, strict=True):
        _launch_vectors(job, upper, basis, result, side == "left")


def _launch_complex(
    job: Job, triangle: Scratch, product: Scratch, upper: Scratch, basis: Scratch
) -> None:
    """A real Schur form as a complex one: pairs on the diagonal are rotated apart. The eigenvalues
    of a pair are conjugate to the last bit, that with the positive imaginary part first."""
    *batch, n, _ = job.op.operands[0].type.shape
    element = upper.type.element_type
    threads = threads_for(n * n)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        t, q, u, v = (
            Matrix(job.array(kernel, part), at) for part in (triangle, product, upper, basis)
        )

        def copy(item: Scalar) -> None:
            i, j = split(item, [n, n])
            for real, whole in ((t, u), (q, v)):
                part = real[i, j]
                whole[i, j] = complex_of(part, part - part)  # 0, or NaN beside NaN

        share(n * n, threads, copy)
        synchronize()
        iteration = Iteration(u, v, n, threads)
        with loop(0, n - 1) as k:
            below, across = t[k + 1, k], t[k, k + 1]
            with when(below.differs(0) & below.equals(below)):
                # (across, i w) is the eigenvector of the block's eigenvalue a + i w.
                w = absolute(below).sqrt() * absolute(across).sqrt()
                c, s, _ = rotation_to_zero(complex_number(across, element), complex_of(w - w, w))
                iteration.rotate(k, c, s, k + 1)
                synchronize()
                with when(thread().equals(0)):
                    u[k, k] = complex_of(t[k, k], w)
                    u[k + 1, k + 1] = complex_of(t[k, k], -w)
                    u[k + 1, k] = constant(0, element)

    job.launch(math.prod(batch), threads, emit)


def _launch_vectors(
    job: Job, upper: Scratch, basis: Scratch, result: ir.Value, left: bool
) -> None:
    """Eigenvectors of length 1, whose greatest element is real: a thread for each."""
    *batch, n, _ = job.op.operands[0].type.shape
    element = upper.type.element_type
    solutions = job.scratch([*batch, n, n], element)

    def work(kernel: Kernel) -> Callable[[Scalar], None]:
        arrays = [job.array(kernel, part) for part in (upper, basis, solutions, result)]

        def one(item: Scalar) -> None:
            *at, k = split(item, [*batch, n])
            t, q, y, v = (Matrix(array, at) for array in arrays)
            _solve_triangle(t, y, k, n, left)
            _turn_back(q, y, v, k, n, element, left)

        return one

    job.each(math.prod(batch) * n, work)


def _solve_triangle(t: Matrix, y: Matrix, k: Scalar, n: int, left: bool) -> None:
    """Column k of y: the eigenvector of the triangle t for its eigenvalue k, by substitution."""
    value = t[k, k]
    element, real = value.type, real_type(value.type)
    size = fold(0, n, [constant(0, real)], lambda i, s: [s + absolute(t[i, i])])[0]
    least = choose(size > 0, size, constant(1, real)) * epsilon(real)
    with loop(0, n) as i:
        y[i, k] = choose(i.equals(k), constant(1, element), 0)

    def substitute(i: Scalar, low: Scalar, high: Scalar) -> None:
        def add(j: Scalar, total: Scalar) -> list[Scalar]:
            factor = t[j, i].conjugate() if left else t[i, j]
            return [total + factor * y[j, k]]

        (total,) = fold(low, high, [constant(0, element)], add)
        gap = t[i, i] - value
        gap = choose(absolute(gap) < least, complex_number(least, element), gap)
        found = -total / (gap.conjugate() if left else gap)
        y[i, k] = found
        # Where eigenvalues are nearly the same, elements grow with each step.
        with when(absolute(found) > 1 / epsilon(real)):
            by = 1 / absolute(found)
            with loop(0, n) as j:
                y[j, k] = scaled(y[j, k], by)

    if left:
        with loop(k + 1, n) as i:
            substitute(i, k, i)
    else:
        with loop(0, k) as step:
            i = k - 1 - step
            substitute(i, i + 1, k + 1)


def _turn_back(
    q: Matrix, y: Matrix, v: Matrix, k: Scalar, n: int, element: ir.Type, left: bool
) -> None:
    """Column k of v: q y, of length 1, turned so that its greatest element is real."""
    real = real_type(element)

    def element_of(i: Scalar) -> Scalar:
        low, high = (k, index(n)) if left else (index(0), k + 1)
        zero = constant(0, element)
        return fold(low, high, [zero], lambda j, s: [s + q[i, j] * y[j, k]])[0]

    def note(i: Scalar, length: Scalar, best: Scalar, turn: Scalar) -> list[Scalar]:
        mine = element_of(i)
        v[i, k] = mine
        norm = mine.norm()
        return [length + norm, choose(norm > best, norm, best), choose(norm > best, mine, turn)]

    zero = constant(0, real)
    length, best, turn = fold(0, n, [zero, zero, constant(1, element)], note)
    by = turn.conjugate() / complex_number(length.sqrt() * best.sqrt(), element)
    with loop(0, n) as i:
        found = v[i, k] * by
        same = (v[i, k] - turn).norm().equals(0)
        v[i, k] = choose(same, complex_number(found.real, element), found)
