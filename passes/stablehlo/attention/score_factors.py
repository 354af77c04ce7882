"""Taking factors that all scores of a row have in common out of the row's sum.

    %b = broadcast_in_dim %r                                    %x = multiply %s, %e
    %x = multiply %s, %b                                  ->    %t = reduce add %x
    %y = multiply %x, %e                                        %u = multiply %t, %r
    %t = reduce add %y

One multiplication for each row, and the sum can be taken before the factor is known: of softmax's
derivative, whose factors are made of a sum themselves, in the same sweep over the keys.
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import defining, ints, is_unused, reducer_of, splat_of

_MULTIPLY, _SPREAD = "stablehlo.multiply", "stablehlo.broadcast_in_dim"
_MOST = 8  # search: factors of a product


def take_factors_out(block: ir.Block) -> None:
    """Out of all sums of a block along one dimension."""
    for op in [view.operation for view in block.operations]:
        if op.name == "stablehlo.reduce" and len(op.operands) == 2:
            if reducer_of(op) == "stablehlo.add" and len(ints(op, "dimensions")) == 1:
                _take_out(op)


def _take_out(op: ir.Operation) -> None:
    factors = _factors(op.operands[0])
    common = [factor for factor in factors if _row_of(factor, op) is not None]
    others = [factor for factor in factors if factor not in common]
    initial = splat_of(op.operands[1])
    if not common or not others or initial is None or float(initial) != 0:
        return
    term = op.operands[0]
    with ir.InsertionPoint(op), op.location:
        inner = others[0]
        for factor in others[1:]:
            inner = hlo.multiply(inner, factor)
    op.operands[0] = inner
    following = list(op.block.operations)
    after = following[following.index(op) + 1]
    total = op.results[0]
    with ir.InsertionPoint(after), op.location:
        result = total
        made = []
        for factor in common:
            row = _row_of(factor, op)
            assert row is not None
            result = hlo.multiply(result, row)
            made.append(result.owner.operation)
    total.replace_all_uses_except(result, made[0])
    _erase(term)


def _factors(value: ir.Value) -> list[ir.Value]:
    """What a value is the product of."""
    found: list[ir.Value] = []
    work = [value]
    while work:
        value = work.pop()
        op = defining(value)
        if op is None or op.name != _MULTIPLY or len(found) + len(work) > _MOST:
            found.append(value)
        else:
            work += reversed(list(op.operands))
    return found


def _row_of(factor: ir.Value, op: ir.Operation) -> ir.Value | None:
    """What a factor is along all dimensions but the one that is summed; None if it is not the same
    all along that."""
    spread = defining(factor)
    if spread is None or spread.name != _SPREAD:
        return None
    row = spread.operands[0]
    summed = ints(op, "dimensions")[0]
    left = [d for d in range(len(factor.type.shape)) if d != summed]
    return row if ints(spread, "broadcast_dimensions") == left and row.type == op.results[0].type else None


def _erase(value: ir.Value) -> None:
    """What nobody uses, and multiplications for that alone."""
    op = defining(value)
    if op is not None and op.name == _MULTIPLY and is_unused(op):
        operands = list(op.operands)
        op.erase()
        for operand in operands:
            _erase(operand)
