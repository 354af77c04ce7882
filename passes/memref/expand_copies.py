"""Replace `memref.copy` by `linalg.copy`, which becomes loops.

A strided `memref.copy` would become a call of `memrefCopy`, which no runtime of ours has; LLVM
makes a `memcpy` of the loops over dense memory again. A copy of a buffer onto itself goes away.

example: test/passes/memref/expand_copies.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.linalg.analysis.structure import make_copy


class ExpandCopies(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "memref.copy"):
            source, destination = op.operands
            if source != destination:
                with ir.InsertionPoint(op), op.location:
                    make_copy(source, destination)
            op.erase()
