"""Reduce windows that lie side by side as what they are together: dimensions of the array in another shape.

    %1 = stablehlo.reduce_window %0 of 2x2, every 2x2      %1 = stablehlo.reshape %0 : 8x6 -> 4x2x3x2
         : 8x6 -> 4x3                                ->    %2 = stablehlo.reduce %1 across dimensions = [1, 3]

Pooling is one kernel with what makes the array and what follows then, and goes through channels-first images in
full vectors. What windows leave over at the end of a dimension is cut off first. Leaves alone windows that
overlap, have gaps in or between them or reach into padding, and reductions of several arrays.

example: test/passes/stablehlo/algebra/reduce_windows.mlir
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import ints
from lamina.passes.stablehlo.canonicalize.rewriting import replace

_REDUCE_WINDOW = "stablehlo.reduce_window"


class ReduceWindows(Pass):
    """The pass `stablehlo-reduce-windows`."""

    only_with = frozenset(("stablehlo.reduce_window",))

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, _REDUCE_WINDOW):
            if len(op.results) == 1 and _lie_side_by_side(op):
                with ir.InsertionPoint(op), op.location:
                    result = _of_dimensions(op)
                replace(op, [result])
                self.count("reductions")


def _lie_side_by_side(op: ir.Operation) -> bool:
    """Whether each element is in one window at most, and in whole windows alone."""
    window = ints(op, "window_dimensions")
    rank = len(window)
    return (
        any(size > 1 for size in window)
        and all(size > 0 for size in shape_of(op.results[0].type))
        and _ints_or(op, "window_strides", [1] * rank) == window
        and all(
            of == 1 for name in ("base_dilations", "window_dilations") for of in _ints_or(op, name, [1] * rank)
        )
        and not any(_ints_or(op, "padding", [0]))
    )


def _ints_or(op: ir.Operation, name: str, other: list[int]) -> list[int]:
    return ints(op, name) if name in op.attributes else other


def _of_dimensions(op: ir.Operation) -> ir.Value:
    value, window, counts = op.operands[0], ints(op, "window_dimensions"), shape_of(op.results[0].type)
    whole = [size * count for size, count in zip(window, counts, strict=True)]
    if whole != list(shape_of(value.type)):
        value = hlo.slice(value, [0] * len(whole), whole, [1] * len(whole))
    shape: list[int] = []
    dimensions: list[int] = []
    for size, count in zip(window, counts, strict=True):
        shape.append(count)
        if size > 1:
            dimensions.append(len(shape))
            shape.append(size)
    reduction = ir.Operation.create(
        "stablehlo.reduce",
        results=[op.results[0].type],
        operands=[hlo.reshape(value, shape), op.operands[1]],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get(dimensions)},
        regions=1,
    )
    op.regions[0].blocks[0].append_to(reduction.regions[0])
    return reduction.result
