"""Builders of reductions, sliding windows and sorting."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.builders.creation import (
    Body,
    Value,
    create,
    dims_attribute,
    fill,
    i64,
    padding_attribute,
    scalar_types,
    tensor,
)
from lamina.dialects.vendors import ir


def reduce(
    operands: Sequence[Value], inits: Sequence[Value], dimensions: Sequence[int], body: Body
) -> list[Value]:
    """operands folded along dimensions with body(*lhs, *rhs) on scalars, from scalar inits."""
    gone = set(dimensions)
    results = [
        tensor([s for i, s in enumerate(x.type.shape) if i not in gone], init.type.element_type)
        for x, init in zip(operands, inits, strict=True)
    ]
    op = create(
        "stablehlo.reduce",
        results=results,
        operands=[*operands, *inits],
        attributes={"dimensions": dims_attribute(dimensions)},
        regions=1,
    )
    fill(op.regions[0], scalar_types(inits) * 2, body)
    return list(op.results)


def reduce_window(
    operands: Sequence[Value],
    inits: Sequence[Value],
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    base_dilations: Sequence[int],
    window_dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
    body: Body,
) -> list[Value]:
    """operands folded over sliding windows with body(*lhs, *rhs) on scalars."""
    shape = [
        _window_count(*size)
        for size in zip(
            operands[0].type.shape, window_dimensions, window_strides, base_dilations,
            window_dilations, padding, strict=True,
        )
    ]  # fmt: skip
    op = create(
        "stablehlo.reduce_window",
        results=[tensor(shape, init.type.element_type) for init in inits],
        operands=[*operands, *inits],
        attributes={
            "window_dimensions": dims_attribute(window_dimensions),
            "window_strides": dims_attribute(window_strides),
            "base_dilations": dims_attribute(base_dilations),
            "window_dilations": dims_attribute(window_dilations),
            "padding": padding_attribute(padding),
        },
        regions=1,
    )
    fill(op.regions[0], scalar_types(inits) * 2, body)
    return list(op.results)


def _window_count(
    size: int, window: int, stride: int, base: int, dilation: int, pad: tuple[int, int]
) -> int:
    span = pad[0] + pad[1] + ((size - 1) * base + 1 if size else 0)
    reach = (window - 1) * dilation + 1 if window else 0
    return 0 if span < reach else (span - reach) // stride + 1


def select_and_scatter(
    operand: Value,
    source: Value,
    init: Value,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    select: Body,
    scatter: Body,
) -> Value:
    """Each source element combined by scatter into the place that select picks in its window."""
    op = create(
        "stablehlo.select_and_scatter",
        results=[operand.type],
        operands=[operand, source, init],
        attributes={
            "window_dimensions": dims_attribute(window_dimensions),
            "window_strides": dims_attribute(window_strides),
            "padding": padding_attribute(padding),
        },
        regions=2,
    )
    fill(op.regions[0], scalar_types([operand]) * 2, select)
    fill(op.regions[1], scalar_types([source]) * 2, scatter)
    return op.result


def sort(
    operands: Sequence[Value], dimension: int, is_stable: bool, comparator: Body
) -> list[Value]:
    """operands sorted together; comparator(lhs0, rhs0, lhs1, rhs1, ...): does lhs go first?"""
    op = create(
        "stablehlo.sort",
        results=[x.type for x in operands],
        operands=list(operands),
        attributes={"dimension": i64(dimension), "is_stable": ir.BoolAttr.get(is_stable)},
        regions=1,
    )
    fill(op.regions[0], [t for t in scalar_types(operands) for _ in range(2)], comparator)
    return list(op.results)
