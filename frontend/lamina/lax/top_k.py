"""top_k: the greatest elements along an axis and where they are; approx_max_k, approx_min_k."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_LINEAR, Primitive, ShapedArray, Zero, get_aval
from lamina.core.placed import Operands
from lamina.lax import hlo
from lamina.lax.checks import canonical_axis


# ---- user functions ----------------------------------------------------------------------------
def top_k(operand: Any, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Any]:
    """The k greatest elements along an axis, greatest first, and their indices; of equal elements
    the first comes first. Floats are in IEEE 754's total order: NaN, inf, ..., 0.0, -0.0, ...,
    -inf, NaN with the sign bit.

    operand    an array of real numbers or booleans, of one dimension or more.
    k          a Python int from 0 to the axis' size.
    axis       counted from the end where negative.
    is_stable  whether equal elements must keep their order; here they always do.

    Gives [values, indices]: both have operand's shape with k in the place of the axis' size, the
    indices are int32. Raises TypeError where k is no concrete integer, ValueError where it is out
    of range, for an axis that is not there, and for complex numbers.

    >>> values, indices = lax.top_k(jnp.array([3, 9, 5, 9]), 3)
    >>> print(values, indices)
    [9 9 5] [1 3 2]
    """
    shape = np.shape(operand)
    axis = canonical_axis("top_k", axis, len(shape))
    try:
        k = operator.index(k)
    except TypeError:
        raise TypeError(f"[top_k] k must be a concrete integer, got {k!r}") from None
    if not 0 <= k <= shape[axis]:
        raise ValueError(
            f"[top_k] k={k} must be between 0 and the size of axis {axis}, {shape[axis]}"
        )
    if get_aval(operand).dtype.kind == "c":
        raise ValueError("top_k is not compatible with complex inputs.")
    return list(top_k_p.bind(operand, k=k, axis=axis))


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The k greatest elements along an axis, greatest first, and their indices. JAX may miss some
    of them on TPUs, for speed; here all of them are found.

    operand                        an array of real numbers.
    k                              how many.
    reduction_dimension            the axis.
    recall_target                  the share that must be found; without effect.
    reduction_input_size_override  the size that this share counts from; without effect.
    aggregate_to_topk              whether just k remain; without effect, for they do.

    Gives [values, indices], the indices as int32. Raises ValueError as top_k does.

    >>> values, indices = lax.approx_max_k(jnp.array([1.0, 3.0, 2.0]), 2)
    >>> print(values, indices)
    [3. 2.] [1 2]
    """
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The k least elements along an axis, least first, and their indices, as approx_max_k: none is
    missed.

    operand                        an array of real numbers.
    k                              how many.
    reduction_dimension            the axis.
    recall_target                  the share that must be found; without effect.
    reduction_input_size_override  the size that this share counts from; without effect.
    aggregate_to_topk              whether just k remain; without effect, for they do.

    Gives [values, indices], the indices as int32. Raises ValueError as top_k does.

    >>> values, indices = lax.approx_min_k(jnp.array([1.0, 3.0, 2.0]), 2)
    >>> print(values, indices)
    [1. 2.] [0 2]
    """
    values, indices = top_k(lax.neg(operand), k, axis=reduction_dimension)
    return [lax.neg(values), indices]


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return [x.update(shape=shape), ShapedArray(shape, np.dtype(np.int32))]


def _lowering(ctx: Any, x: Any, *, k: int, axis: int) -> list[Any]:
    """The op takes the last dimension, so the axis changes places with it."""
    places = list(range(len(ctx.avals_in[0].shape)))
    last = places[-1]
    if axis == last:
        return hlo.top_k(x, k)
    places[axis], places[last] = last, axis
    return [hlo.transpose(out, places) for out in hlo.top_k(hlo.transpose(x, places), k)]


def _jvp(primals: Any, tangents: Any, *, k: int, axis: int) -> Any:
    values, indices = top_k_p.bind(*primals, k=k, axis=axis)
    (t,) = tangents
    of_values = (
        Zero(get_aval(values).to_tangent_aval()) if type(t) is Zero
        else lax.take_along_axis(t, indices, axis, mode="promise_in_bounds")
    )  # fmt: skip
    return [values, indices], [of_values, Zero(get_aval(indices).to_tangent_aval())]


def _batching(args: Any, dims: Any, *, k: int, axis: int) -> tuple[Any, list[int]]:
    (x,), (d,) = args, dims
    return top_k_p.bind(x, k=k, axis=axis + (d <= axis)), [d, d]


def _placed(of: Operands, *out: ShapedArray, axis: int, **_: Any) -> Any:
    of.whole(0, axis, "top_k")
    return [of.dims[0]] * 2


top_k_p: Primitive = Primitive(
    "top_k",
    abstract_eval=_abstract_eval,
    placed=_placed,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=_batching,
    multiple_results=True,
)
