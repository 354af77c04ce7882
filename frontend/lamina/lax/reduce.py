"""Reductions: reduce_sum max min prod and or xor, argmax, argmin; each drops the axes it names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import config, lax
from lamina.core import (
    LINEAR,
    NOT_DIFFERENTIABLE,
    NOT_LINEAR,
    Primitive,
    ShapedArray,
    dtypes,
    get_aval,
)  # fmt: skip
from lamina.core.array_class import Array
from lamina.core.placed import ShardingTypeError, reduced_over, terms_wanted
from lamina.lax import hlo
from lamina.lax.batching_rules import past
from lamina.lax.checks import (
    ANY,
    BITS,
    NUMBER,
    Accepted,
    accepted,
    canonical_axes,
    check_accepted,
    dtype_of,
    scalar_like,
)  # fmt: skip


# ---- user functions ----------------------------------------------------------------------------
def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The sum over some axes, which the result lacks, in operand's dtype; 0 over nothing.

    operand  an array of numbers.
    axes     a tuple of ints, counted from the end where negative.
    out_sharding  how the result lies on devices, a sharding or None.

    Raises ValueError where an axis is not there or named twice; TypeError for booleans.

    >>> print(lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), (0,)))
    [4 6]
    """
    return _under(reduce_sum_p, "sum", operand, axes, out_sharding)


def reduce_prod(operand: Any, axes: Sequence[int]) -> Array:
    """The product over some axes, which the result lacks, in operand's dtype; 1 over nothing.

    operand  an array of numbers.
    axes     a tuple of ints, counted from the end where negative.

    Raises ValueError where an axis is not there or named twice; TypeError for booleans.

    >>> print(lax.reduce_prod(jnp.array([[1, 2], [3, 4]]), (0, 1)))
    24
    """
    return _bind(reduce_prod_p, operand, axes)


