"""Making a `linalg.contract`, which element-wise fusion leaves apart from what makes its factors."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import arith, ir, tensor
from lamina.passes.linalg.analysis.structure import make_copy


def contract(
    factors: Sequence[ir.Value], maps: Sequence[ir.AffineMap], shape: Sequence[int]
) -> ir.Value:
    """The sums of products of two factors of floats, by the maps of these and of the result."""
    element = factors[0].type.element_type
    zero = arith.ConstantOp(element, ir.FloatAttr.get(element, 0.0)).result
    sums = make_copy(zero, tensor.EmptyOp(list(shape), element).result).result
    op = ir.Operation.create(
        "linalg.contract",
        results=[sums.type],
        operands=[*factors, sums],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
        },
        regions=1,
    )
    block = op.regions[0].blocks.append(element, element, element)
    with ir.InsertionPoint(block):
        a, b, total = block.arguments
        total = arith.AddFOp(total, arith.MulFOp(a, b).result).result
        ir.Operation.create("linalg.yield", operands=[total])
    return op.result
