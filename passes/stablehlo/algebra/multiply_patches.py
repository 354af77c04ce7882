"""Convolutions to fewer places than features are products with what each place sees, one patch after the other.

    %0 = convolution(%x, %k)                                %p = what the kernel's 9 elements see of %x, padded
      [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]        ->       : tensor<512x9x7x7xf32>
      : (tensor<1x512x7x7>, tensor<512x512x3x3>)            %0 = reshape (dot_general (reshape %k), (reshape %p))
                                                              : (tensor<512x4608xf32>, tensor<4608x49xf32>)

Images that are so small have no rows of whole vectors, and their kernels are by far the largest of all: laid out
for vectors of features, they take longer than the products do. Here they stay as they are. Patches hold what
places see as often as kernels have elements, so that these have to be several times as many. A kernel of one
element has nothing to lay out: with one image the input is the patches. Leaves alone
groups, inputs that are spread by zeros, kernels that lie otherwise, and what is small.

example: test/passes/stablehlo/algebra/multiply_patches.mlir
"""

from __future__ import annotations

import itertools
from math import prod

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.convolution_numbers import ConvolutionNumbers
from lamina.passes.stablehlo.analysis.facts import size_of

_CONVOLUTION = "stablehlo.convolution"


class MultiplyPatches(Pass):
    """The pass `stablehlo-multiply-patches`."""

    only_with = frozenset(("stablehlo.convolution",))

    least_products: int = 1 << 20  # rounding
    features_of_patch: int = 4
    """As many features as places, times this, for a kernel of several elements."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, _CONVOLUTION):
            numbers = ConvolutionNumbers.of(op)
            if _is_plain(op, numbers) and self._is_worth_it(op, numbers):
                with ir.InsertionPoint(op), op.location:
                    op.result.replace_all_uses_with(_product(op, numbers))
                op.erase()
                self.count("convolutions")

    def _is_worth_it(self, op: ir.Operation, numbers: ConvolutionNumbers) -> bool:
        kernel, out = op.operands[1].type, op.result.type
        features = kernel.shape[0]
        places = size_of(out) // features if features else 0
        if places * size_of(kernel) < self.least_products:
            return False
        if prod(kernel.shape[2:]) > 1:
            return self.features_of_patch * places <= features
        return out.shape[0] == 1 or places <= features


def _is_plain(op: ir.Operation, numbers: ConvolutionNumbers) -> bool:
    types = [value.type for value in (*op.operands, op.result)]
    in_order = tuple(range(len(numbers.out)))
    return (
        all(type_.has_static_shape and isinstance(type_.element_type, ir.FloatType) for type_ in types)
        and len({type_.element_type for type_ in types}) == 1
        and numbers.feature_groups == numbers.batch_groups == 1
        and numbers.lhs == numbers.rhs == numbers.out == in_order
        and all(w.spread == 1 and not w.reversed and min(w.low, w.high) >= 0 for w in numbers.windows)
    )


def _product(op: ir.Operation, numbers: ConvolutionNumbers) -> ir.Value:
    kernel, out = op.operands[1], list(op.result.type.shape)
    features, inputs, *window = kernel.type.shape
    batch, space = out[0], out[2:]
    patches = _patches(op, numbers, window, space)  # batch, inputs, elements of the kernel, space
    rank = len(patches.type.shape)
    if batch > 1:
        patches = hlo.transpose(patches, [1, 2, 0, *range(3, rank)])
    terms, places = inputs * prod(window), batch * prod(space)
    weights, seen = hlo.reshape(kernel, [features, terms]), hlo.reshape(patches, [terms, places])
    product = hlo.dot_general(weights, seen, (), (), (1,), (0,), dtype_of(op.result.type))
    if batch == 1:
        return hlo.reshape(product, out)
    whole = hlo.reshape(product, [features, batch, *space])
    return hlo.transpose(whole, [1, 0, *range(2, len(out))])


def _patches(
    op: ir.Operation, numbers: ConvolutionNumbers, window: list[int], space: list[int]
) -> ir.Value:
    """What each element of the kernel sees, side by side behind the features of the input."""
    image = op.operands[0]
    low, high = ([0, 0, *(getattr(w, end) for w in numbers.windows)] for end in ("low", "high"))
    if any(low) or any(high):
        image = hlo.pad(image, hlo.full(0, [], dtype_of(image.type)), low, high, [0] * len(low))
    batch, inputs = image.type.shape[:2]
    seen = []
    for element in itertools.product(*map(range, window)):
        starts = [at * w.dilation for at, w in zip(element, numbers.windows, strict=True)]
        ends = [
            start + (count - 1) * w.stride + 1
            for start, count, w in zip(starts, space, numbers.windows, strict=True)
        ]
        strides = [w.stride for w in numbers.windows]
        part = hlo.slice(image, [0, 0, *starts], [batch, inputs, *ends], [1, 1, *strides])
        seen.append(hlo.reshape(part, [batch, inputs, 1, *space]))
    return seen[0] if len(seen) == 1 else hlo.concatenate(seen, 2)
