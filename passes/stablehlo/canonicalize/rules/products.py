"""Rules of `stablehlo-simplify` for products that sum nothing up.

They begin with a product where a sum begins with 0: that of -0 keeps its sign, as in XLA.
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import DotNumbers
from lamina.passes.stablehlo.canonicalize.rewriting import Rule


def _outer_product(op: ir.Operation) -> ir.Value | None:
    """A contraction of no dimensions, or of single elements -> `x * y`, which fuses. Not in a loop:
    `stablehlo-gather-products` makes one product of what its steps add up."""
    if op.parent.name == "stablehlo.while":
        return None
    numbers = DotNumbers.of(op)
    lhs, rhs = op.operands
    if any(lhs.type.shape[d] != 1 for d in numbers.lhs_contracting):
        return None
    result = op.results[0].type
    batch = list(range(len(numbers.lhs_batch)))
    free = [numbers.lhs_free(len(lhs.type.shape)), numbers.rhs_free(len(rhs.type.shape))]
    first = len(batch)
    factors = []
    for operand, of_batch, of_result in zip(
        (lhs, rhs), (numbers.lhs_batch, numbers.rhs_batch), free, strict=True
    ):
        kept = sorted([*of_batch, *of_result])
        places = {d: batch[n] for n, d in enumerate(of_batch)}
        places |= {d: first + n for n, d in enumerate(of_result)}
        first += len(of_result)
        if len(kept) < len(operand.type.shape):
            operand = hlo.reshape(operand, [operand.type.shape[d] for d in kept])
        if operand.type.element_type != result.element_type:
            operand = hlo.convert(operand, dtype_of(result))
        factors.append(hlo.broadcast_in_dim(operand, result.shape, [places[d] for d in kept]))
    return hlo.multiply(*factors)


RULES: dict[str, tuple[Rule, ...]] = {"stablehlo.dot_general": (_outer_product,)}
"""By the name of the op."""
