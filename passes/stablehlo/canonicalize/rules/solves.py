"""Rules of `stablehlo-simplify` for systems of equations."""

from __future__ import annotations

from math import prod

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.stablehlo.analysis.facts import ints, made_by
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of

_LEAST = 4  # rounding
"""Rows of a factor: 262,144 systems of 2 take 0.70 ms in lanes with a factor each, and 0.81 together; 65,536
of 4 take 0.47 and 0.43, of 8 5.7 and 2.1, 4,096 of 64 18 and 1.1 (on one thread)."""

_TRANSPOSED = {"NO_TRANSPOSE": "TRANSPOSE", "TRANSPOSE": "NO_TRANSPOSE"}


@needs_operand_of("broadcast_in_dim")
def _solve_by_one_factor(op: ir.Operation) -> ir.Value | None:
    """By one factor for a whole batch -> all rows at once, of which a vector to the factor's right is one:
    L x = b where x^T L^T = b^T."""
    factor, right = op.operands
    spread = made_by(factor, "stablehlo.broadcast_in_dim")
    *batch, rows, columns = right.type.shape
    rank = len(batch) + 2
    if spread is None or not batch or ints(spread, "broadcast_dimensions") != [rank - 2, rank - 1]:
        return None
    one = spread.operands[0]
    if one.type.shape != factor.type.shape[-2:] or 0 in right.type.shape or one.type.shape[0] < _LEAST:
        return None
    transposed = str(stablehlo_ext.TransposeAttr(op.attributes["transpose_a"]).value)
    if ir.BoolAttr(op.attributes["left_side"]).value:
        if columns != 1 or transposed not in _TRANSPOSED:
            return None
        transposed, rows, columns = _TRANSPOSED[transposed], 1, rows
    solved = hlo.triangular_solve(
        one,
        hlo.reshape(right, [prod(batch) * rows, columns]),
        left_side=False,
        lower=ir.BoolAttr(op.attributes["lower"]).value,
        unit_diagonal=ir.BoolAttr(op.attributes["unit_diagonal"]).value,
        transpose_a=transposed,
    )
    return hlo.reshape(solved, list(right.type.shape))


RULES: dict[str, tuple[Rule, ...]] = {"stablehlo.triangular_solve": (_solve_by_one_factor,)}
