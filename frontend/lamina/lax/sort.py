"""sort: one or several arrays put in the order of the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import NOT_LINEAR, Primitive, ShapedArray, Zero, dtypes, get_aval
from lamina.core.placed import Operands, ShardingTypeError, alike
from lamina.lax import hlo
from lamina.lax.batching_rules import all_at_front
from lamina.lax.checks import canonical_axis


# ---- user functions ----------------------------------------------------------------------------
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """operand in ascending order along an axis: -inf first, NaN last, -0.0 equal to 0.0; complex
    numbers by real, then by imaginary part.

    operand    an array, or a sequence of arrays of one shape, which are sorted together: by the
               first num_keys arrays, the earlier the more important, and the others are carried
               along. The result is then a tuple.
    dimension  the axis, counted from the end where negative.
    is_stable  whether equal keys keep their order.
    num_keys   how many of the arrays are keys.

    Raises TypeError where shapes differ; ValueError where there is no such axis or number of keys.

    >>> print(lax.sort(jnp.array([3.0, jnp.nan, -1.0])))
    [-1.  3. nan]
    >>> keys, values = lax.sort((jnp.array([2, 1, 3]), jnp.array([20, 10, 30])))
    >>> print(keys, values)
    [1 2 3] [10 20 30]
    """
    operands = operand if isinstance(operand, Sequence) else (operand,)
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"num_keys={num_keys} must be between 1 and len(operands)={len(operands)}")
    axis = canonical_axis("sort", dimension, len(np.shape(operands[0])))
    out = sort_p.bind(*operands, dimension=axis, is_stable=bool(is_stable), num_keys=int(num_keys))
    return tuple(out) if isinstance(operand, Sequence) else out[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> Any:
    """keys in ascending order along an axis, and values in the same order.

    keys       an array.
    values     an array of its shape.
    dimension  the axis, counted from the end where negative.
    is_stable  whether values of equal keys keep their order.

    Raises TypeError where shapes differ; ValueError where there is no such axis.

    >>> keys, values = lax.sort_key_val(jnp.array([2, 1, 3]), jnp.array([20, 10, 30]))
    >>> print(keys, values)
    [1 2 3] [10 20 30]
    """
    return sort((keys, values), dimension, is_stable)


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(*operands: ShapedArray, dimension: int, is_stable: bool, num_keys: int
                   ) -> list[ShapedArray]:  # fmt: skip
    if any(x.shape != operands[0].shape for x in operands):
        shown = ", ".join(x.str_short() for x in operands)
        raise TypeError(f"[sort] all operands must have one shape, got {shown}")
    return list(operands)


def _less(x: Any, y: Any, dtype: np.dtype) -> Any:
    """Whether x comes before y: NaN after all others."""
    if dtypes.is_complex(dtype):
        parts = [(hlo.real(x), hlo.real(y)), (hlo.imag(x), hlo.imag(y))]
        return _lexicographic([(a, b, dtypes.real_dtype(dtype)) for a, b in parts])
    less = hlo.compare(x, y, "LT")
    if dtypes.is_float(dtype):
        nan_last = hlo.and_(hlo.compare(x, x, "EQ"), hlo.compare(y, y, "NE"))
        less = hlo.or_(less, nan_last)
    return less


def _lexicographic(keys: Sequence[tuple[Any, Any, np.dtype]]) -> Any:
    """Whether the first list of keys comes before the second."""
    (x, y, dtype), *rest = keys
    less = _less(x, y, dtype)
    if not rest:
        return less
    tied = hlo.not_(_less(y, x, dtype))
    return hlo.or_(less, hlo.and_(tied, _lexicographic(rest)))


def _lowering(
    ctx: Any, *operands: Any, dimension: int, is_stable: bool, num_keys: int
) -> list[Any]:
    kinds = [aval.dtype for aval in ctx.avals_in[:num_keys]]

    def comparator(*pairs: Any) -> list[Any]:
        return [_lexicographic([(pairs[2 * i], pairs[2 * i + 1], d) for i, d in enumerate(kinds)])]

    return hlo.sort(operands, dimension, is_stable, comparator)


def _jvp(primals: Any, tangents: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Any:
    index = lax.broadcasted_iota(np.int32, primals[0].shape, dimension)
    *outs, order = sort_p.bind(
        *primals, index, dimension=dimension, is_stable=is_stable, num_keys=num_keys
    )
    out_tangents = [
        Zero(get_aval(out).to_tangent_aval()) if type(g) is Zero
        else lax.take_along_axis(g, order, dimension, mode="promise_in_bounds")
        for out, g in zip(outs, tangents)
    ]  # fmt: skip
    return outs, out_tangents


def _batching(args: Any, dims: Any, *, dimension: int, **params: Any) -> tuple[Any, list[int]]:
    out = sort_p.bind(*all_at_front(args, dims), dimension=dimension + 1, **params)
    return out, [0] * len(out)


def _placed(of: Operands, *out: ShapedArray, dimension: int, **_: Any) -> Any:
    for i in range(len(out)):
        if of.dims[i][dimension]:
            raise ShardingTypeError(
                "Arguments to sort must be unsharded along the dimension that is sorted. Got operand "
                f"{of.avals[i].str_short()} sorted along dimension {dimension}: reshard it so that this is not split"
            )
    return alike(of, *out)


sort_p: Primitive = Primitive(
    "sort",
    abstract_eval=_abstract_eval,
    placed=_placed,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=_batching,
    multiple_results=True,
)
