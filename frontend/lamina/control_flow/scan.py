"""scan: a loop of known length with a carry, over leading slices of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from lamina import config
from lamina.control_flow.carry import check_carry, promote_weak_carry
from lamina.control_flow.kept_carry import join_kept, kept_as_constants, kept_carry, split_kept
from lamina.control_flow.mutation import (
    SetAside,
    step_with,
    used_by,
    values_of,
    watched,
    write_all,
)
from lamina.control_flow.scan_rules import scan_p
from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.core import refs, tree
from lamina.core.array_class import Array
from lamina.core.array_likes import ArrayLike
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary

Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


@overload
def scan(
    f: Callable[[Array, Array], tuple[ArrayLike, Y]],
    init: ArrayLike,
    xs: ArrayLike,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Array, Y]: ...
@overload
def scan(
    f: Callable[[Array, X], tuple[ArrayLike, Y]],
    init: ArrayLike,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Array, Y]: ...
@overload
def scan(
    f: Callable[[Carry, Array], tuple[Carry, Y]],
    init: Carry,
    xs: ArrayLike,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Y]: ...
@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]],
    init: Carry,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Y]: ...
@api_boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """carry = init; for x in xs: carry, y = f(carry, x); gives (carry, stacked ys). One step of the
    program is compiled, whatever the number of steps.

    f        a function of the carry and a slice of xs, which gives the next carry and a y.
    init     a pytree of arrays; f gives a carry of the same structure and types.
    xs       a pytree of arrays with one leading size, or None with `length` given.
    length   the number of steps, a Python int.
    reverse  runs from the last slice to the first; ys keep their places.
    unroll   how many steps are written out in one iteration of the loop; True: all of them.

    Raises TypeError where f does not give a pair or changes the carry's type; ValueError where the
    leading sizes differ from each other or from `length`.

    >>> total, sums = lax.scan(lambda total, x: (total + x, total + x), 0, jnp.array([1, 2, 3]))
    >>> print(total, sums)
    6 [1 3 6]
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    if refs.alive and (aside := SetAside(f, "scan", (init, xs), {})).refs:
        return _scan_refs(aside, init, length, reverse, unroll)
    xs_flat, xs_tree = tree.flatten(xs)
    n = _scan_length(xs, xs_flat, length)
    if config.disable_jit.value:
        return _python_scan(f, init, xs_flat, xs_tree, n, reverse)
    xs_avals = avals_of(xs_flat, "scan")
    x_avals = [a.without_axis(0) for a in xs_avals]
    body, written = _traced_body(f, init, xs, x_avals)
    if body is None:
        carry, ys = scan(step_with(f, written), (init, values_of(written)), xs, length, reverse, unroll)
        write_all(written, carry[1])
        return carry[0], ys
    closed, consts, init_flat, ys_tree = body
    n_carry = len(init_flat)
    if not isinstance(unroll, bool | int | np.integer) or unroll < 0:
        raise ValueError(f"`unroll` must be a `bool` or a non-negative `int`, got {unroll!r}.")
    if n > np.iinfo(np.int64).max:
        raise OverflowError(f"scan: length={n} is more than 2**63 - 1 steps")
    steps = n if unroll is True else max(int(unroll), 1)
    kept = kept_carry(closed, len(consts), n_carry)
    if any(kept):
        closed, consts = kept_as_constants(closed, consts, init_flat, kept, gives_carry=True)
    constants, changing = split_kept(init_flat, kept)
    outs = scan_p.bind(
        *consts,
        *changing,
        *xs_flat,
        reverse=bool(reverse),
        length=n,
        jaxpr=closed,
        num_consts=len(consts),
        num_carry=len(changing),
        unroll=max(steps, 1),
    )
    carry, ys = outs[: len(changing)], outs[len(changing) :]
    return (
        tree.unflatten(tree.structure(init), join_kept(constants, carry, kept)),
        tree.unflatten(ys_tree, ys),
    )


