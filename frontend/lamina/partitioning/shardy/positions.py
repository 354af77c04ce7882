"""Numbers of elements of which a device uses a part, counted from where that begins.

    %all = iota : 9xui64          ->   %part = iota : 3xi32
    %0 = dynamic_slice %all, %b   ->   %0 = convert (%part + %b) : 3xui64
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from lamina.partitioning.shardy.ops import walk

_IOTA, _SLICE = "stablehlo.iota", "stablehlo.dynamic_slice"


def count_parts(module: Any) -> None:
    """Replaces slices of numbers of elements by numbers of the slice's elements."""
    for op in list(walk(module.operation)):
        if op.name != _SLICE:
            continue
        whole = op.operands[0].owner
        if not isinstance(whole, ir.Block) and whole.name == _IOTA:
            with ir.InsertionPoint(op), op.location:
                _count(op, whole.operation)


def _count(op: Any, whole: Any) -> None:
    dim = int(ir.IntegerAttr(whole.attributes["iota_dimension"]).value)
    begin, result = op.operands[1 + dim], op.results[0]
    last = whole.results[0].type.shape[dim] - result.type.shape[dim]
    index = begin.type.element_type
    if last > (1 << (index.width - 1)) - 1:
        return
    shape = list(result.type.shape)
    of = ir.RankedTensorType.get(shape, index)
    limits = [_scalar(n, begin.type) for n in (0, last)]
    begin = stablehlo.clamp(limits[0], begin, limits[1])
    numbers = stablehlo.add(stablehlo.iota(of, dim), stablehlo.broadcast_in_dim(of, begin, []))
    result.replace_all_uses_with(stablehlo.convert(result.type, numbers))
    op.erase()
    if not any(True for _ in whole.results[0].uses):
        whole.erase()


def _scalar(value: int, of: Any) -> Any:
    return stablehlo.constant(
        ir.DenseElementsAttr.get_splat(of, ir.IntegerAttr.get(of.element_type, value))
    )
