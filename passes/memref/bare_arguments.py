"""Have functions take buffers as bare pointers, where they are lowered to the llvm dialect.

Sets `llvm.bareptr`, by which `convert-to-llvm` knows it; what it converts functions with has no
option for it. Says nothing of functions without buffers.

example: test/passes/memref/bare_arguments.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass


class BareArguments(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in module.body.operations:
            function = op.operation
            if function.name == "func.func":
                type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
                if any(isinstance(of, ir.MemRefType) for of in type_.inputs):
                    function.attributes["llvm.bareptr"] = ir.UnitAttr.get()
