"""The kernels of Schur forms: QR steps (`qr_steps.py`), a block for each matrix."""

from __future__ import annotations

import math

from lamina.dialects.attributes import flag
from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import Scalar, choose, constant, split, when
from lamina.passes.kernels.gpu.device.job import Job
from lamina.passes.kernels.gpu.device.kernels import Kernel, Scratch
from lamina.passes.kernels.gpu.device.thread_numbers import block, synchronize, thread
from lamina.passes.kernels.gpu.factorisations.factorisations import SEARCHERS
from lamina.passes.kernels.gpu.factorisations.matrices import (
    Matrix,
    absolute,
    largest,
    real_type,
    scaled,
    share,
    threads_for,
)
from lamina.passes.kernels.gpu.factorisations.qr_steps import Iteration


def write_schur(job: Job) -> None:
    """The triangle, and the product of all transformations where somebody wants it."""
    launch_schur(job, job.op.results[0], job.op.results[1] if flag(job.op, "vectors") else None)


def launch_schur(
    job: Job, triangle: ir.Value | Scratch, product: ir.Value | Scratch | None,
    scales: Scratch | None = None,
) -> None:  # fmt: skip
    """The triangle of each matrix, over its largest element where `scales` gets that."""
    given = job.op.operands[0]
    *batch, n, _ = given.type.shape
    element, real = given.type.element_type, real_type(given.type.element_type)
    threads = threads_for(n * n)

    def emit(kernel: Kernel) -> None:
        at = split(block(), batch)
        x, h = (Matrix(job.array(kernel, v), at) for v in (given, triangle))
        z = None if product is None else Matrix(job.array(kernel, product), at)
        shared = job.shared(kernel, [threads], real)
        sums = job.shared(kernel, [SEARCHERS], real)

        scale = largest(shared, n * n, threads, lambda i: absolute(x[tuple(split(i, [n, n]))]))
        by = choose(scale > 0, scale, 1)

        def fill(item: Scalar) -> None:
            i, j = split(item, [n, n])
            h[i, j] = scaled(x[i, j], 1 / by)
            if z is not None:
                z[i, j] = choose(i.equals(j), constant(1, element), 0)

        share(n * n, threads, fill)
        synchronize()
        iteration = Iteration(h, z, n, threads)
        iteration.to_hessenberg(sums)
        left = iteration.run()
        bad = (left > 0) | (scale - scale).differs(0)
        spoilt = constant(math.nan, element)

        def finish(item: Scalar) -> None:
            i, j = split(item, [n, n])
            h[i, j] = choose(bad, spoilt, h[i, j] if scales is not None else scaled(h[i, j], by))
            if z is not None:
                z[i, j] = choose(bad, spoilt, z[i, j])

        share(n * n, threads, finish)
        if scales is not None:
            with when(thread().equals(0)):
                job.array(kernel, scales)[block(),] = by

    job.launch(math.prod(batch), threads, emit)
