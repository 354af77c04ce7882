"""Which generics reduce, seen without reading them: most do not, and are of no interest to passes
about reductions and contractions."""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.linalg.analysis.structure import generics_on_buffers, reductions_of


def reducing_on_buffers(module: ir.Module) -> list[ir.Operation]:
    """Every bufferised `linalg.generic` of a module that reduces a dimension, in order of their text."""
    return [op for op in generics_on_buffers(module) if reduced_dimensions(op)]


def reduced_dimensions(op: ir.Operation) -> int:
    """How many dimensions a `linalg.generic` reduces."""
    return sum(reductions_of(op.attributes["iterator_types"]))
