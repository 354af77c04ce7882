"""Keep what makes the factors of a product apart from it, whichever dimensions it sums over.

    %e = stablehlo.exponential %b             %e = stablehlo.exponential %b
    %c = stablehlo.dot_general %a, %e,   ->   %c = linalg.contract ins(%a, %e) outs(zeros)
           contracting_dims = [0] x [0]

A product in other layouts than a plain one's becomes a `linalg.generic` upstream, and element-wise
fusion would compute each element of a factor as often as it is multiplied. This op is generalised
after that. For f32 and f64 where a factor is computed in the same kernel; others are left alone.

example: test/passes/stablehlo/algebra/keep_factors.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.linalg.analysis.contract import contract
from lamina.passes.stablehlo.analysis.facts import DotNumbers, makes_a_factor


class KeepFactors(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.dot_general",))

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.dot_general"):
            if makes_a_factor(op) and _is_of_floats(op):
                with ir.InsertionPoint(op), op.location:
                    op.result.replace_all_uses_with(_contract(op))
                op.erase()
                self.count("products")


def _is_of_floats(op: ir.Operation) -> bool:
    types = [value.type for value in (*op.operands, op.result)]
    elements = {of.element_type for of in types}
    return (
        all(of.has_static_shape for of in types)
        and len(elements) == 1
        and isinstance(elements.pop(), (ir.F32Type, ir.F64Type))
    )


def _contract(op: ir.Operation) -> ir.Value:
    lhs, rhs = op.operands
    numbers = DotNumbers.of(op)
    free = numbers.lhs_free(len(lhs.type.shape)), numbers.rhs_free(len(rhs.type.shape))
    # The product's dimensions: those of the result, then those summed over.
    rank = len(op.result.type.shape)
    batch = len(numbers.lhs_batch)
    places: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for side, batched in enumerate((numbers.lhs_batch, numbers.rhs_batch)):
        places[side].update({d: number for number, d in enumerate(batched)})
        first = batch + (len(free[0]) if side else 0)
        places[side].update({d: first + number for number, d in enumerate(free[side])})
        places[side].update({d: rank + n for n, d in enumerate(numbers.contracting(side))})
    count = rank + len(numbers.lhs_contracting)
    maps = [
        ir.AffineMap.get(count, 0, [ir.AffineDimExpr.get(of[d]) for d in range(len(of))])
        for of in places
    ]
    maps.append(ir.AffineMap.get(count, 0, [ir.AffineDimExpr.get(d) for d in range(rank)]))
    return contract([lhs, rhs], maps, list(op.result.type.shape))
