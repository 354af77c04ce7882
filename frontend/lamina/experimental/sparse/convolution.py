"""Convolutions of sparse arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import lamina
from lamina import lax
from lamina import numpy as jnp
from lamina.experimental.sparse.bcoo import BCOO
from lamina.experimental.sparse.operations import at_most_each

__all__ = ["bcoo_conv_general_dilated"]


def bcoo_conv_general_dilated(
    lhs: Any, rhs: Any, *, window_strides: Sequence[int], padding: Any, lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None, feature_group_count: int = 1,
    batch_group_count: int = 1, precision: None = None, preferred_element_type: None = None,
) -> BCOO:  # fmt: skip
    """`lax.conv_general_dilated` where one operand, or both, are sparse: a BCOO of sparse axes alone, with a value for
    each pair of theirs, or for each place where these are fewer.

    lhs, rhs  a BCOO or an array each, of which all elements are taken.
    window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers  as for lax.conv_general_dilated.
    feature_group_count, batch_group_count  1.
    precision, preferred_element_type  None.

    Raises NotImplementedError for other values of the last four.

    >>> sparse = lamina.experimental.sparse
    >>> x = sparse.bcoo_fromdense(jnp.array([[[1., 0., 2.]]]))
    >>> y = sparse.bcoo_conv_general_dilated(x, jnp.ones((1, 1, 2)), window_strides=(1,), padding="VALID")
    >>> print(y.todense())
    [[[1. 2.]]]
    """
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError("bcoo_conv_general_dilated: groups of features or of a batch")
    if precision is not None or preferred_element_type is not None:
        raise NotImplementedError("bcoo_conv_general_dilated: precision and preferred_element_type must be None")
    whole = lamina.eval_shape(
        lambda x, k: lax.conv_general_dilated(
            x, k, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
        ),
        *(lamina.ShapeDtypeStruct(x.shape, x.dtype) for x in (lhs, rhs)),
    )
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    (batch, feature, *space), (to, by, *window) = numbers.lhs_spec, numbers.rhs_spec
    ones = (1,) * len(space)
    stretch, steps = lhs_dilation or ones, rhs_dilation or ones
    extent = [(lhs.shape[d] - 1) * n + 1 if lhs.shape[d] else 0 for d, n in zip(space, stretch, strict=True)]
    if isinstance(padding, str):
        reach = [(rhs.shape[d] - 1) * n + 1 for d, n in zip(window, steps, strict=True)]
        padding = lax.padtype_to_pads(extent, reach, window_strides, padding)
    left, right = (_as_bcoo(x).places() for x in (lhs, rhs))

    meets = (left.indices[:, None, feature] == right.indices[None, :, by]) & left.inside()[:, None] & right.inside()
    columns = {
        numbers.out_spec[0]: jnp.broadcast_to(left.indices[:, None, batch], meets.shape),
        numbers.out_spec[1]: jnp.broadcast_to(right.indices[None, :, to], meets.shape),
    }
    for i, at in enumerate(numbers.out_spec[2:]):
        first = left.indices[:, None, space[i]] * stretch[i] + padding[i][0]
        distance = first - right.indices[None, :, window[i]] * steps[i]
        columns[at] = distance // window_strides[i]
        meets &= (distance % window_strides[i] == 0) & (distance >= 0) & (columns[at] < whole.shape[at])
    places = jnp.stack([columns[at] for at in range(len(whole.shape))], axis=-1)
    places = jnp.where(meets[..., None], places, np.array(whole.shape, places.dtype)).reshape(-1, len(whole.shape))
    data = jnp.where(meets, left.data[:, None] * right.data, 0).reshape(-1)
    return at_most_each(BCOO((data, places), shape=whole.shape))


def _as_bcoo(x: Any) -> BCOO:
    return x if isinstance(x, BCOO) else BCOO.fromdense(x, nse=x.size)
