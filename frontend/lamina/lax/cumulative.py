"""Cumulative operations along an axis: cumsum cumprod cummax cummin.

Along short axes they are one reduction over pairs of elements; along others a window reduction whose
window is all that comes before, which is a kernel of its own. Complex numbers have no such kernel:
they are combined in blocks, the blocks' totals in the same way, and each block with the total before
it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from lamina import lax
from lamina.core import LINEAR, NOT_LINEAR, Primitive, ShapedArray, dtypes
from lamina.core.array_class import Array
from lamina.core.placed import Dims, Operands, ShardingTypeError, spec
from lamina.lax import hlo
from lamina.lax.checks import ANY, NUMBER, Accepted, canonical_axis, check_accepted
from lamina.lax.reduce import scalar_body
from lamina.records import Record

_BLOCK = 32
_SCANNED = frozenset(map(np.dtype, (bfloat16, *"? f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8".split())))


# ---- user functions ----------------------------------------------------------------------------
def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """Sums of the elements up to each along an axis, in operand's dtype and shape.

    operand  an array of numbers.
    axis     counted from the end where negative.
    reverse  sums from each element on to the end instead.

    Raises ValueError where there is no such axis; TypeError for booleans.

    >>> print(lax.cumsum(jnp.array([1, 2, 3])), lax.cumsum(jnp.array([1, 2, 3]), reverse=True))
    [1 3 6] [6 5 3]
    """
    return _bind(cumsum_p, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """Products of the elements up to each along an axis, in operand's dtype and shape.

    operand  an array of numbers.
    axis     counted from the end where negative.
    reverse  multiplies from each element on to the end instead.

    Raises ValueError where there is no such axis; TypeError for booleans.

    >>> print(lax.cumprod(jnp.array([1, 2, 3, 4])))
    [ 1  2  6 24]
    """
    return _bind(cumprod_p, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The greatest of the elements up to each along an axis, in operand's dtype and shape; NaN from
    the first NaN on.

    operand  an array of numbers or booleans.
    axis     counted from the end where negative.
    reverse  takes the elements from each on to the end instead.

    Raises ValueError where there is no such axis.

    >>> print(lax.cummax(jnp.array([1, 3, 2, 5, 4])))
    [1 3 3 5 5]
    >>> print(lax.cummax(jnp.array([1.0, jnp.nan, 2.0])))
    [ 1. nan nan]
    """
    return _bind(cummax_p, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """The least of the elements up to each along an axis, in operand's dtype and shape; NaN from
    the first NaN on.

    operand  an array of numbers or booleans.
    axis     counted from the end where negative.
    reverse  takes the elements from each on to the end instead.

    Raises ValueError where there is no such axis.

    >>> x = jnp.array([4, 5, 2, 3])
    >>> print(lax.cummin(x), lax.cummin(x, reverse=True))
    [4 4 2 2] [2 2 2 3]
    """
    return _bind(cummin_p, operand, axis, reverse)


def _bind(primitive: Primitive, operand: Any, axis: int, reverse: bool) -> Any:
    axis = canonical_axis(primitive.name, axis, len(np.shape(operand)))
    return primitive.bind(operand, axis=axis, reverse=bool(reverse))


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(name: str, accept: Accepted) -> Callable[..., ShapedArray]:
    def rule(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_accepted(name, accept, x)
        if not 0 <= axis < len(x.shape):
            raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape}")
        return x

    return rule


def _lowering(
    combine: Callable[[], Primitive], identity: Callable[[np.dtype], Any]
) -> Callable[..., Any]:
    def rule(ctx: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        aval = ctx.avals_in[0]
        if not aval.size:
            return x
        if aval.dtype.kind == "c" and combine() is lax.add_p:  # sums of real numbers are scanned fast
            part = ShapedArray(aval.shape, np.empty(0, aval.dtype).real.dtype)
            inner = dataclasses.replace(ctx, avals_in=[part], avals_out=[part])
            sums = (rule(inner, of(x), axis=axis, reverse=reverse) for of in (hlo.real, hlo.imag))
            return hlo.complex(*sums)
        scan = _Blocks(ctx, combine(), identity(aval.dtype), aval.dtype, axis)
        if aval.shape[axis] > _BLOCK and aval.dtype in _SCANNED:
            return _window(scan, x, aval.shape, reverse)
        if reverse:
            x = hlo.reverse(x, [axis])
        out = scan.prefixes(x, aval.shape)
        return hlo.reverse(out, [axis]) if reverse else out

    return rule


def _window(scan: _Blocks, x: Any, shape: tuple[int, ...], reverse: bool) -> Any:
    """All of an axis that comes before an element as a window over it."""
    n, ones = shape[scan.axis], [1] * len(shape)
    window, padding = list(ones), [[0, 0] for _ in shape]
    window[scan.axis] = n
    padding[scan.axis] = [0, n - 1] if reverse else [n - 1, 0]
    init = hlo.full(scan.identity, (), scan.dtype)
    body = scalar_body(scan.ctx, scan.combine, scan.dtype)
    return hlo.reduce_window(
        [x], [init], body=body, window_dimensions=window, window_strides=ones,
        base_dilations=ones, window_dilations=ones, padding=padding,
    )[0]  # fmt: skip


class _Blocks(Record, frozen=False):
    """Scans IR values along an axis with a primitive that has an identity."""

    ctx: Any
    combine: Primitive
    identity: Any
    dtype: np.dtype
    axis: int

    def prefixes(self, x: Any, shape: tuple[int, ...]) -> Any:
        """The combination of the elements up to each."""
        axis, n = self.axis, shape[self.axis]
        if n <= 2 * _BLOCK:
            return self._within(x, shape, axis)
        blocks = -(-n // _BLOCK)
        x = self._pad(x, len(shape), 0, blocks * _BLOCK - n)
        cut = (*shape[:axis], blocks, _BLOCK, *shape[axis + 1 :])
        inner = self._within(hlo.reshape(x, cut), cut, axis + 1)
        rows = (*shape[:axis], blocks, *shape[axis + 1 :])
        start, limit = [0] * len(cut), list(cut)
        start[axis + 1] = _BLOCK - 1
        totals = hlo.reshape(hlo.slice(inner, start, limit, [1] * len(cut)), rows)
        before = self._pad(self.prefixes(totals, rows), len(shape), 1, -1)
        kept = [d for d in range(len(cut)) if d != axis + 1]
        out = self._combined(hlo.broadcast_in_dim(before, cut, kept), inner, cut)
        out = hlo.reshape(out, (*shape[:axis], blocks * _BLOCK, *shape[axis + 1 :]))
        return hlo.slice(out, [0] * len(shape), shape, [1] * len(shape))

    def _within(self, x: Any, shape: tuple[int, ...], axis: int) -> Any:
        """The same by comparing all pairs: one reduction."""
        n = shape[axis]
        pairs = (*shape[: axis + 1], n, *shape[axis + 1 :])
        spread = hlo.broadcast_in_dim(x, pairs, [d for d in range(len(pairs)) if d != axis])
        place = np.dtype(np.int32)
        later = hlo.iota((n, n), place, 0)
        earlier = hlo.compare(hlo.iota((n, n), place, 1), later, "LE")
        mask = hlo.broadcast_in_dim(earlier, pairs, [axis, axis + 1])
        masked = hlo.select(mask, spread, hlo.full(self.identity, pairs, self.dtype))
        init = hlo.full(self.identity, (), self.dtype)
        body = scalar_body(self.ctx, self.combine, self.dtype)
        return hlo.reduce([masked], [init], [axis + 1], body)[0]

    def _combined(self, x: Any, y: Any, shape: tuple[int, ...]) -> Any:
        part = ShapedArray(shape, self.dtype)
        inner = dataclasses.replace(self.ctx, avals_in=[part, part], avals_out=[part])
        return self.combine.lowering(inner, x, y)  # type: ignore[operator]

    def _pad(self, x: Any, rank: int, low: int, high: int) -> Any:
        lows, highs = [0] * rank, [0] * rank
        lows[self.axis], highs[self.axis] = low, high
        return hlo.pad(x, hlo.full(self.identity, (), self.dtype), lows, highs, [0] * rank)


def _jvp(
    primitive: Callable[[], Primitive], combine: Callable[[], Primitive]
) -> Callable[..., Any]:
    """Scans values with their tangents, by the derivative of the combining primitive."""

    def step(left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
        return combine().jvp((left[0], right[0]), (left[1], right[1]))  # type: ignore[operator]

    def rule(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> tuple[Any, Any]:
        out = primitive().bind(*primals, axis=axis, reverse=reverse)
        pair = (primals[0], tangents[0])
        return out, lax.associative_scan(step, pair, reverse=reverse, axis=axis)[1]

    return rule


def _product_jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> tuple[Any, Any]:
    """Each tangent times what comes before it, on top of those before times the element."""
    (x,), (t,) = primals, tangents
    out = cumprod(x, axis, reverse)
    return out, _recurrence(x, lax.mul(_before(out, 1, axis, reverse), t), axis, reverse)


def _recurrence(factors: Any, terms: Any, axis: int, reverse: bool) -> Any:
    """h[i] = factors[i] h[i - 1] + terms[i]."""

    def combined(left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
        return lax.mul(left[0], right[0]), lax.add(lax.mul(right[0], left[1]), right[1])

    return lax.associative_scan(combined, (factors, terms), reverse=reverse, axis=axis)[1]


def _before(x: Any, first: float, axis: int, reverse: bool) -> Any:
    """The element before each along an axis."""
    config = [(0, 0, 0)] * len(x.shape)
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(x, lax.full((), first, x.dtype), config)


def _batching(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(args: Any, dims: Any, *, axis: int, reverse: bool) -> tuple[Any, int]:
        (d,) = dims
        return primitive().bind(*args, axis=axis + (axis >= d), reverse=reverse), d

    return rule


def _placed(of: Operands, out: ShapedArray, *, axis: int, **_: Any) -> Dims:
    if of.dims[0][axis]:
        raise ShardingTypeError(
            f"{of.name}: Input should be unsharded over the axis being reduced. Got {spec(of.dims[0])} and axis "
            f"{axis}: reshard it first"
        )
    return of.dims[0]


def _cumulative(
    name: str,
    accept: Accepted,
    combine: Callable[[], Primitive],
    identity: Callable[[np.dtype], Any],
    jvp: Any = None,
    transpose: Any = NOT_LINEAR,
) -> Primitive:
    primitive = Primitive(
        name,
        abstract_eval=_abstract_eval(name, accept),
        placed=_placed,
        lowering=_lowering(combine, identity),
        jvp=jvp or _jvp(lambda: primitive, combine),
        transpose=transpose,
        batching=_batching(lambda: primitive),
    )
    return primitive


cumsum_p: Primitive = _cumulative(
    "cumsum",
    NUMBER,
    lambda: lax.add_p,
    lambda _: 0,
    LINEAR,
    lambda ct, x, *, axis, reverse: [cumsum(ct, axis, not reverse)],
)
cumprod_p: Primitive = _cumulative("cumprod", NUMBER, lambda: lax.mul_p, lambda _: 1, _product_jvp)
cummax_p: Primitive = _cumulative("cummax", ANY, lambda: lax.max_p, dtypes.least)
cummin_p: Primitive = _cumulative("cummin", ANY, lambda: lax.min_p, dtypes.greatest)
