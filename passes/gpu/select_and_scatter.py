"""The kernels of `stablehlo.select_and_scatter`: which element each window selects, then for each
element of the result what the windows that selected it add, window after window as on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lamina.dialects.vendors import ir
from lamina.passes.gpu.job import Job, signless
from lamina.passes.gpu.kernels import Kernel
from lamina.passes.scalars import Scalar, choose, constant, flat, fold, index, select, split
from lamina.passes.stablehlo.lower_select_and_scatter import numbers, padding


def write_select_and_scatter(job: Job) -> None:
    """See the module's docstring."""
    op = job.op
    operand, source, initial = op.operands
    shape, windows = list(operand.type.shape), list(source.type.shape)
    rank = len(shape)
    window = numbers(op, "window_dimensions", [1] * rank)
    strides = numbers(op, "window_strides", [1] * rank)
    low = [pair[0] for pair in padding(op, rank)]
    word = ir.IntegerType.get_signless(64 if math.prod(shape) >= 1 << 31 else 32)
    bit = ir.IntegerType.get_signless(1)
    selected = job.scratch([math.prod(windows)], word)
    element = signless(operand.type.element_type)

    def choosing(kernel: Kernel) -> Callable[[Scalar], None]:
        values, places = job.array(kernel, operand), job.array(kernel, selected)

        def one(number: Scalar) -> None:
            starts = [at * s - p for at, s, p in zip(split(number, windows), strides, low, strict=True)]

            def candidate(item: Scalar, best: Scalar, place: Scalar) -> list[Scalar]:
                at = [s + o for s, o in zip(starts, split(item, window), strict=True)]

                def consider() -> Sequence[Scalar]:
                    value = values[at]
                    (keep,) = job.apply(op.regions[0], [best, value])
                    keep = keep & (place >= 0)
                    return [choose(keep, best, value), choose(keep, place, flat(at, shape))]

                types = [element, ir.IndexType.get()]
                return select(_inside(at, shape, bit), consider, lambda: [best, place], types)

            none = [constant(0, element), index(-1)]
            _, place = fold(0, math.prod(window), none, candidate)
            places[number] = place.to(word)

        return one

    def adding(kernel: Kernel) -> Callable[[Scalar], None]:
        places, given = job.array(kernel, selected), job.array(kernel, source)
        start, result = job.array(kernel, initial), job.array(kernel, op.results[0])
        # Window w covers place p where w * stride - low <= p < w * stride - low + size.
        counts = [-(-size // stride) for size, stride in zip(window, strides, strict=True)]

        def one(number: Scalar) -> None:
            here = split(number, shape)
            last = [(at + p) // s for at, p, s in zip(here, low, strides, strict=True)]

            def consider(item: Scalar, total: Scalar) -> list[Scalar]:
                at = [
                    last_ - (count - 1) + back
                    for last_, count, back in zip(last, counts, split(item, counts), strict=True)
                ]

                def selects() -> Sequence[Scalar]:
                    return [places[flat(at, windows)].to(ir.IndexType.get()).equals(number)]

                (mine,) = select(
                    _inside(at, windows, bit), selects, lambda: [constant(False, bit)], [bit]
                )

                def add() -> Sequence[Scalar]:
                    return job.apply(op.regions[1], [total, given[at]])

                return select(mine, add, lambda: [total], [element])

            (total,) = fold(0, math.prod(counts), [start[()]], consider)
            result[here] = total

        return one

    job.each(math.prod(windows), choosing)
    job.each(math.prod(shape), adding)


def _inside(at: Sequence[Scalar], shape: Sequence[int], bit: ir.Type) -> Scalar:
    inside = constant(True, bit)
    for place, size in zip(at, shape, strict=True):
        inside = inside & (place >= 0) & (place < size)
    return inside
