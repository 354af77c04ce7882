"""Mark functions of a GPU's module as LLVM should see them: kernels, their blocks, distinct pointers.

A function with `lamina.block` becomes a kernel (`nvvm.kernel`) for blocks of that size
(`nvvm.maxntid`) whose pointers are distinct and aligned to 16 bytes; it loses the attribute. Every
other function becomes internal and is inlined. Tensor cores' sums of integers wrap around, as
others do.

example: test/passes/llvm/finish_device_kernels.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.gpu.to_nvvm import BLOCK
from lamina.passes.loops import find_ops

_OVERFLOW = "intOverflowBehavior"


@dataclass(frozen=True)
class FinishDeviceKernels(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        pointer = ir.DictAttr.parse("{llvm.noalias, llvm.align = 16 : i64}")
        none = ir.DictAttr.get({})
        for op in find_ops(module, "nvvm.mma.sync"):
            if _OVERFLOW in op.attributes:
                op.attributes[_OVERFLOW] = ir.Attribute.parse("#nvvm.mma_int_overflow<wrapped>")
        for op in module.body.operations:
            function = op.operation
            if function.name != "llvm.func" or not function.regions[0].blocks:
                continue
            if BLOCK not in function.attributes:
                function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
                function.attributes["sym_visibility"] = ir.StringAttr.get("private")
                function.attributes["always_inline"] = ir.UnitAttr.get()
                continue
            arguments = function.regions[0].blocks[0].arguments
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(
                [pointer if str(argument.type) == "!llvm.ptr" else none for argument in arguments]
            )
            function.attributes["nvvm.kernel"] = ir.UnitAttr.get()
            function.attributes["nvvm.maxntid"] = function.attributes[BLOCK]
            del function.attributes[BLOCK]
