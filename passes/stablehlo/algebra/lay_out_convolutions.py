"""Transpose the operands of convolutions whose results have space, not channels, next to each other.

    %0 = convolution(%x, %k)                            %t = transpose %x, dims = [0, 2, 3, 1]
      [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]      ->   %u = transpose %k, dims = [2, 3, 1, 0]
                                                        %c = convolution(%t, %u)
                                                          [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
                                                        %0 = transpose %c, dims = [0, 3, 1, 2]

Blocks of a convolution are rows by vectors: along channels these are whole, along space there are
remainders, they begin anywhere, and steps tear them apart; the gradient to a kernel has nothing
longer there than the kernel. A convolution whose kernel is larger than its result is such a
gradient: there the other batch dimension is innermost. The transposes of an input and of a result's
gradient are the same for all that read them. Leaves alone groups, few channels, what makes few
products of each element that would be moved, and vectors that are whole already.

example: test/passes/stablehlo/algebra/lay_out_convolutions.mlir
"""

from __future__ import annotations

from math import prod

from lamina.dialects import stablehlo as hlo
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.convolution_numbers import ConvolutionNumbers
from lamina.passes.stablehlo.analysis.facts import size_of

_CONVOLUTION = "stablehlo.convolution"
_FEATURE = 1  # of a result's dimensions: batch, feature, space


class LayOutConvolutions(Pass):
    """The pass `stablehlo-lay-out-convolutions`."""

    only_with = frozenset(("stablehlo.convolution",))

    min_channels: int = 8  # shape
    """Of the result."""
    min_products: int = 48  # shape
    """Of each element that is moved."""
    whole: int = 16
    """Elements of a vector."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, _CONVOLUTION):
            numbers = ConvolutionNumbers.of(op)
            if self._is_worth_it(op, numbers):
                with ir.InsertionPoint(op), op.location:
                    op.result.replace_all_uses_with(_laid_out(op, numbers))
                op.erase()
                self.count("convolutions")

    def _is_worth_it(self, op: ir.Operation, numbers: ConvolutionNumbers) -> bool:
        types = [value.type for value in (*op.operands, op.result)]
        if not all(
            type_.has_static_shape and isinstance(type_.element_type, ir.FloatType)
            for type_ in types
        ):
            return False
        if numbers.feature_groups > 1 or numbers.batch_groups > 1:
            return False
        _, rhs, out = types
        innermost = numbers.out.index(len(numbers.out) - 1)
        if innermost <= _FEATURE or out.shape[numbers.out[_FEATURE]] < self.min_channels:
            return False
        extent, window = out.shape[-1], numbers.windows[innermost - 2]
        if extent % self.whole == 0 and window.stride == window.spread == 1:
            return False
        products = size_of(out) * size_of(rhs) // rhs.shape[numbers.rhs[0]]
        return products >= self.min_products * sum(map(size_of, types))


def _laid_out(op: ir.Operation, numbers: ConvolutionNumbers) -> ir.Value:
    """The result of a convolution with channels innermost, its dimensions where they were."""
    shape, kernel = op.result.type.shape, op.operands[1].type.shape
    space = range(2, len(numbers.out))
    # Dimensions by the numbers' order: batch or output, feature or input, space.
    orders: list[list[int]] = [[0, *space, 1], [*space, 1, 0], [0, *space, 1]]
    if prod(kernel[numbers.rhs[d]] for d in space) > prod(shape[numbers.out[d]] for d in space):
        orders = [[1, *space, 0], [1, *space, 0], [*space, 0, 1]]
    operands = [
        hlo.transpose(value, [dims[d] for d in order])
        for value, dims, order in zip(op.operands, (numbers.lhs, numbers.rhs), orders, strict=False)
    ]
    type_ = ir.RankedTensorType.get(
        [shape[numbers.out[d]] for d in orders[2]], op.result.type.element_type
    )
    places = [[order.index(d) for d in range(len(order))] for order in orders]
    laid_out = remade(
        op, [type_], operands, dimension_numbers=hlo.convolution_dimensions(*places)
    ).result
    return hlo.transpose(laid_out, [places[2][numbers.out.index(d)] for d in range(len(shape))])
