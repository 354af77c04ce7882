"""Transpose operands of large contractions that no matrix product can read as they lie.

    dot_general %a, %b,                              %t = transpose %a, dims = [1, 0, 2]
      contracting_dims = [0, 2] x [0, 1]        ->   dot_general %t, %b,
      : (tensor<8x64x16xf32>, tensor<8x16x32xf32>)     contracting_dims = [1, 2] x [0, 1]

Reading an operand once to lay it out costs less than a product without a library. Leaves alone what
a library can read, what is small, and element types it doesn't know.

example: test/passes/stablehlo/algebra/lay_out_contractions.mlir
"""

from __future__ import annotations

from dataclasses import replace

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import element_name
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import DotNumbers, size_of
from lamina.passes.stablehlo.analysis.gemm import ELEMENT_TYPES, Gemm

_DOT = "stablehlo.dot_general"


class LayOutContractions(Pass):
    """The pass `stablehlo-lay-out-contractions`."""

    only_with = frozenset(("stablehlo.dot_general",))

    min_products: int = 65536  # shape

    def run(self, module: ir.Module) -> None:
        worth: dict[tuple[ir.Type, ir.Type, ir.Attribute], bool] = {}  # many are of the same types
        for dot in find_ops(module, _DOT):
            lhs, rhs = (operand.type for operand in dot.operands)
            key = (lhs, rhs, dot.attributes["dot_dimension_numbers"])
            if key not in worth:
                worth[key] = self._is_worth_it(dot)
            if worth[key]:
                self._lay_out(dot)

    def _is_worth_it(self, dot: ir.Operation) -> bool:
        lhs, rhs = (operand.type for operand in dot.operands)
        element = element_name(lhs)
        if element not in ELEMENT_TYPES or not (
            element == element_name(rhs) == element_name(dot.result.type)
        ):
            return False
        if not (lhs.has_static_shape and rhs.has_static_shape):
            return False
        numbers = DotNumbers.of(dot)
        products = size_of(dot.result.type)
        for d in numbers.lhs_contracting:
            products *= lhs.shape[d]
        return products >= self.min_products and Gemm.of_types(lhs, rhs, numbers) is None

    def _lay_out(self, dot: ir.Operation) -> None:
        """Give each operand that needs it the order batch, free, contracting."""
        lhs, rhs = dot.operands
        numbers = DotNumbers.of(dot)
        batch, contracting = len(numbers.lhs_batch), len(numbers.lhs_contracting)

        def moved(value: ir.Value, dims: list[int]) -> ir.Value:
            self.count("operands")
            return hlo.transpose(value, dims)

        with ir.InsertionPoint(dot), dot.location:
            rank = len(lhs.type.shape)
            alone = replace(
                numbers, rhs_batch=numbers.lhs_batch, rhs_contracting=numbers.lhs_contracting
            )
            if Gemm.of_types(lhs.type, lhs.type, alone) is None:
                order = [*numbers.lhs_batch, *numbers.lhs_free(rank), *numbers.lhs_contracting]
                dot.operands[0] = moved(lhs, order)
                numbers = replace(
                    numbers,
                    lhs_batch=tuple(range(batch)),
                    lhs_contracting=tuple(range(rank - contracting, rank)),
                )
            rank = len(rhs.type.shape)
            alone = replace(
                numbers, lhs_batch=numbers.rhs_batch, lhs_contracting=numbers.rhs_contracting
            )
            if Gemm.of_types(rhs.type, rhs.type, alone) is None:
                order = [*numbers.rhs_batch, *numbers.rhs_free(rank), *numbers.rhs_contracting]
                dot.operands[1] = moved(rhs, order)
                numbers = replace(
                    numbers,
                    rhs_batch=tuple(range(batch)),
                    rhs_contracting=tuple(range(rank - contracting, rank)),
                )
        dot.attributes["dot_dimension_numbers"] = numbers.attribute()
