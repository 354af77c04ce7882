"""Loops made of while_loop and scan: fori_loop, map."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from lamina import config
from lamina.control_flow.scan import scan
from lamina.control_flow.while_loop import while_loop
from lamina.core import dtypes, tree
from lamina.core.array_class import Array
from lamina.core.array_likes import ArrayLike
from lamina.core.avals import ShapedArray
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.core.type_promotion import promote_types
from lamina.errors import ConcretizationTypeError
from lamina.interpreters.batching import batch_flat, move_batch

T = TypeVar("T")
R = TypeVar("R")


@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Array], ArrayLike],
    init_val: ArrayLike,
    *,
    unroll: int | bool | None = None,
) -> Array: ...
@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, T], T],
    init_val: T,
    *,
    unroll: int | bool | None = None,
) -> T: ...
@api_boundary
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """val = init_val; for i in range(lower, upper): val = body_fun(i, val); gives val.

    lower, upper  real scalars, both integers or both floats. Known at trace time they make a scan, which
                  can be differentiated in reverse, and are rounded towards zero; traced ones a while_loop.
    body_fun      a function of the index and the value that gives the next value, of the same
                  structure and types.
    init_val      a pytree of arrays.
    unroll        how many steps are written out in one iteration; True: all; None: one. Only for
                  bounds known at trace time.

    Raises TypeError where the bounds are not real scalars of one kind or the body changes the type.

    >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    types = [get_aval(x) for x in (lower, upper)]
    if any(a.shape for a in types) or not any(
        all(kind(a.dtype) for a in types) for kind in (dtypes.is_integer, dtypes.is_float)
    ):
        raise TypeError(
            "lower and upper arguments to fori_loop must have equal types, integers or floats, got "
            f"{' and '.join(a.str_long() for a in types)}"
        )
    from lamina import lax
    from lamina.lax.checks import scalar_of
    from lamina.lax.convert import convert

    index = _index_type(*types)
    bounds = _known_bounds(lower, upper)
    if bounds is not None and config.disable_jit.value:
        val = init_val
        for i in range(*bounds):
            val = body_fun(i, val)
        return val
    if bounds is not None:
        start, n = bounds[0], max(bounds[1] - bounds[0], 0)
        if dtypes.is_float(index.dtype):
            index = get_aval(start)

        def step(loop_carry: Any, _: Any) -> Any:
            i, val = loop_carry
            return (lax.add(i, scalar_of(index, 1)), body_fun(i, val)), None

        (_, out), _ = scan(
            _named_as(body_fun, step),
            (scalar_of(index, start), init_val),
            None,
            length=n,
            unroll=1 if unroll is None else unroll,
        )
        return out
    if unroll not in (None, 1, False):
        raise ValueError(
            "Can only use `unroll` in `fori_loop` if the loop bounds are statically known."
        )
    lower = convert(lower, index.dtype, index.weak_type)
    upper = convert(upper, index.dtype, index.weak_type)

    def cond(carry: Any) -> Any:
        i, end, _ = carry
        return lax.lt(i, end)

    def body(loop_carry: Any) -> Any:
        i, end, val = loop_carry
        return lax.add(i, scalar_of(index, 1)), end, body_fun(i, val)

    return while_loop(cond, _named_as(body_fun, body), (lower, upper, init_val))[2]


def _known_bounds(lower: Any, upper: Any) -> tuple[int, int] | None:
    """The bounds as Python's ints, where they are known; grad alone knows the values of its tracers."""
    try:
        return int(lower), int(upper)
    except ConcretizationTypeError:
        return None


def _named_as(fun: Callable[..., Any], step: Callable[..., Any]) -> Callable[..., Any]:
    """`step`, which messages call `fun` with the arguments of `step`."""
    step.__signature__ = inspect.signature(step)  # type: ignore[attr-defined]
    step.__wrapped__ = fun  # type: ignore[attr-defined]
    return step


def _index_type(lower: ShapedArray, upper: ShapedArray) -> ShapedArray:
    """The type of a loop's counter: as weak as lower, so that adding it to an int8 gives an int8."""
    if lower.dtype == upper.dtype:
        return lower
    dtype, weak = promote_types(*[(a.dtype, a.weak_type) for a in (lower, upper)])
    return ShapedArray((), dtype, weak)


@overload
def map(f: Callable[[Array], R], xs: ArrayLike, *, batch_size: int | None = None) -> R: ...
@overload
def map(f: Callable[[T], R], xs: T, *, batch_size: int | None = None) -> R: ...
@api_boundary
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """f on each leading slice of xs, one after the other, results stacked. vmap does all at once,
    which takes more memory and less time.

    f           a function of a pytree of slices.
    xs          a pytree of arrays with one leading size.
    batch_size  runs that many slices at a time, vectorised; None or 0: one after another.

    Raises ValueError where the leading sizes differ.

    >>> print(lax.map(lambda x: x.sum(), jnp.array([[1, 2], [3, 4]])))
    [3 7]
    """
    if not batch_size:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    if batch_size < 0:
        raise ValueError(f"map: batch_size must not be negative, got {batch_size}")
    from lamina import lax

    leaves, treedef = tree.flatten(xs)
    n = get_aval(leaves[0]).shape[0]
    whole = n - n % batch_size
    out_trees: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        out, out_tree = tree.flatten(f(tree.unflatten(treedef, values)))
        out_trees.append(out_tree)
        return out

    def vectorised(part: Any) -> Any:
        values = tree.leaves(part)
        size = get_aval(values[0]).shape[0]
        outs, dims = batch_flat(flat, values, [0] * len(values), size)
        moved = [move_batch(x, d, size) for x, d in zip(outs, dims, strict=True)]
        return tree.unflatten(out_trees[-1], moved)

    def part(start: int, stop: int) -> Any:
        return tree.unflatten(treedef, [lax.slice_in_dim(x, start, stop) for x in leaves])

    outs = []
    if whole:
        folded = tree.map(
            lambda x: lax.reshape(x, (whole // batch_size, batch_size, *x.shape[1:])),
            part(0, whole),
        )
        done = scan(lambda _, x: ((), vectorised(x)), (), folded)[1]
        outs.append(tree.map(lambda y: lax.reshape(y, (whole, *y.shape[2:])), done))
    if whole < n:
        outs.append(vectorised(part(whole, n)))
    return tree.map(lambda *ys: lax.concatenate(list(ys), 0), *outs) if len(outs) > 1 else outs[0]
