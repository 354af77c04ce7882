"""What a `stablehlo.convolution` says of itself, read once: the roles of dimensions, and how its
window goes over each dimension of space."""

from __future__ import annotations

import numpy as np

from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.records import Record


class Window(Record):
    """How the kernel goes over one dimension of space."""

    stride: int
    low: int
    high: int
    spread: int
    """Elements of the input are so far apart: all between are zeros (`lhs_dilation`)."""
    dilation: int
    """Elements that the kernel sees are so far apart (`rhs_dilation`)."""
    reversed: bool


class ConvolutionNumbers(Record):
    """The dimensions of the operands and the result, in this order: batch and feature of the input,
    output and input feature of the kernel, batch and feature of the result; then those of space."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    out: tuple[int, ...]
    windows: tuple[Window, ...]
    feature_groups: int
    batch_groups: int

    @classmethod
    def of(cls, op: ir.Operation) -> ConvolutionNumbers:
        """Read from the op."""
        numbers = stablehlo_ext.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        space = len(numbers.input_spatial_dimensions)

        def each(name: str, default: int) -> list[int]:
            return list(op.attributes[name]) if name in op.attributes else [default] * space

        if "padding" in op.attributes:
            padding = np.asarray(op.attributes["padding"]).reshape(-1, 2).tolist()
        else:
            padding = [[0, 0]] * space
        windows = tuple(
            Window(stride, low, high, spread, dilation, bool(backwards))
            for stride, (low, high), spread, dilation, backwards in zip(
                each("window_strides", 1), padding, each("lhs_dilation", 1),
                each("rhs_dilation", 1), each("window_reversal", 0), strict=True,
            )
        )  # fmt: skip
        return cls(
            (numbers.input_batch_dimension, numbers.input_feature_dimension,
             *numbers.input_spatial_dimensions),
            (numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension,
             *numbers.kernel_spatial_dimensions),
            (numbers.output_batch_dimension, numbers.output_feature_dimension,
             *numbers.output_spatial_dimensions),
            windows,
            op.attributes["feature_group_count"].value,
            op.attributes["batch_group_count"].value,
        )  # fmt: skip


def is_product(op: ir.Operation, numbers: ConvolutionNumbers) -> bool:
    """Whether each place of the input meets one of the kernel: no more is summed over than in a product of matrices."""
    if numbers.feature_groups > 1 or numbers.batch_groups > 1:
        return False
    lhs, rhs, out = (value.type.shape for value in (*op.operands, op.result))
    for d, window in enumerate(numbers.windows, 2):
        seen, kernel, results = lhs[numbers.lhs[d]], rhs[numbers.rhs[d]], out[numbers.out[d]]
        if window.low or window.high or window.spread > 1:
            return False
        is_whole = (kernel == 1 and results == seen) or (results == 1 and kernel == seen)
        if not is_whole:
            return False
    return True
