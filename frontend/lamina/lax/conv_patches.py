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
    """The windows that a convolution would see, their elements as features: first by feature of
    lhs, then by place in the window. A product with a kernel then is the convolution ("im2col").

    lhs                     an array as conv_general_dilated takes it.
    filter_shape            of the window, an int for each axis of space.
    window_strides          how far it moves along each axis of space.
    padding                 "SAME", "VALID", "SAME_LOWER" or a (low, high) pair for each axis of
                            space.
    lhs_dilation            how far lhs is spread along each axis of space; None: ones.
    rhs_dilation            how far the window is spread; None: ones.
    dimension_numbers       as conv_dimension_numbers takes them.
    precision               None, a lax.Precision or its name.
    preferred_element_type  the dtype of the result, by default lhs's.

    >>> x = jnp.arange(4.0).reshape(1, 1, 4)
    >>> print(lax.conv_general_dilated_patches(x, (2,), (1,), "VALID")[0])
    [[0. 1. 2.]
     [1. 2. 3.]]
    """
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
    """A convolution with a kernel of its own at each place ("locally connected").

    lhs                an array as conv_general_dilated takes it.
    rhs                the kernels: in place of the axes of the window those of the result, and as
                       in features those of the patches of lhs, in features times elements of the
                       window.
    window_strides     how far the window moves along each axis of space.
    padding            "SAME", "VALID", "SAME_LOWER" or a (low, high) pair for each axis of space.
    filter_shape       of the window, an int for each axis of space.
    lhs_dilation       how far lhs is spread along each axis of space; None: ones.
    rhs_dilation       how far the window is spread; None: ones.
    dimension_numbers  as conv_dimension_numbers takes them.
    precision          of float32 products: None, a lax.Precision or its name.

    >>> x, kernels = jnp.arange(4.0).reshape(1, 1, 4), jnp.array([[[1.0, 0, 0], [0, 0, 1.0]]])
    >>> print(lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,)))
    [[[0. 0. 3.]]]
    """
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
