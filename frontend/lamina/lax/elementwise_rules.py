"""Makes elementwise primitives: a name, a builder, the dtypes it takes and its derivatives.

Operands of an elementwise primitive have one shape, up to two conveniences that JAX's programs
rely on: rank-0 operands stand next to full-shaped ones, and sizes of 1 spread. Lowering writes the
broadcasts out, derivatives with respect to a spread operand are summed back to its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import (
    NOT_DIFFERENTIABLE,
    NOT_LINEAR,
    Primitive,
    ShapedArray,
    Zero,
    get_aval,
    is_undefined_primal,
)
from lamina.core.library import library
from lamina.core.tangents import UnknownOperand
from lamina.core.trace import Tracer
from lamina.lax import hlo
from lamina.lax.batching_rules import move_axis
from lamina.lax.checks import INEXACT, Accepted, check_accepted, check_same_dtypes

Derivative = Callable[..., Any]
_ELEMENTWISE: set[Primitive] = set()


# ---- shapes ------------------------------------------------------------------------------------
def broadcast_shapes(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The common shape of elementwise operands; TypeError if they have none."""
    shapes = {a.shape for a in avals if a.shape}
    if len(shapes) <= 1:
        return next(iter(shapes), ())
    if len({len(s) for s in shapes}) != 1:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got shapes "
            f"{', '.join(str(a.shape) for a in avals)}. The functions of {library}.numpy broadcast them."
        )
    sizes = []
    for axis, column in enumerate(zip(*shapes)):
        wide = {d for d in column if d != 1}
        if len(wide) > 1:
            shown = ", ".join(str(a.shape) for a in avals)
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: {shown}. Sizes along an axis must "
                f"be equal, or 1; along axis {axis} they are {' and '.join(map(str, sorted(wide)))}."
            )
        sizes.append(next(iter(wide), 1))
    return tuple(sizes)


def _shape(x: Any) -> tuple[int, ...]:
    """np.shape, which takes long for tracers; also of Python numbers."""
    return x.aval.shape if isinstance(x, Tracer) else np.shape(x)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """An operand of rank 0, or with sizes of 1, spread over the operation's shape."""
    ndim = len(np.shape(x))
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - ndim, len(shape))))


def unbroadcast(aval: ShapedArray, ct: Any) -> Any:
    """The cotangent of an operand of type `aval`: that of its spread form, summed to its shape."""
    shape = _shape(ct)
    if shape == aval.shape:
        return ct
    if not aval.shape:
        return lax.reduce_sum(ct, tuple(range(len(shape))))
    axes = tuple(i for i, d in enumerate(aval.shape) if d != shape[i])
    return lax.expand_dims(lax.reduce_sum(ct, axes), axes)


def spread_values(ctx: Any, values: Sequence[Any]) -> Sequence[Any]:
    """IR values of elementwise operands, all broadcast to the result's shape."""
    shape = ctx.avals_out[0].shape
    for a in ctx.avals_in:
        if a.shape != shape:
            break
    else:
        return values
    spread, rank = ctx.module.spreads.spread, len(shape)
    return [
        v if a.shape == shape else spread(v, shape, range(rank - len(a.shape), rank))
        for v, a in zip(values, ctx.avals_in)
    ]


# ---- rules -------------------------------------------------------------------------------------
def elementwise_abstract_eval(
    name: str, accept: Sequence[Accepted], result: Callable[[np.dtype], np.dtype] | None
) -> Callable[..., ShapedArray]:
    """The type of the result: `result` of the first operand's dtype; weak if all operands are."""

    def unary(x: ShapedArray, **_: Any) -> ShapedArray:
        if x.dtype not in accept[0].dtypes:
            check_accepted(name, accept[0], x)
        return x if result is None else ShapedArray(x.shape, result(x.dtype), x.weak_type)

    def nary(*avals: ShapedArray, **_: Any) -> ShapedArray:
        x = avals[0]
        weak, same = x.weak_type, True
        for i, a in enumerate(avals):
            if a.dtype not in accept[i].dtypes:
                check_accepted(name, accept[i], a, i)
            same = same and a.shape == x.shape
            weak = weak and a.weak_type
            if a.dtype != x.dtype:
                check_same_dtypes(name, avals)
        if same and weak == x.weak_type and result is None:
            return x
        shape = x.shape if same else broadcast_shapes(name, avals)
        if result is None:
            for a in avals:
                if a.shape == shape and a.weak_type == weak:
                    return a
        return ShapedArray(shape, x.dtype if result is None else result(x.dtype), weak)

    return unary if len(accept) == 1 else nary


def elementwise_lowering(build: Callable[..., Any]) -> Callable[..., Any]:
    """Broadcasts the operands and applies a builder to them, before they get dimensions of 1 where
    they all got the same."""

    def rule(ctx: Any, *values: Any, **_: Any) -> Any:
        narrow = ctx.module.spreads.apply(build, values, ctx.avals_out[0].shape)
        return build(*spread_values(ctx, values)) if narrow is None else narrow

    return rule


def chlo_lowering(op: str) -> Callable[..., Any]:
    """Lowers to an op of CHLO, StableHLO's dialect of composed operations."""

    def rule(ctx: Any, *values: Any, **_: Any) -> Any:
        operands = spread_values(ctx, values)
        return hlo.chlo(op, operands, operands[0].type)

    return rule


