"""Bodies of reductions and the like, which are to use nothing from outside themselves."""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import copied
from lamina.passes.framework.find import is_inside
from lamina.passes.stablehlo.analysis.facts import CONTROL, defining
from lamina.passes.stablehlo.fusion.fuse_ops import captured


def close_body(op: ir.Operation) -> ir.Value | None:
    """Compute constants, and what is made of constants alone, in the body of an op that reads them
    from outside. Gives a value that it reads from there and that is made of more, if there is one."""
    taken = list(captured(op))
    if not taken:
        return None
    block = op.regions[0].blocks[0]
    copies: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint.at_block_begin(block):
        for value in taken:
            if not _copy(value, copies):
                return value
    for value in taken:
        for use in list(value.uses):
            if is_inside(use.owner.operation.parent, op):  # not an operand of the op itself
                use.owner.operands[use.operand_number] = copies[value]
    return None


def _copy(value: ir.Value, copies: dict[ir.Value, ir.Value]) -> bool:
    """Copy what makes a value to the ambient place, if it is made of constants alone."""
    if value in copies:
        return True
    maker = defining(value)
    if maker is None or maker.name in CONTROL or not all(_copy(v, copies) for v in maker.operands):
        return False
    copied(maker, copies)
    return True
