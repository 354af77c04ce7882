"""Builders of ops on memrefs."""

from __future__ import annotations

import math

from lamina.dialects.vendors import ir


def reshaped(buffer: ir.Value, wanted: ir.MemRefType) -> ir.Value:
    """The same dense buffer under another shape; element types and sizes are equal."""
    if buffer.type == wanted:
        return buffer
    shape = list(wanted.shape)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return ir.Operation.create(
        "memref.reinterpret_cast",
        results=[wanted],
        operands=[buffer],
        attributes={
            "static_offsets": ir.DenseI64ArrayAttr.get([0]),
            "static_sizes": ir.DenseI64ArrayAttr.get(shape),
            "static_strides": ir.DenseI64ArrayAttr.get(strides),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        },
    ).result
