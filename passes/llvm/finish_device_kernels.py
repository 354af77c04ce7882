"""Mark functions of a GPU's module as LLVM should see them: kernels, their blocks, distinct pointers.

A function with `lamina.block` becomes a kernel (`nvvm.kernel`) for blocks of that size
(`nvvm.maxntid`) whose pointers are distinct and aligned to 16 bytes; it loses the attribute. Every
other function becomes internal and is inlined. Tensor cores' sums of integers wrap around, as
others do. Tensor maps (`lamina.tensor_maps`) are passed by value, and shared memory that the launch
asks for has no size of its own.

example: test/passes/llvm/finish_device_kernels.mlir
"""

from __future__ import annotations

from lamina.dialects.attributes import DYNAMIC_SHARED_BYTES, TENSOR_MAPS
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.kernels.gpu.device.to_nvvm import BLOCK

_OVERFLOW = "intOverflowBehavior"


class FinishDeviceKernels(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        pointer = ir.DictAttr.parse("{llvm.noalias, llvm.align = 16 : i64}")
        map_ = ir.DictAttr.parse(
            "{llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"
        )
        none = ir.DictAttr.get({})
        for op in find_ops(module, "llvm.mlir.global"):
            if "value" not in op.attributes and not op.regions[0].blocks:
                op.attributes["global_type"] = ir.Attribute.parse("!llvm.array<0 x i8>")
                op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
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
            given = [pointer if str(a.type) == "!llvm.ptr" else none for a in arguments]
            if TENSOR_MAPS in function.attributes:
                count = len(ir.ArrayAttr(function.attributes[TENSOR_MAPS]))
                given[-count:] = [map_] * count
                del function.attributes[TENSOR_MAPS]
            if DYNAMIC_SHARED_BYTES in function.attributes:  # then a block has the multiprocessor alone
                function.attributes["nvvm.minctasm"] = ir.Attribute.parse("1 : i32")
                del function.attributes[DYNAMIC_SHARED_BYTES]
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(given)
            function.attributes["nvvm.kernel"] = ir.UnitAttr.get()
            function.attributes["nvvm.maxntid"] = function.attributes[BLOCK]
            del function.attributes[BLOCK]
