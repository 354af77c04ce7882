"""What the kernels of scans share: how elements are read, combined and written."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.scalars import Array, Scalar, constant, select, when
from lamina.passes.kernels.gpu.device.job import Job, signless
from lamina.passes.stablehlo.analysis.scan_order import Scan, identity

EACH = 4  # neighbours that a thread takes
_FLOAT_OPS = {
    "add": arith.AddFOp, "multiply": arith.MulFOp, "maximum": arith.MaximumFOp,
    "minimum": arith.MinimumFOp,
}  # fmt: skip


class Scanning:
    """What all kinds share: how elements are read, combined and written."""

    def __init__(self, job: Job, scan: Scan) -> None:
        self.job, self.scan = job, scan
        of = job.op.operands[0].type
        self.element = signless(of.element_type)
        self.type = self.element
        if isinstance(self.element, ir.FloatType) and self.element.width < 32:
            self.type = ir.F32Type.get()
        self.identity = identity(scan.combiner, dtype_of(of))

    def neutral(self) -> Scalar:
        return constant(self.identity, self.type)

    def combine(self, a: Scalar, b: Scalar) -> Scalar:
        if a.is_float:
            return Scalar(_FLOAT_OPS[self.scan.combiner](a.value, b.value).result)
        return self.job.apply(self.job.op.regions[0], [a, b])[0]

    def widened(self, value: Scalar) -> Scalar:
        return value if self.type == self.element else Scalar(arith.ExtFOp(self.type, value.value).result)

    def narrowed(self, value: Scalar) -> Scalar:
        if self.type == self.element:
            return value
        return Scalar(arith.TruncFOp(self.element, value.value).result)

    def place(self, at: Scalar) -> Scalar:
        """Where the element is that comes `at`-th."""
        return self.scan.length - 1 - at if self.scan.reverse else at


class RowElements(Scanning):
    """Elements of rows along the dense axis."""

    @property
    def _is_whole(self) -> bool:
        """Whether a thread's elements are all there or none, and aligned together."""
        return self.scan.length % EACH == 0 and self.element.width >= 8

    def read(self, source: Array, row: Scalar, begin: Scalar) -> list[Scalar]:
        """A thread's neighbours from a place on, in the scan's order; neutral beyond the row's end."""
        types = [self.type] * EACH

        def nothing() -> list[Scalar]:
            return [self.neutral()] * EACH

        def together() -> Sequence[Scalar]:
            start = self.place(begin + (EACH - 1)) if self.scan.reverse else begin
            values = source.several([row, start], EACH)
            return [self.widened(v) for v in (values[::-1] if self.scan.reverse else values)]

        if self._is_whole:
            return select(begin < self.scan.length, together, nothing, types)

        def one(n: int) -> Scalar:
            inside = begin + n < self.scan.length
            return select(
                inside, lambda: [self.widened(source[row, self.place(begin + n)])],
                lambda: [self.neutral()], types[:1],
            )[0]  # fmt: skip

        return [one(n) for n in range(EACH)]

    def write_at(self, target: Array, row: Scalar, begin: Scalar, values: list[Scalar]) -> None:
        """Write a thread's neighbours, those that the row has."""
        values = [self.narrowed(value) for value in values]
        if self._is_whole:
            with when(begin < self.scan.length):
                start = self.place(begin + (EACH - 1)) if self.scan.reverse else begin
                target.set_several([row, start], values[::-1] if self.scan.reverse else values)
            return
        for n, value in enumerate(values):
            with when(begin + n < self.scan.length):
                target[row, self.place(begin + n)] = value