def _scan_refs(
    aside: SetAside, init: Any, length: int | None, reverse: bool, unroll: int | bool
) -> tuple[Any, Any]:
    """scan over refs: a step is given a slice of each as a ref, and what it leaves there is put back."""
    pure = aside.pure()
    bare_init, bare_xs = aside.args
    in_carry = len([x for x in tree.leaves(init) if isinstance(x, refs.Ref)])
    values = values_of(aside.refs)
    if in_carry:
        aside.check_used(used_by(pure, "scan", values, bare_init, bare_xs).used)
        raise ValueError(
            f"scan: the carry may not hold refs, but {aside.names[0]} is one of type {aside.refs[0].aval}. Close "
            "over the ref, or give it in xs to see a slice of it in each step"
        )

    def step(carry: Any, x: Any) -> Any:
        result, after = pure(x[0], carry, x[1])
        if type(result) is not tuple or len(result) != 2:
            return result  # scan says what is wrong
        return result[0], (result[1], after)

    sliced = [get_aval(v).without_axis(0) if get_aval(v).shape else v for v in values]
    x_avals = tree.map(lambda x: get_aval(x).without_axis(0), bare_xs)
    aside.check_used(used_by(step, "scan", bare_init, (sliced, x_avals)).used)
    carry, (ys, after) = scan(step, bare_init, (values, bare_xs), length, reverse, unroll)
    write_all(aside.refs, after)
    return carry, ys


def _traced_body(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, x_avals: list[ShapedArray]
) -> tuple[tuple[ClosedJaxpr, list[Any], list[Any], tree.PyTreeDef] | None, list[refs.Ref]]:
    """The jaxpr of a step and what f closes over; the first carry, of the types that steps keep; the
    structure of a y. Or None, and the refs from outside that f writes."""
    init_flat, init_tree = tree.flatten(init)
    in_tree = tree.structure((init, xs))

    def trace(carry_avals: list[ShapedArray]) -> Any:
        closed, consts, out_tree = trace_function(
            f, in_tree, carry_avals + x_avals, debug_info(f, "scan body", (init, xs))
        )
        children = out_tree.children() if out_tree.num_children == 2 else []
        if len(children) != 2 or out_tree.type is not tuple:
            place = closed.jaxpr.debug_info.place()
            raise TypeError(
                f"scan body output must be a pair (carry, y), got {_shown(out_tree, closed.out_avals)} "
                f"from {place}. Where nothing is collected return (carry, None)."
            )
        return closed, consts, children

    avals = avals_of(init_flat, "scan")
    (closed, consts, (carry_tree, ys_tree)), written = watched(lambda: trace(avals))
    if written:
        return None, written
    init_flat, new_avals = promote_weak_carry(
        init_flat, avals, closed.out_avals[: carry_tree.num_leaves], carry_tree == init_tree
    )
    if new_avals != avals:
        avals = new_avals
        closed, consts, (carry_tree, ys_tree) = trace(avals)
    out = closed.out_avals[: carry_tree.num_leaves]
    check_carry("scan body", closed.jaxpr.debug_info, carry_tree, init_tree, out, avals)
    return (closed, consts, init_flat, ys_tree), []


def _shown(out_tree: tree.PyTreeDef, avals: Sequence[ShapedArray]) -> str:
    """A body's result as its types."""
    return str(tree.unflatten(out_tree, [a.str_short() for a in avals])).replace("'", "")


def _scan_length(xs: Any, xs_flat: Sequence[Any], length: int | None) -> int:
    sizes = []
    for x, path in zip(xs_flat, tree.paths(xs), strict=True):
        shape = get_aval(x).shape
        if not shape:
            raise ValueError(
                f"scan got value with no leading axis to scan over: xs{path} is a scalar"
            )
        sizes.append(shape[0])
    if length is not None:
        length = int(length)
        for size in sizes:
            if size != length:
                raise ValueError(
                    f"scan got `length` argument of {length} which disagrees with leading axis sizes "
                    f"{sizes}."
                )
        return length
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    if len(set(sizes)) > 1:
        shown = ", ".join(
            f"xs{path} has {size}" for path, size in zip(tree.paths(xs), sizes, strict=True)
        )
        raise ValueError(f"scan got values with different leading axis sizes: {shown}.")
    return sizes[0]


def _python_scan(f: Any, init: Any, xs: Sequence[Any], xs_tree: Any, n: int, reverse: bool) -> Any:
    from lamina import lax

    if n == 0:
        raise ValueError(
            "zero-length scan is not supported with jit disabled: there is no y to show"
        )
    carry, ys = init, []
    for i in range(n - 1, -1, -1) if reverse else range(n):
        carry, y = f(
            carry, tree.unflatten(xs_tree, [lax.index_in_dim(x, i, keepdims=False) for x in xs])
        )
        ys.append(y)
    if reverse:
        ys.reverse()
    stacked = tree.map(
        lambda *y: lax.concatenate([lax.expand_dims(v, (0,)) for v in y], 0), ys[0], *ys[1:]
    )
    return carry, stacked
