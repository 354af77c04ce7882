"""Turn the `gpu.func`s of a module into functions on NVVM's registers, barriers and shuffles.

    gpu.func @f_0(...) kernel { gpu.thread_id x; gpu.barrier }
        ->  func.func @f_0(...) attributes {lamina.block} { nvvm.read.ptx.sreg.tid.x; nvvm.barrier }
What is in a `gpu.module` moves out of it: from here on the passes of any other kernel do. Shared
buffers are globals of memory space 3. Block sizes are kept for `llvm-finish-device-kernels`.

example: test/passes/kernels/gpu/device/to_nvvm.mlir
"""

from __future__ import annotations

from lamina.dialects.attributes import DYNAMIC_SHARED_BYTES, TENSOR_MAPS
from lamina.dialects.vendors import arith, ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.framework.find import find_ops

_REGISTERS = {"gpu.thread_id": "tid", "gpu.block_id": "ctaid"}
BLOCK = "lamina.block"
_KEPT = ("sym_name", "function_type", TENSOR_MAPS, DYNAMIC_SHARED_BYTES)


class ToNvvm(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for device in find_ops(module, "gpu.module"):
            with ir.InsertionPoint(device), device.location:
                for view in list(device.regions[0].blocks[0].operations):
                    if view.operation.name == "gpu.func":
                        _function(view.operation)
                    else:
                        view.operation.clone()
            device.erase()
        for op in find_ops(module, "gpu.thread_id", "gpu.block_id", "gpu.barrier", "gpu.shuffle"):
            with ir.InsertionPoint(op), op.location:
                for old, new in zip(op.results, _lowered(op), strict=True):
                    old.replace_all_uses_with(new)
            op.erase()


def _function(op: ir.Operation) -> None:
    attributes = {name: op.attributes[name] for name in _KEPT if name in op.attributes}
    attributes[BLOCK] = op.attributes["known_block_size"]
    function = ir.Operation.create("func.func", regions=1, attributes=attributes)
    op.regions[0].blocks[0].append_to(function.regions[0])
    block = function.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    with ir.InsertionPoint(end):
        ir.Operation.create("func.return")
    end.erase()


def _lowered(op: ir.Operation) -> list[ir.Value]:
    i32 = ir.IntegerType.get_signless(32)
    if op.name in _REGISTERS:
        dimension = str(op.attributes["dimension"]).rstrip(">").rsplit(" ", 1)[1]
        register = f"nvvm.read.ptx.sreg.{_REGISTERS[op.name]}.{dimension}"
        read = ir.Operation.create(register, results=[i32]).result
        return [arith.IndexCastUIOp(ir.IndexType.get(), read).result]
    if op.name == "gpu.barrier":
        ir.Operation.create("nvvm.barrier")
        return []
    if "xor" not in str(op.attributes["mode"]) or len(list(op.results[1].uses)):
        raise CompileError.at(op, "only shuffles by xor that all lanes take part in")
    value, offset, _ = op.operands
    everyone = arith.ConstantOp(i32, -1).result
    whole_warp = arith.ConstantOp(i32, 31).result
    moved = ir.Operation.create(
        "nvvm.shfl.sync",
        results=[value.type],
        operands=[everyone, value, offset, whole_warp],
        attributes={"kind": ir.Attribute.parse("#nvvm<shfl_kind bfly>")},
    ).result
    return [moved, arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result]
