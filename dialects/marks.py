"""Attributes by which one pass tells the next (`lamina.kind`, `lamina.lanes`, ...), taken out of programs from
outside: what they say was true of another form of the program, or never.

Kept are those that a frontend writes and the composites and custom calls of ours, whose types are checked.
"""

from __future__ import annotations

from lamina.dialects.attributes import LANES_TOGETHER, MATRIX_PRODUCTS
from lamina.dialects.vendors import ir

PREFIX = "lamina."
_OF_FRONTENDS = frozenset((LANES_TOGETHER, MATRIX_PRODUCTS, "lamina.name"))
_OF_VALUES = ("arg_attrs", "res_attrs")


def forget_marks(module: ir.Module) -> None:
    """Take them from all ops, and from arguments and results of functions."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        attributes = op.attributes
        for name in [name for name in attributes if _is_mark(name)]:
            del attributes[name]
        for name in _OF_VALUES:
            if name in attributes and PREFIX in str(attributes[name]):
                kept = [_without_marks(given) for given in ir.ArrayAttr(attributes[name])]
                attributes[name] = ir.ArrayAttr.get(kept, module.context)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)


def _is_mark(name: str) -> bool:
    return name.startswith(PREFIX) and name not in _OF_FRONTENDS


def _without_marks(given: ir.DictAttr) -> ir.DictAttr:
    kept = {each.name: each.attr for each in given if not _is_mark(each.name)}
    return ir.DictAttr.get(kept, given.context)
