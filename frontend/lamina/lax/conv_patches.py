"""Convolutions by patches: conv_general_dilated_patches, conv_general_dilated_local."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import get_aval
from lamina.core.array_class import Array
from lamina.lax.conv_layouts import ConvGeneralDilatedDimensionNumbers, conv_dimension_numbers
from lamina.lax.dot_general import PrecisionLike, canonical_precision
from lamina.lax.window_padding import Pads


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Array:
    """The windows that a convolution with kernels of filter_shape would see, their elements as
    features: first by feature of lhs, then by place in the window."""
    window = tuple(filter_shape)
    numbers = conv_dimension_numbers(np.shape(lhs), (1, 1, *window), dimension_numbers)
    features, places = np.shape(lhs)[numbers.lhs_spec[1]], math.prod(window)
    # One kernel for each place, with a single one there; features stay apart.
    eye = np.eye(places, dtype=get_aval(lhs).dtype)
    kernels = np.tile(eye, (features, 1)).reshape(features * places, 1, *window)
    kernels = kernels.transpose(np.argsort(numbers.rhs_spec))
    return lax.conv_general_dilated(
        lhs, kernels, window_strides, padding, lhs_dilation, rhs_dilation, numbers,
        feature_group_count=features, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Pads,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """A convolution with a kernel of its own at each place: rhs has, in place of the axes of the
    window, those of the result, and as input features those of the patches."""
    pair = canonical_precision(precision)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
        None if pair is None else pair[0],
    )  # fmt: skip
    numbers = conv_dimension_numbers(np.shape(lhs), (1, 1, *filter_shape), dimension_numbers)
    batch, feature, *space = numbers.out_spec
    out, into, *places = numbers.rhs_spec
    product = lax.dot_general(
        rhs, patches, (((into,), (feature,)), (tuple(places), tuple(space))), precision
    )
    # [*space, out feature, batch] -> the layout of the result
    n = len(space)
    order = [0] * (n + 2)
    for i, axis in enumerate(space):
        order[axis] = i
    order[feature], order[batch] = n, n + 1
    return lax.transpose(product, order)
