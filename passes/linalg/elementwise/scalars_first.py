"""Compute single numbers before what arrays are computed from.

    %1 = linalg.generic ins(%x, %s)                  %n = tensor.extract %t[]; %m = arith.subf %one, %n
    %n = tensor.extract %t[]                         %u = tensor.from_elements %m
    %m = arith.subf %one, %n                   ->    %1 = linalg.generic ins(%x, %s)
    %u = tensor.from_elements %m                     %2 = linalg.generic ins(%1, %u)
    %2 = linalg.generic ins(%1, %u)

A number is kept in memory, and what stands between two loops and touches memory keeps them apart: the
steps of an optimiser's update, which divide by 1 - decay ** steps, were loops of their own. Leaves
alone numbers that are made from arrays, or by anything with a body.

example: test/passes/linalg/elementwise/scalars_first.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass

_KEPT = "tensor.from_elements"
_SCALAR = ("arith.", "math.", "complex.", "tensor.extract", _KEPT)


class ScalarsFirst(Pass):
    """See the module's docstring."""

    only_with = frozenset(("tensor.from_elements",))

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            for region in function.operation.regions:
                for block in region.blocks:
                    self._move(block)

    def _move(self, block: ir.Block) -> None:
        """Move what needs only a block's arguments and each other to before its first other op."""
        first: ir.Operation | None = None
        for op in [inner.operation for inner in block.operations]:
            if first is None:
                if not _is_scalar(op):
                    first = op
            elif _is_scalar(op) and all(_is_there(value, first) for value in op.operands):
                op.move_before(first)
                self.count("moved")


def _is_scalar(op: ir.Operation) -> bool:
    if not op.name.startswith(_SCALAR) or len(op.regions):
        return False
    return op.name != _KEPT or not op.results[0].type.shape


def _is_there(value: ir.Value, first: ir.Operation) -> bool:
    """Whether a value of the op's block or around it is known before the op."""
    if isinstance(value.owner, ir.Block):
        return True
    maker = value.owner.operation
    return maker.block != first.block or maker.is_before_in_block(first)