def reduce_max(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The greatest element over some axes, which the result lacks; NaN if there is one; over
    nothing the least value of the dtype.

    operand  an array of numbers or booleans; complex numbers compare by real, then by imaginary
             part.
    axes     a tuple of ints, counted from the end where negative.
    out_sharding  how the result lies on devices, a sharding or None.

    Raises ValueError where an axis is not there or named twice.

    >>> print(lax.reduce_max(jnp.array([[1, 5], [3, 4]]), (1,)))
    [5 4]
    """
    return _under(reduce_max_p, "max", operand, axes, out_sharding)


def reduce_min(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The least element over some axes, which the result lacks; NaN if there is one; over nothing
    the greatest value of the dtype.

    operand  an array of numbers or booleans; complex numbers compare by real, then by imaginary
             part.
    axes     a tuple of ints, counted from the end where negative.
    out_sharding  how the result lies on devices, a sharding or None.

    Raises ValueError where an axis is not there or named twice.

    >>> print(lax.reduce_min(jnp.array([[1, 5], [3, 4]]), (1,)))
    [1 3]
    """
    return _under(reduce_min_p, "min", operand, axes, out_sharding)


def reduce_and(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise (for booleans, logical) and over some axes, which the result lacks; all bits set
    over nothing.

    operand  an array of integers or booleans.
    axes     a tuple of ints, counted from the end where negative.

    Raises ValueError where an axis is not there or named twice; TypeError for floats.

    >>> print(lax.reduce_and(jnp.array([0b110, 0b011]), (0,)))
    2
    """
    return _bind(reduce_and_p, operand, axes)


def reduce_or(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise (for booleans, logical) or over some axes, which the result lacks; 0 over
    nothing.

    operand  an array of integers or booleans.
    axes     a tuple of ints, counted from the end where negative.

    Raises ValueError where an axis is not there or named twice; TypeError for floats.

    >>> print(lax.reduce_or(jnp.array([[True, False], [False, False]]), (1,)))
    [ True False]
    """
    return _bind(reduce_or_p, operand, axes)


def reduce_xor(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise exclusive or over some axes, which the result lacks: for booleans, whether an odd
    number of them is True.

    operand  an array of integers or booleans.
    axes     a tuple of ints, counted from the end where negative.

    Raises ValueError where an axis is not there or named twice; TypeError for floats.

    >>> print(lax.reduce_xor(jnp.array([True, True, True]), (0,)))
    True
    """
    return _bind(reduce_xor_p, operand, axes)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Array:
    """The index along an axis, which the result lacks, of the greatest element, or of the first
    NaN; of equal elements the first.

    operand      an array of real numbers or booleans.
    axis         from 0 to the rank - 1; the array must have elements along it.
    index_dtype  of the result, an integer dtype.

    Raises ValueError for another axis or an empty one; TypeError for other dtypes.

    >>> print(lax.argmax(jnp.array([[1, 5, 5], [3, 1, 0]]), 1, 'int32'))
    [1 0]
    """
    return _bind_index(argmax_p, operand, axis, index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Array:
    """The index along an axis, which the result lacks, of the least element, or of the first NaN;
    of equal elements the first.

    operand      an array of real numbers or booleans.
    axis         from 0 to the rank - 1; the array must have elements along it.
    index_dtype  of the result, an integer dtype.

    Raises ValueError for another axis or an empty one; TypeError for other dtypes.

    >>> print(lax.argmin(jnp.array([[1, 5, 5], [3, 1, 0]]), 1, 'int32'))
    [0 2]
    """
    return _bind_index(argmin_p, operand, axis, index_dtype)


def _under(
    primitive: Primitive, kind: str, operand: Any, axes: Sequence[int], out_sharding: Any
) -> Array:
    if out_sharding is None:
        return _bind(primitive, operand, axes)
    spec = getattr(out_sharding, "spec", out_sharding)
    x = get_aval(operand)
    before = frozenset() if x.placed is None else x.placed.sums.unreduced
    if terms := getattr(spec, "unreduced", None):
        given = () if x.placed is None else (n for a in axes for n in x.placed.dims[a])
        if not terms <= {*given, *before}:
            raise ShardingTypeError(
                f"out_sharding's unreduced axes should be in operand's specs that were {primitive.name} over. Got "
                f"{set(terms)} for {x.str_short()} over {tuple(axes)}"
            )
    with terms_wanted(bool(terms)):
        out = _bind(primitive, operand, axes)
        if terms and not before <= terms:  # terms of terms first, of which some are added up
            both = spec.update(unreduced=terms | before)
            over = both if spec is out_sharding else out_sharding.update(spec=both)
            out = lax.under(out, over, primitive.name, kind)
        return lax.under(out, out_sharding, primitive.name, kind)


def _bind(primitive: Primitive, operand: Any, axes: Sequence[int]) -> Any:
    return primitive.bind(
        operand, axes=canonical_axes(primitive.name, axes, len(np.shape(operand)))
    )


def _bind_index(primitive: Primitive, operand: Any, axis: int, index_dtype: Any) -> Any:
    shape = np.shape(operand)
    if not 0 <= axis < len(shape):
        raise ValueError(f"{primitive}: invalid axis {axis} for operand shape {shape}")
    return primitive.bind(operand, axes=(axis,), index_dtype=dtypes.canonicalize(index_dtype))


# ---- rules of all reductions -------------------------------------------------------------------
def _without(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def kept(ndim: int, axes: Sequence[int]) -> tuple[int, ...]:
    """The axes of an operand that a reduction over `axes` leaves."""
    return tuple(i for i in range(ndim) if i not in axes)


def spread(x: Any, shape: tuple[int, ...], axes: Sequence[int]) -> Any:
    """The result of a reduction over `axes` repeated to the shape of its operand."""
    return lax.broadcast_in_dim(x, shape, kept(len(shape), axes))


def _drop_axes(name: str, accept: Accepted) -> Callable[..., ShapedArray]:
    def abstract_eval(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
        check_accepted(name, accept, x)
        _check_axes(name, x, axes)
        return ShapedArray(_without(x.shape, axes), x.dtype, x.weak_type)

    return abstract_eval


def _check_axes(name: str, x: ShapedArray, axes: tuple[int, ...]) -> None:
    if len(set(axes)) != len(axes) or any(not 0 <= a < len(x.shape) for a in axes):
        raise ValueError(f"[{name}] axes {axes} are not distinct axes of {x.str_short()}")


def scalar_body(ctx: Any, combine: Primitive, dtype: np.dtype) -> Callable[[Any, Any], list[Any]]:
    """An elementwise primitive of two operands as the body of a reduction over this dtype."""
    scalar = ShapedArray((), dtype)
    inner = dataclasses.replace(ctx, avals_in=[scalar, scalar], avals_out=[scalar])
    return lambda x, y: [combine.lowering(inner, x, y)]  # type: ignore[operator]


def _reduce_lowering(
    combine: Callable[[], Primitive], identity: Callable[[np.dtype], Any]
) -> Callable[..., Any]:
    """Folds with the elementwise primitive of the reduction, from `identity` of the dtype."""

    def rule(ctx: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        if not axes:
            return x
        of = ctx.avals_in[0]
        if all(of.shape[axis] == 1 for axis in axes):
            return ctx.module.spreads.reshape(x, ctx.avals_out[0].shape)
        dtype = of.dtype
        init = hlo.full(identity(dtype), (), dtype)
        return hlo.reduce([x], [init], axes, scalar_body(ctx, combine(), dtype))[0]

    return rule


def _reduce_batching(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(args: Any, dims: Any, *, axes: tuple[int, ...], **params: Any) -> tuple[Any, int]:
        (d,) = dims
        axes = past(d, axes)
        return primitive().bind(*args, axes=axes, **params), d - sum(a < d for a in axes)

    return rule


def _reduction(name: str, accept: Accepted, combine: Callable[[], Primitive],
               identity: Callable[[np.dtype], Any], jvp: Any, transpose: Any = NOT_LINEAR,
               types: Callable[[str, Accepted], Callable[..., Any]] = lambda *of: _drop_axes(*of),
               ) -> Primitive:  # fmt: skip
    primitive = Primitive(
        name,
        abstract_eval=types(name, accept),
        placed=lambda of, out, *, axes, **_: reduced_over(of, axes),
        lowering=_reduce_lowering(combine, identity),
        jvp=jvp,
        transpose=transpose,
        batching=_reduce_batching(lambda: primitive),
    )
    return primitive


def _sum_type(name: str, accept: Accepted) -> Callable[..., Any]:
    rule = _drop_axes(name, accept)

    def sum_type(x: ShapedArray, **params: Any) -> Any:
        if x.dtype.itemsize == 2 and dtypes.is_float(x.dtype) and not config.allow_f16_reductions.value:
            raise ValueError(
                f"{name} on operand {x.str_short()} is not allowed when allow_f16_reductions is off"
            )
        return rule(x, **params)

    return sum_type


# ---- derivatives -------------------------------------------------------------------------------
def _reduce_sum_transpose(ct: Any, x: Any, *, axes: tuple[int, ...]) -> list[Any]:
    return [spread(ct, x.aval.shape, axes)]


def _extremum_jvp(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(primals: Any, tangents: Any, *, axes: tuple[int, ...]) -> tuple[Any, Any]:
        (x,), (g,) = primals, tangents
        ans = primitive().bind(x, axes=axes)
        # Equal extrema share the tangent.
        here = lax.convert_element_type(lax.eq(x, spread(ans, x.shape, axes)), dtype_of(g))
        count = reduce_sum(here, axes)
        return ans, lax.div(reduce_sum(lax.mul(g, here), axes), count)

    return rule


def _reduce_prod_jvp(primals: Any, tangents: Any, *, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Sums g[i] times the product of all others, which needs no division and so is right at 0."""
    (x,), (g,) = primals, tangents
    ans = reduce_prod(x, axes)
    rest = kept(len(x.shape), axes)
    size = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    flat = (size, *(x.shape[i] for i in rest))
    x, g = (lax.reshape(lax.transpose(v, (*axes, *rest)), flat) for v in (x, g))
    before = _exclusive_products(x, reverse=False)
    after = _exclusive_products(x, reverse=True)
    return ans, reduce_sum(lax.mul(g, lax.mul(before, after)), (0,))


def _exclusive_products(x: Any, *, reverse: bool) -> Any:
    """For each i along axis 0 the product of the elements before it (after it, if reverse)."""
    if not x.shape[0]:
        return x
    shift = (-1, 1, 0) if reverse else (1, -1, 0)
    config = (shift, *((0, 0, 0),) * (len(x.shape) - 1))
    return lax.cumprod(lax.pad(x, scalar_like(x, 1), config), 0, reverse)


# ---- primitives --------------------------------------------------------------------------------
reduce_sum_p: Primitive = _reduction(
    "reduce_sum", NUMBER, lambda: lax.add_p, lambda _: 0, LINEAR, _reduce_sum_transpose,
    _sum_type,
)  # fmt: skip
reduce_prod_p: Primitive = _reduction(
    "reduce_prod", NUMBER, lambda: lax.mul_p, lambda _: 1, _reduce_prod_jvp,
)  # fmt: skip
reduce_max_p: Primitive = _reduction(
    "reduce_max", ANY, lambda: lax.max_p, dtypes.least, _extremum_jvp(lambda: reduce_max_p),
)  # fmt: skip
reduce_min_p: Primitive = _reduction(
    "reduce_min", ANY, lambda: lax.min_p, dtypes.greatest, _extremum_jvp(lambda: reduce_min_p),
)  # fmt: skip
reduce_and_p: Primitive = _reduction(
    "reduce_and", BITS, lambda: lax.and_p, lambda dtype: True if dtype.kind == "b" else -1,
    NOT_DIFFERENTIABLE,
)  # fmt: skip
reduce_or_p: Primitive = _reduction(
    "reduce_or", BITS, lambda: lax.or_p, lambda _: 0, NOT_DIFFERENTIABLE
)
reduce_xor_p: Primitive = _reduction(
    "reduce_xor", BITS, lambda: lax.xor_p, lambda _: 0, NOT_DIFFERENTIABLE
)


# ---- argmax and argmin -------------------------------------------------------------------------
_ORDERED = accepted("integer", "floating", "bool")


def _index_abstract_eval(name: str) -> Callable[..., ShapedArray]:
    def rule(x: ShapedArray, *, axes: tuple[int, ...], index_dtype: np.dtype) -> ShapedArray:
        check_accepted(name, _ORDERED, x)
        _check_axes(name, x, axes)
        if not dtypes.is_integer(index_dtype):
            raise TypeError(f"{name} index_dtype must be an integer type, got {index_dtype.name}.")
        if x.shape[axes[0]] == 0:
            raise ValueError(f"attempt to get {name} of an empty sequence")
        return ShapedArray(_without(x.shape, axes), index_dtype)

    return rule


def _index_lowering(direction: str, start: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    """Reduces pairs (value, index); of two, the better value wins, NaN before all, then the lower
    index."""

    def rule(ctx: Any, x: Any, *, axes: tuple[int, ...], index_dtype: np.dtype) -> Any:
        aval = ctx.avals_in[0]

        def better(value: Any, index: Any, other: Any, other_index: Any) -> list[Any]:
            wins = hlo.compare(value, other, direction)
            if dtypes.is_float(aval.dtype):
                wins = hlo.or_(wins, hlo.compare(value, value, "NE"))
            earlier = hlo.and_(
                hlo.compare(value, other, "EQ"), hlo.compare(index, other_index, "LT")
            )
            if dtypes.is_float(aval.dtype):
                # Both NaN: `wins` holds for whichever comes first in the fold, so ask the index.
                both = hlo.and_(hlo.compare(value, value, "NE"), hlo.compare(other, other, "NE"))
                wins = hlo.select(both, hlo.compare(index, other_index, "LT"), wins)
            keep_index = hlo.or_(wins, earlier)
            return [hlo.select(wins, value, other), hlo.select(keep_index, index, other_index)]

        positions = hlo.iota(aval.shape, index_dtype, axes[0])
        inits = [hlo.full(start(aval.dtype), (), aval.dtype), hlo.full(0, (), index_dtype)]
        return hlo.reduce([x, positions], inits, axes, better)[1]

    return rule


def _index_reduction(name: str, direction: str, start: Callable[[np.dtype], Any]) -> Primitive:
    primitive = Primitive(
        name,
        abstract_eval=_index_abstract_eval(name),
        placed=lambda of, out, *, axes, **_: reduced_over(of, axes),
        lowering=_index_lowering(direction, start),
        jvp=NOT_DIFFERENTIABLE,
        transpose=NOT_LINEAR,
        batching=_reduce_batching(lambda: primitive),
    )
    return primitive


argmax_p: Primitive = _index_reduction("argmax", "GT", dtypes.least)
argmin_p: Primitive = _index_reduction("argmin", "LT", dtypes.greatest)