def computed_in(wide: np.dtype, dtype: np.dtype, x: Any, formula: Callable[[Any], Any]) -> Any:
    """formula(x) for x of `dtype`, computed in a wider type where that is another."""
    if dtype == wide:
        return formula(x)
    return hlo.convert(formula(hlo.convert(x, wide)), dtype)


def elementwise_jvp(primitive: Callable[[], Primitive], derivatives: Sequence[Derivative | None]
                    ) -> Callable[..., Any]:  # fmt: skip
    """Sums d(g, ans, *primals, **params) over the operands that have a tangent.

    A derivative of None says that the result does not depend smoothly on that operand.
    """

    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        ans = primitive().bind(*primals, **params)
        total = None
        for derivative, g in zip(derivatives, tangents):
            if derivative is None or type(g) is Zero:
                continue
            term = derivative(g, ans, *primals, **params)
            shape = _shape(ans)
            if _shape(term) != shape:
                term = broadcast_to(term, shape)
            total = term if total is None else lax.add_any(total, term)
        return ans, Zero(get_aval(ans).to_tangent_aval()) if total is None else total

    return rule


def elementwise_batching(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Batches an elementwise primitive: one application on all examples at once."""

    def rule(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[Any, int]:
        op = primitive()
        batched = [(np.shape(x), d) for x, d in zip(args, dims) if d is not None]
        if len(set(batched)) == 1 and all(
            d is not None or not np.shape(x) for x, d in zip(args, dims)
        ):
            return op.bind(*args, **params), batched[0][1]
        rank = max(len(np.shape(x)) - (d is not None) for x, d in zip(args, dims))
        # The widest batched operand stays where it is; the others follow.
        to = next((d for s, d in batched if len(s) == rank + 1), 0)
        aligned = [_align(x, d, to, rank) for x, d in zip(args, dims)]
        return op.bind(*aligned, **params), to  # type: ignore[arg-type,return-value]

    return rule


def _align(x: Any, dim: int | None, to: int, rank: int) -> Any:
    ndim = len(np.shape(x))
    if dim is None:
        return lax.expand_dims(x, (to,)) if ndim else x
    if ndim - 1 == rank:
        return move_axis(x, dim, to)
    shape = [1] * (rank + 1)
    shape[to] = x.shape[0]
    return lax.broadcast_in_dim(x, shape, (to,))


# ---- makers ------------------------------------------------------------------------------------
def elementwise(
    name: str,
    lowering: Callable[..., Any],
    *accept: Accepted,
    derivatives: Sequence[Derivative | None] | None = None,
    jvp: Any = None,
    transpose: Any = NOT_LINEAR,
    result: Callable[[np.dtype], np.dtype] | None = None,
    abstract_eval: Callable[..., ShapedArray] | None = None,
    sums: Callable[..., Any] | None = None,
) -> Primitive:
    """An elementwise primitive with one operand for each item of `accept`.

    lowering     a StableHLO builder of as many values, or a rule made by `*_lowering` above.
    derivatives  d(g, ans, *primals, **params) for each operand: the result's tangent that tangent g
                 of that operand gives. Without them the result has no tangent.
    result       the result's dtype from the first operand's, where it is another one.
    abstract_eval  in place of the usual rule, where that is not enough.
    sums         what it gives of operands that are terms of a sum on each device; by default it takes none.
    """
    made: list[Primitive] = []

    def this() -> Primitive:
        return made[0]

    if jvp is None:
        jvp = elementwise_jvp(this, derivatives) if derivatives is not None else NOT_DIFFERENTIABLE
    made.append(
        Primitive(
            name,
            abstract_eval=abstract_eval or elementwise_abstract_eval(name, accept, result),
            lowering=lowering,
            jvp=jvp,
            transpose=transpose,
            sums=sums,
            batching=elementwise_batching(this),
        )
    )
    _ELEMENTWISE.add(made[0])
    return made[0]


def function_of_one(
    name: str,
    lowering: Callable[..., Any],
    derivative: Callable[[Any, Any], Any],
    accept: Accepted = INEXACT,
) -> Primitive:
    """A function of one operand whose derivative is derivative(ans, x)."""
    return elementwise(
        name, lowering, accept,
        derivatives=[lambda g, ans, x: lax.mul(g, derivative(ans, x))],
    )  # fmt: skip


def is_elementwise(primitive: Primitive) -> bool:
    """Whether each number of its results comes of the numbers at the same place of its operands."""
    return primitive in _ELEMENTWISE or primitive.name in ("select_n", "convert_element_type")


def builder(name: str) -> Callable[..., Any]:
    """The lowering of an elementwise primitive to the StableHLO op of this name."""
    return elementwise_lowering(lambda *values: getattr(hlo, name)(*values))


def linear_in_each(*rules: Callable[..., Any]) -> Callable[..., Any]:
    """A transpose rule: `rule(ct, *operands)` is the cotangent of an operand in its spread form. In
    operands beyond the rules the operation is not linear."""

    def transpose(ct: Any, *operands: Any, **params: Any) -> list[Any]:
        for x in operands[len(rules) :]:
            if is_undefined_primal(x):
                raise UnknownOperand(repr(x))
        return [
            unbroadcast(x.aval, rules[i](ct, *operands, **params))
            if is_undefined_primal(x)
            else None
            for i, x in enumerate(operands)
        ]

    return transpose
