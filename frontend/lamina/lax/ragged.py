"""Products whose rows belong to groups of given sizes: ragged_dot, ragged_dot_general; and products
of scaled blocks: scaled_dot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from lamina import lax
from lamina.core import dtypes, get_aval
from lamina.core.array_class import Array
from lamina.lax.checks import scalar_like
from lamina.lax.dot_general import DotDimensionNumbers, PrecisionLike
from lamina.records import Record


class RaggedDotDimensionNumbers(Record):
    """dot_dimension_numbers as dot_general takes them; the axis of lhs that groups divide, and the
    axes of rhs (one, or none where the divided axis is contracted or a batch) that number them."""

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        (lc, rc), (lb, rb) = self.dot_dimension_numbers
        numbers = ((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb)))
        object.__setattr__(self, "dot_dimension_numbers", numbers)
        object.__setattr__(self, "lhs_ragged_dimensions", tuple(self.lhs_ragged_dimensions))
        object.__setattr__(self, "rhs_group_dimensions", tuple(self.rhs_group_dimensions))


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Products of groups of rows with a matrix for each group, as a mixture of experts needs them:
    the first group_sizes[0] rows of lhs by rhs[0], the next group_sizes[1] by rhs[1], and so on.
    Rows of no group are zero in the result, which has shape (m, n).

    lhs                     an array of shape (m, k).
    rhs                     an array of shape (g, k, n).
    group_sizes             g integers, whose sum is at most m.
    precision               of float32 products: None, a lax.Precision or its name.
    preferred_element_type  the dtype of sum and result, by default that of the operands.
    group_offset            None: JAX takes others on TPUs only.
    out_sharding            None.

    Raises TypeError where sizes do not fit; NotImplementedError for a group_offset or out_sharding.

    >>> rows, experts = jnp.ones((3, 2)), jnp.array([[[1.0], [1.0]], [[5.0], [5.0]]])
    >>> print(lax.ragged_dot(rows, experts, jnp.array([2, 1]))[:, 0])
    [ 2.  2. 10.]
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset,
        out_sharding,
    )  # fmt: skip


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """dot_general by groups along one axis of lhs. Where this axis is free, each group has a part
    of rhs of its own; where it is contracted, each group has a result, along a new first axis;
    where it is a batch axis, groups change nothing.

    lhs, rhs                       arrays of numbers.
    group_sizes                    integers, one for each group.
    ragged_dot_dimension_numbers   a lax.RaggedDotDimensionNumbers: those of dot_general, the
                                   divided axis of lhs, and the axis of rhs that counts groups, if
                                   it has one.
    precision                      of float32 products: None, a lax.Precision or its name.
    preferred_element_type         the dtype of sum and result, by default that of the operands.
    group_offset                   None: JAX takes others on TPUs only.
    out_sharding                   None.

    Raises NotImplementedError for a group_offset or out_sharding.

    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> x, y = jnp.ones((3, 1)), jnp.array([[1.0], [2.0], [4.0]])
    >>> print(lax.ragged_dot_general(x, y, jnp.array([2, 1]), numbers)[:, 0, 0])
    [3. 4.]
    """
    if group_offset is not None or out_sharding is not None:
        raise NotImplementedError("ragged_dot takes no group_offset and no out_sharding")
    numbers = ragged_dot_dimension_numbers
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(
            "ragged_dot_general expects exactly one lhs ragged dimension, got "
            f"{numbers.lhs_ragged_dimensions}"
        )
    if len(np.shape(group_sizes)) != 1:
        raise NotImplementedError(
            f"ragged_dot_general takes a vector of group_sizes, got shape {np.shape(group_sizes)}"
        )
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    (ragged,) = numbers.lhs_ragged_dimensions
    if ragged in lb:
        return lax.dot_general(lhs, rhs, ((lc, rc), (lb, rb)), precision, preferred_element_type)
    grouped = _by_group(lhs, group_sizes, ragged)
    lc, lb = tuple(d + 1 for d in lc), tuple(d + 1 for d in lb)
    if ragged + 1 not in lc:
        if len(numbers.rhs_group_dimensions) != 1:
            raise TypeError(
                "ragged_dot_general expects one rhs group dimension where the ragged dimension is "
                f"not contracted, got {numbers.rhs_group_dimensions}"
            )
        both = (((0, *lc), (*numbers.rhs_group_dimensions, *rc)), (lb, rb))
        return lax.dot_general(grouped, rhs, both, precision, preferred_element_type)
    if numbers.rhs_group_dimensions:
        raise TypeError("ragged_dot_general expects no rhs group dimensions where the ragged "
                        "dimension is contracted")  # fmt: skip
    out = lax.dot_general(grouped, rhs, ((lc, rc), (lb, rb)), precision, preferred_element_type)
    group = len(lb)
    order = (group, *(d for d in range(len(out.shape)) if d != group))
    return lax.transpose(out, order)


def _by_group(lhs: Any, group_sizes: Any, axis: int) -> Any:
    """[groups, *lhs]: lhs once for each group, zero where another has the row."""
    shape, groups = np.shape(lhs), np.shape(group_sizes)[0]
    ends = lax.cumsum(group_sizes)
    starts = lax.sub(ends, group_sizes)
    whole = (groups, *shape)
    row = lax.broadcasted_iota(get_aval(group_sizes).dtype, whole, axis + 1)
    inside = lax.bitwise_and(
        lax.ge(row, lax.broadcast_in_dim(starts, whole, (0,))),
        lax.lt(row, lax.broadcast_in_dim(ends, whole, (0,))),
    )
    spread = lax.broadcast_in_dim(lhs, whole, tuple(range(1, len(whole))))
    zero = lax.broadcast_in_dim(scalar_like(lhs, 0), whole, ())
    return lax.select(inside, spread, zero)


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: Any = None,
) -> Array:
    """dot_general of lhs and rhs times their scales, as in microscaling formats: each scale is
    shared by a block of neighbouring elements along a contracting axis.

    lhs, rhs                arrays of narrow floats.
    lhs_scale, rhs_scale    arrays of the operand's rank, smaller along contracting axes by the size
                            of a block; None: ones.
    dimension_numbers       those of dot_general, by default a matrix product's.
    preferred_element_type  the dtype of the sums; None: bfloat16. Products are computed in
                            bfloat16.

    Raises TypeError where sizes do not fit.

    >>> x, y = jnp.ones((1, 4), 'bfloat16'), jnp.ones((4, 1), 'bfloat16')
    >>> print(lax.scaled_dot(x, y, lhs_scale=jnp.array([[1, 10]], 'bfloat16')))
    [[22]]
    """
    if dimension_numbers is None:
        n = len(np.shape(lhs))
        if n < 2:
            raise TypeError("scaled_dot does not support 0-rank and 1-rank operands.")
        batch = tuple(range(n - 2))
        dimension_numbers = (((n - 1,), (n - 2,)), (batch, batch))
    bf16 = np.dtype(ml_dtypes.bfloat16)
    to = bf16 if preferred_element_type is None else dtypes.canonicalize(preferred_element_type)
    parts = []
    for x, scale in ((lhs, lhs_scale), (rhs, rhs_scale)):
        x = lax.convert_element_type(x, bf16)
        if scale is not None:
            x = lax.mul(x, _repeated(lax.convert_element_type(scale, bf16), x.shape))
        parts.append(x)
    return lax.dot_general(parts[0], parts[1], dimension_numbers, preferred_element_type=to)


def _repeated(scale: Any, shape: tuple[int, ...]) -> Any:
    """Each scale for the block of elements that share it."""
    have = scale.shape
    if len(have) != len(shape) or any(m == 0 or n % m for m, n in zip(have, shape)):
        raise TypeError(f"[scaled_dot] scales of shape {have} do not divide an operand of {shape}")
    cut = [k for m, n in zip(have, shape) for k in (m, n // m)]
    spread = lax.broadcast_in_dim(scale, cut, tuple(range(0, 2 * len(shape), 2)))
    return lax.reshape(spread, shape)
