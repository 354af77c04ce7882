"""The kernels of `stablehlo.select_and_scatter`: which element each window selects, then for each
element of the result what the windows that selected it add, window after window as on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lamina.dialects.vendors import ir
from lamina.passes.emit.scalars import Scalar, choose, constant, flat, fold, index, select, split
from lamina.passes.kernels.gpu.device.job import Job, signless
from lamina.passes.kernels.gpu.device.kernels import Kernel
from lamina.passes.stablehlo.lower.lower_select_and_scatter import numbers, padding


def write_select_and_scatter(job: Job) -> None:
    """See the module's docstring."""
    windows = _Windows(job)
    job.each(math.prod(windows.counts), windows.choosing)
    job.each(math.prod(windows.shape), windows.adding)


class _Windows:
    """The windows of an op, whose starts are `strides` apart, the first of them `low` before the array."""

    def __init__(self, job: Job) -> None:
        self._job, op = job, job.op
        self._operand, self._source, self._initial = op.operands
        self.shape, self.counts = list(self._operand.type.shape), list(self._source.type.shape)
        rank = len(self.shape)
        self._sizes = numbers(op, "window_dimensions", [1] * rank)
        self._strides = numbers(op, "window_strides", [1] * rank)
        self._low = [pair[0] for pair in padding(op, rank)]
        self._word = ir.IntegerType.get_signless(64 if math.prod(self.shape) >= 1 << 31 else 32)
        self._bit = ir.IntegerType.get_signless(1)
        self._element = signless(self._operand.type.element_type)
        self._selected = job.scratch([math.prod(self.counts)], self._word)

    def choosing(self, kernel: Kernel) -> Callable[[Scalar], None]:
        """For the number of a window: notes the place of the element that it selects."""
        job, select_rule = self._job, self._job.op.regions[0]
        values, places = job.array(kernel, self._operand), job.array(kernel, self._selected)

        def one(number: Scalar) -> None:
            windows = split(number, self.counts)
            starts = [at * s - p for at, s, p in zip(windows, self._strides, self._low, strict=True)]

            def candidate(item: Scalar, best: Scalar, place: Scalar) -> list[Scalar]:
                at = [s + o for s, o in zip(starts, split(item, self._sizes), strict=True)]

                def consider() -> Sequence[Scalar]:
                    value = values[at]
                    (keep,) = job.apply(select_rule, [best, value])
                    keep = keep & (place >= 0)
                    return [choose(keep, best, value), choose(keep, place, flat(at, self.shape))]

                types = [self._element, ir.IndexType.get()]
                return select(_inside(at, self.shape, self._bit), consider, lambda: [best, place], types)

            none = [constant(0, self._element), index(-1)]
            _, place = fold(0, math.prod(self._sizes), none, candidate)
            places[number] = place.to(self._word)

        return one

    def adding(self, kernel: Kernel) -> Callable[[Scalar], None]:
        """For the place of an element: adds up what the windows give that selected it."""
        job, bit = self._job, self._bit
        places, given = job.array(kernel, self._selected), job.array(kernel, self._source)
        start, result = job.array(kernel, self._initial), job.array(kernel, job.op.results[0])
        # Window w covers place p where w * stride - low <= p < w * stride - low + size.
        around = [-(-size // stride) for size, stride in zip(self._sizes, self._strides, strict=True)]

        def one(number: Scalar) -> None:
            here = split(number, self.shape)
            last = [(at + p) // s for at, p, s in zip(here, self._low, self._strides, strict=True)]

            def consider(item: Scalar, total: Scalar) -> list[Scalar]:
                at = [
                    last_ - (count - 1) + back
                    for last_, count, back in zip(last, around, split(item, around), strict=True)
                ]

                def selects() -> Sequence[Scalar]:
                    return [places[flat(at, self.counts)].to(ir.IndexType.get()).equals(number)]

                def add() -> Sequence[Scalar]:
                    return job.apply(job.op.regions[1], [total, given[at]])

                (mine,) = select(
                    _inside(at, self.counts, bit), selects, lambda: [constant(False, bit)], [bit]
                )
                return select(mine, add, lambda: [total], [self._element])

            (total,) = fold(0, math.prod(around), [start[()]], consider)
            result[here] = total

        return one


def _inside(at: Sequence[Scalar], shape: Sequence[int], bit: ir.Type) -> Scalar:
    inside = constant(True, bit)
    for place, size in zip(at, shape, strict=True):
        inside = inside & (place >= 0) & (place < size)
    return inside
