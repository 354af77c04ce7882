"""Kernels that are one collective: a call of the runtime's `lamina_collective`.

void lamina_collective(i32 kind, ptr operand, ptr result, ptr words)
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.stablehlo.collectives.collective import Collective


def collective_kernel(function: ir.Operation, op: ir.Operation, symbol: str) -> str:
    """LLVM IR of a kernel that holds one collective."""
    found = Collective.of(op)
    if found is None:
        raise CompileError.at(op, "is no collective that the runtime does")
    count = len(function.regions[0].blocks[0].arguments)
    parameters = ", ".join(f"ptr %p{i}" for i in range(count + 2))
    words = ", ".join(f"i64 {word}" for word in found.words or (0,))
    size = len(found.words) or 1
    operand = "%p0" if op.operands else "null"
    return (
        "declare void @lamina_collective(i32, ptr, ptr, ptr)\n"
        f"@words = private constant [{size} x i64] [{words}], align 8\n"
        f"define void @{symbol}({parameters}) {{\n"
        f"  call void @lamina_collective(i32 {found.kind}, ptr {operand}, ptr %p{count}, "
        "ptr @words)\n  ret void\n}\n"
    )
