"""Load and store booleans as the bytes that they are in memory.

LLVM's vectoriser leaves loops alone that load or store i1, whose size in memory is not its width. A
load becomes a load of i8 and a truncation, a store an extension and a store of i8; address
computations step over i8. Leaves everything else alone.

example: test/passes/llvm/booleans_as_bytes.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.loops import find_ops


@dataclass(frozen=True)
class BooleansAsBytes(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        bit, byte = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(8)
        for op in find_ops(module, "llvm.load", "llvm.store", "llvm.getelementptr"):
            if op.name == "llvm.getelementptr":
                if ir.TypeAttr(op.attributes["elem_type"]).value == bit:
                    op.attributes["elem_type"] = ir.TypeAttr.get(byte)
            elif op.name == "llvm.load" and op.results[0].type == bit:
                with ir.InsertionPoint(op), op.location:
                    loaded = _like(op, [byte], list(op.operands))
                    value = ir.Operation.create("llvm.trunc", [bit], [loaded.result]).result
                op.results[0].replace_all_uses_with(value)
                op.erase()
            elif op.name == "llvm.store" and op.operands[0].type == bit:
                with ir.InsertionPoint(op), op.location:
                    value = ir.Operation.create("llvm.zext", [byte], [op.operands[0]]).result
                    _like(op, [], [value, op.operands[1]])
                op.erase()


def _like(op: ir.Operation, results: list[ir.Type], operands: list[ir.Value]) -> ir.Operation:
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, results, operands, attributes)
