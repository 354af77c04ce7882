"""Whether an op can be tiled: a part of it is the same op on parts of its operands."""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.find import find_ops
from lamina.passes.linalg.analysis.structure import Generic


def can_be_done_in_parts(generic: Generic) -> bool:
    """Whether a generic reduces nothing, indexes its operands by dimensions and constants alone, and
    computes with no index."""
    if any(generic.reductions):
        return False
    maps = (*generic.input_maps, *generic.output_maps)
    plain = ir.AffineDimExpr | ir.AffineConstantExpr
    return all(
        isinstance(expression, plain) for map_ in maps for expression in map_.results
    ) and not find_ops(generic.op, "linalg.index", "memref.load")
