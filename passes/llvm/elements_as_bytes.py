"""Load and store booleans and integers of less than eight bits as the bytes that they are in memory.

LLVM's vectoriser leaves loops alone that load or store types whose size in memory is not their width,
and vectors of them are packed bits to LLVM. A load becomes a load of i8 and a truncation, a store an
extension and a store of i8; address computations step over i8. Leaves everything else alone.

example: test/passes/llvm/elements_as_bytes.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops

_LOADS = ("llvm.load", "llvm.intr.masked.load")
_STORES = ("llvm.store", "llvm.intr.masked.store")


class ElementsAsBytes(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        wide_of: dict[ir.Attribute | ir.Type, ir.Type | None] = {}  # few types, many ops
        for op in find_ops(module, "llvm.getelementptr"):
            type_ = op.attributes["elem_type"]
            if type_ not in wide_of:
                wide_of[type_] = _in_memory(ir.TypeAttr(type_).value)
            if (wide := wide_of[type_]) is not None:
                op.attributes["elem_type"] = ir.TypeAttr.get(wide)
        for op in find_ops(module, *_LOADS, *_STORES):
            is_load = op.name in _LOADS
            type_ = op.results[0].type if is_load else op.operands[0].type
            if type_ not in wide_of:
                wide_of[type_] = _in_memory(type_)
            if (wide := wide_of[type_]) is not None:
                (_load if is_load else _store)(op, wide)


def _in_memory(type_: ir.Type) -> ir.Type | None:
    """Bytes in place of a type that is narrower; None for all others."""
    if isinstance(type_, ir.VectorType):
        element = _in_memory(type_.element_type)
        return element and ir.VectorType.get(type_.shape, element)
    is_narrow = isinstance(type_, ir.IntegerType) and type_.width < 8
    return ir.IntegerType.get_signless(8) if is_narrow else None


def _load(op: ir.Operation, wide: ir.Type) -> None:
    with ir.InsertionPoint(op), op.location:
        place, *others = op.operands
        if others:  # the mask, and what is loaded where it is off
            others[1:] = [_extended(value, wide) for value in others[1:]]
        loaded = remade(op, [wide], [place, *others])
        value = ir.Operation.create("llvm.trunc", [op.results[0].type], [loaded.result]).result
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _store(op: ir.Operation, wide: ir.Type) -> None:
    with ir.InsertionPoint(op), op.location:
        value, *others = op.operands
        remade(op, [], [_extended(value, wide), *others])
    op.erase()


def _extended(value: ir.Value, wide: ir.Type) -> ir.Value:
    return ir.Operation.create("llvm.zext", [wide], [value]).result
