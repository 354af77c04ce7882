"""The types of functions that an op names: in a program from outside they may be any."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir


def has_types(
    function: ir.Operation | None, operands: Sequence[ir.Type], results: Sequence[ir.Type]
) -> bool:
    """Whether there is a function, which takes and gives these."""
    if function is None:
        return False
    of = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return list(of.inputs) == list(operands) and list(of.results) == list(results)
