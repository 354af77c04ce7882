"""Elements of a job's values, computed where they are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamina.dialects.vendors import ir
from lamina.passes.emit.loops import cast
from lamina.passes.emit.scalars import Scalar
from lamina.passes.kernels.gpu.device.job import Job, signless
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.stablehlo.analysis.elements import element_of


def element_at(
    job: Job, kernel: Kernel, value: ir.Value, at: Sequence[ir.Value],
    known: Mapping[ir.Value, ir.Value],
) -> ir.Value:  # fmt: skip
    """`element_of` a value of the job's function."""

    def load(array: ir.Value, position: Sequence[ir.Value]) -> ir.Value:
        return job.array(kernel, array)[[Scalar(i) for i in position]].value

    found = element_of(value, at, known, load)
    return cast(found, signless(found.type))
