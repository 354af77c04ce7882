"""Choice, elementwise: select_n, clamp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive, ShapedArray, Zero, dtypes, get_aval, is_undefined_primal
from lamina.core.array_class import Array
from lamina.core.placed import Operands, ShardingTypeError, Sums, alike, linear_in, spec
from lamina.lax import hlo
from lamina.lax.batching_rules import at_front, batch_size
from lamina.lax.checks import ANY, check_same_dtypes
from lamina.lax.elementwise_rules import broadcast_to, builder, elementwise


# ---- user functions ----------------------------------------------------------------------------
def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """on_true where pred, else on_false, elementwise. Both are computed; lax.cond runs only one.

    pred               booleans, or integers 0 and 1; of the cases' shape or of rank 0.
    on_true, on_false  arrays of one shape and one dtype.

    Raises TypeError where shapes or dtypes differ or pred is of another dtype.

    >>> print(lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20])))
    [ 1 20]
    """
    return select_n_p.bind(pred, on_false, on_true)


def select_n(which: Any, *cases: Any) -> Array:
    """cases[which], elementwise.

    which  booleans (two cases, False is the first) or integers, which must be in range; of the
           cases' shape or of rank 0.
    cases  arrays of one shape and one dtype.

    Raises TypeError where shapes or dtypes differ, which is of another dtype, or booleans choose
    among more than two.

    >>> print(lax.select_n(jnp.array([2, 0]), *jnp.array([[1, 2], [10, 20], [100, 200]])))
    [100   2]
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return select_n_p.bind(which, *cases)


def clamp(min: Any, x: Any, max: Any) -> Array:
    """x kept between min and max, elementwise; max where min > max; NaN stays NaN.

    min, max  arrays of x's dtype and shape, or scalars of its dtype.
    x         an array of numbers.

    Raises TypeError where dtypes or shapes differ.

    >>> print(lax.clamp(0.0, jnp.array([-1.0, 0.5, 3.0]), 1.0))
    [0.  0.5 1. ]
    """
    return clamp_p.bind(min, x, max)


# ---- select_n ----------------------------------------------------------------------------------
def _select_abstract_eval(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    first = cases[0]
    if which.dtype.kind != "b" and not dtypes.is_integer(which.dtype):
        raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype.name}.")
    if which.dtype.kind == "b" and len(cases) > 2:
        raise TypeError(f"select with boolean `which` cannot have > 2 cases. Got {len(cases)}.")
    weak = True
    for case in cases:
        weak = weak and case.weak_type
        if case.shape != first.shape:
            shown = ", ".join(str(c.shape) for c in cases)
            raise TypeError(f"select cases must have the same shapes, got [{shown}].")
        if case.dtype != first.dtype:
            check_same_dtypes("select", cases)
    if which.shape and which.shape != first.shape:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got `which` shape "
            f"{which.shape} but case shape {first.shape}."
        )
    return first if weak == first.weak_type else first.update(weak_type=weak)


def _select_lowering(ctx: Any, which: Any, *cases: Any) -> Any:
    aval = ctx.avals_in[0]
    if len(cases) == 1:
        return cases[0]
    if aval.dtype.kind == "b":
        return hlo.select(which, cases[1], cases[0])

    def choose(first: int, cases: Sequence[Any]) -> Any:
        if len(cases) == 1:
            return cases[0]
        middle = len(cases) // 2
        lower = hlo.compare(which, hlo.full(first + middle, aval.shape, aval.dtype), "LT")
        return hlo.select(
            lower, choose(first, cases[:middle]), choose(first + middle, cases[middle:])
        )

    return choose(0, cases)


def _select_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    which, *cases = primals
    out = select_n_p.bind(which, *cases)
    if all(type(t) is Zero for t in tangents[1:]):
        return out, Zero(get_aval(out).to_tangent_aval())
    filled = [
        lax.full(t.aval.shape, 0, t.aval.dtype) if type(t) is Zero else t for t in tangents[1:]
    ]
    return out, select_n_p.bind(which, *filled)


def _select_transpose(ct: Any, which: Any, *cases: Any) -> list[Any]:
    zeros = lax.full_like(ct, 0)
    return [None] + [
        select_n_p.bind(which, *(ct if j == i else zeros for j in range(len(cases))))
        if is_undefined_primal(case) else None
        for i, case in enumerate(cases)
    ]  # fmt: skip


def _select_batching(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    which, *cases = args
    size = batch_size(args, dims)
    case_dims = set(dims[1:])
    if (
        len(case_dims) == 1
        and None not in case_dims
        and (
            dims[0] in case_dims
            and np.shape(which) == np.shape(cases[0])
            or dims[0] is None
            and not np.shape(which)
        )
    ):
        return select_n_p.bind(which, *cases), dims[1]  # type: ignore[return-value]
    cases = [at_front(x, d, size) for x, d in zip(cases, dims[1:])]
    if dims[0] is not None or np.shape(which):
        which = at_front(which, dims[0], size)
        if which.shape != cases[0].shape:
            which = lax.broadcast_in_dim(which, cases[0].shape, (0,))
    return select_n_p.bind(which, *cases), 0


def _select_sums(operands: Operands) -> Sums:
    return linear_in(*range(1, len(operands.avals)))(operands)


def _select_placed(operands: Operands, out: ShapedArray, **_: Any) -> Any:
    cases = [dims for dims in operands.dims[1:] if any(dims)]  # what is whole is split as the others are
    if any(dims != cases[0] for dims in cases):
        raise ShardingTypeError(
            f"select cases must have the same shardings, got [{', '.join(map(spec, cases))}]: reshard them so"
        )
    return alike(operands, out)


select_n_p: Primitive = Primitive(
    "select_n",
    abstract_eval=_select_abstract_eval,
    placed=_select_placed,
    lowering=_select_lowering,
    jvp=_select_jvp,
    sums=_select_sums,
    transpose=_select_transpose,
    batching=_select_batching,
)


# ---- clamp -------------------------------------------------------------------------------------
def _where(condition: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """The derivative of clamp by the operand that it returns where `condition` holds."""

    def derivative(g: Any, ans: Any, low: Any, x: Any, high: Any) -> Any:
        mask = condition(low, x, high)
        if np.shape(g) != mask.shape:
            g = broadcast_to(g, mask.shape)
        return select(mask, g, lax.full_like(g, 0))

    return derivative


clamp_p: Primitive = elementwise(
    "clamp", builder("clamp"), ANY, ANY, ANY,
    derivatives=[
        _where(lambda low, x, high: lax.bitwise_and(lax.gt(low, x), lax.lt(low, high))),
        _where(lambda low, x, high: lax.bitwise_and(lax.gt(x, low), lax.lt(x, high))),
        _where(lambda low, x, high: lax.lt(high, x)),
    ],
)  # fmt: skip
