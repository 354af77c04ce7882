"""cond and switch: run one of several branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, TypeVarTuple, overload

import numpy as np

from lamina import config
from lamina.control_flow.branch_types import as_cond
from lamina.control_flow.branches import share_consts, with_shared_consts
from lamina.control_flow.carry import difference_of_types
from lamina.control_flow.cond_reverse import dce, partial_eval, transpose
from lamina.control_flow.kept_carry import own_array
from lamina.control_flow.lanes import lanes, runs_in_lanes
from lamina.control_flow.mutation import SetAside, used_by, values_of, watched, write_all
from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.control_flow.varying import cast, retyped, varying
from lamina.core import dtypes, refs, tree
from lamina.core.avals import ShapedArray, same_type
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr, jaxpr_as_fun
from lamina.core.library import library
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero
from lamina.core.trace import Tracer, get_aval
from lamina.core.tracebacks import api_boundary
from lamina.core.tree_differences import tree_differences
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.batching import batch_jaxpr, batched_size, batches_first, move_batch
from lamina.interpreters.jvp import jvp_jaxpr
from lamina.interpreters.staging import trace_to_jaxpr

R = TypeVar("R")
Ts = TypeVarTuple("Ts")
_NO_OPERAND = object()


@overload
def switch(
    index: Any,
    branches: Sequence[Callable[[*Ts], R]],
    *operands: *Ts,
) -> R: ...
@overload
def switch(
    index: Any,
    branches: Sequence[Callable[..., R]],
    *operands: Any,
    operand: Any = ...,
) -> R: ...
@api_boundary  # type: ignore[misc]
def switch(
    index: Any,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _NO_OPERAND,
) -> Any:
    """branches[index](*operands), with index clamped to the range of branches. Only that branch
    runs; under vmap with a batched index all do, and results are selected.

    index     an integer scalar.
    branches  functions of the operands whose results have the same structure and types.
    operands  pytrees of arrays.
    operand   the only operand, by its name.

    Raises TypeError where index is not an integer scalar or where the branches' results differ;
    ValueError where there are no branches.

    >>> lax.switch(1, [lambda x: x + 1, lambda x: x * 2, lambda x: -x], 10)
    Array(20, dtype=int32, weak_type=True)
    """
    if not all(callable(f) for f in branches):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    if not branches:
        raise ValueError("Empty branch sequence")
    operands = _given("lax.switch", operands, operand)
    aval = get_aval(index)
    if aval.shape or not dtypes.is_integer(aval.dtype):
        raise TypeError(f"Index type must be an integer scalar, got {aval.str_long()}")
    from lamina import lax

    last = len(branches) - 1
    if config.disable_jit.value and not isinstance(index, Tracer):
        return branches[min(max(int(index), 0), last)](*operands)
    if len(branches) == 1:
        return branches[0](*operands)
    index = lax.convert_element_type(index, np.dtype("int32"))
    index = lax.clamp(np.int32(0), index, np.int32(last))
    return _bind_branches("switch", index, branches, operands)


@as_cond
@api_boundary
def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _NO_OPERAND,
) -> Any:
    """true_fun(*operands) if pred else false_fun(*operands). Only that branch runs; under vmap with
    a batched pred both do, and results are selected.

    pred       a scalar: boolean, or a number that counts as true where it is not zero.
    true_fun   a function of the operands.
    false_fun  another, whose result has the same structure and types.
    operands   pytrees of arrays.
    operand    the only operand, by its name.

    An older form, cond(pred, true_operand, true_fun, false_operand, false_fun), gives each branch
    an operand of its own; five arguments are read so where the third and the fifth are callable and the second is not.

    Raises TypeError where pred is not a scalar or where the branches' results differ in structure
    or types.

    >>> lax.cond(jnp.float32(3) > 2, lambda x: x + 1, lambda x: x - 1, 10)
    Array(11, dtype=int32, weak_type=True)
    """
    if not callable(true_fun) and len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        if_true, if_false = false_fun, operands[1]
        operands = (true_fun, operands[0])
        true_fun, false_fun = (lambda t, _: if_true(t)), (lambda _, f: if_false(f))
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    operands = _given("lax.cond", operands, operand)
    if pred is None:
        raise TypeError("cond predicate is None. Use lax.cond(pred, true_fun, false_fun, *operands)")
    try:
        aval = get_aval(pred)
    except TypeError:
        what = "type must be either boolean or number" if callable(pred) else "must be a scalar"
        raise TypeError(
            f"Pred {what}, got {pred} of type {type(pred)}. Use lax.cond(pred, true_fun, false_fun, *operands)"
        ) from None
    if aval.shape:
        raise TypeError(
            f"Pred must be a scalar, got {pred} of shape {aval.shape}. To choose element by element "
            f"use {library}.numpy.where."
        )
    from lamina import lax

    if config.disable_jit.value and not isinstance(pred, Tracer):
        return (true_fun if pred else false_fun)(*operands)
    if aval.dtype != np.bool_:
        pred = lax.ne(pred, np.zeros((), aval.dtype)[()])
    index = lax.convert_element_type(pred, np.dtype("int32"))
    return _bind_branches("cond", index, (false_fun, true_fun), operands)


def _given(what: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    """The operands, which an older form passes as one by keyword."""
    if operand is _NO_OPERAND:
        return operands
    if operands:
        raise TypeError(f"{what}: pass operands by position or by keyword, not both")
    return (operand,)


def _bind_branches(
    what: str, index: Any, branches: Sequence[Callable[..., Any]], operands: Any
) -> Any:
    if refs.alive:
        asides = _for_each(lambda f: SetAside(f, what, operands, {}), branches)
        if given := asides[0].refs:
            values, bare = values_of(given), asides[0].args
            pure = _for_each(lambda aside: aside.pure(), asides)
            for aside, f in zip(asides, pure, strict=True):
                aside.check_used(used_by(f, what, values, *bare).used)
            out, values = _bind_branches(what, index, pure, (values, *bare))
            write_all(given, values)
            return out
    leaves, in_tree = tree.flatten(tuple(operands))
    in_avals = avals_of(leaves, what)
    seen = _for_each(
        lambda f: watched(lambda: trace_function(f, in_tree, in_avals, debug_info(f, f"{what} branch"))), branches
    )
    if written := list({id(ref): ref for _, of_branch in seen for ref in of_branch}.values()):
        with_refs = _for_each(lambda f: refs.lifted(f, written), branches)
        out, values = _bind_branches(what, index, with_refs, (values_of(written), *operands))
        write_all(written, values)
        return out
    traced = [t for t, _ in seen]
    out_trees = [t for _, _, t in traced]
    names = (
        ("false_fun", "true_fun")
        if what == "cond"
        else tuple(f"branch {i}" for i in range(len(branches)))
    )
    places = [c.jaxpr.debug_info.place() for c, _, _ in traced]
    for i, t in enumerate(out_trees[1:], 1):
        if t != out_trees[0]:
            found = "\n".join(
                f"{names[0]} output{path} is {a} but {names[i]} output{path} is {b}, so {why}."
                for path, a, b, why in tree_differences(out_trees[0], t)
            )
            raise TypeError(
                f"{what} branch outputs must have the same pytree structure, but they differ:\n\n"
                f"{_who(names, places, (0, i))}\n\n{found}\n\nRevise {names[0]} and/or {names[i]} so "
                "that they have the same pytree structure."
            )
    consts: list[Any] = []
    different = list({id(t): t for t in traced}.values())
    const_avals = [get_aval(c) for _, own, _ in different for c in own]

    def with_consts(of_branch: Any) -> ClosedJaxpr:
        jaxpr, own, _ = of_branch
        start = len(consts)
        consts.extend(own)
        return with_shared_consts(jaxpr, len(own), start, len(const_avals), const_avals)

    closed = _for_each(with_consts, traced)
    paths = tree.paths(tree.unflatten(out_trees[0], closed[0].out_avals))
    closed = _unify_results(what, names, places, paths, closed)
    operands = [*consts, *leaves]
    kept = _kept_operands(closed)
    outs = cond_p.bind(index, *operands, branches=tuple(_for_each(_without(kept), closed)))
    given = iter(outs)
    out = [next(given) if at is None else own_array(operands[at]) for at in kept]
    return tree.unflatten(out_trees[0], out)


def _kept_operands(branches: Sequence[ClosedJaxpr]) -> list[int | None]:
    """For each result the operand that every branch gives there as it is: vmap batches it only where it was
    batched before. None where they don't, or do so with all results."""
    kept = []
    for column in zip(*(b.outvars for b in branches), strict=True):
        places = {
            next((i for i, v in enumerate(b.invars) if v is out), None)
            for b, out in zip(branches, column, strict=True)
        }
        kept.append(places.pop() if len(places) == 1 else None)
    return [None] * len(kept) if None not in kept else kept


def _without(kept: Sequence[int | None]) -> Callable[[ClosedJaxpr], ClosedJaxpr]:
    """Takes kept results from a branch."""

    def taken(closed: ClosedJaxpr) -> ClosedJaxpr:
        jaxpr = closed.jaxpr
        outs = [v for v, at in zip(jaxpr.outvars, kept, strict=True) if at is None]
        if len(outs) == len(kept):
            return closed
        new = Jaxpr(jaxpr.constvars, jaxpr.invars, outs, jaxpr.eqns, jaxpr.debug_info)
        return ClosedJaxpr(new, closed.consts)

    return taken


def _for_each(make: Callable[[Any], Any], branches: Sequence[Any]) -> list[Any]:
    """make(branch) for each, called once for a branch that is there several times."""
    made = {i: make(branch) for i, branch in {id(b): b for b in branches}.items()}
    return [made[id(branch)] for branch in branches]


def _who(names: Sequence[str], places: Sequence[str], which: Sequence[int]) -> str:
    return "\n".join(f"{names[i]} is {places[i]}" for i in which)


def _unify_results(
    what: str,
    names: Sequence[str],
    places: Sequence[str],
    paths: Sequence[str],
    closed: list[ClosedJaxpr],
) -> list[ClosedJaxpr]:
    """Checks that all branches give the same shapes and dtypes; weakness gives way."""
    columns = list(zip(*[c.out_avals for c in closed], strict=True))
    targets = []
    for k, column in enumerate(columns):
        strong = [a for a in column if not a.weak_type]
        target = strong[0] if strong else column[0]
        of_target = column.index(target)
        for i, a in enumerate(column):
            if a.shape != target.shape or a.dtype != target.dtype:
                first, second = sorted((of_target, i))
                raise TypeError(
                    f"{what} branches must have equal output types but they differ.\n\n"
                    f"{_who(names, places, (first, second))}\n\n"
                    f"The output{paths[k]} of {names[first]} has type {column[first].str_long()} but "
                    f"the corresponding output of {names[second]} has type "
                    f"{column[second].str_long()}, so {difference_of_types(a, target)} do not "
                    f"match.\n\nRevise {names[first]} and/or {names[second]} so that all output "
                    "types match."
                )
        targets.append(target)
    return _for_each(
        lambda c: c if list(c.out_avals) == targets else _cast(c, targets), closed
    )


def _cast(closed: ClosedJaxpr, targets: list[ShapedArray]) -> ClosedJaxpr:
    from lamina import lax

    def fun(*args: Any) -> list[Any]:
        outs = jaxpr_as_fun(closed)(*args)
        return [
            x if get_aval(x) == t else lax.convert_element_type(x, t.dtype)
            for x, t in zip(outs, targets, strict=True)
        ]

    out = trace_to_jaxpr(fun, closed.in_avals, closed.jaxpr.debug_info)
    return hoist_consts(out)[0]


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(index: Any, *operands: Any, branches: tuple[ClosedJaxpr, ...]) -> list[Any]:
    expected = branches[0].in_avals
    for got, want in zip(operands, expected, strict=True):
        if not same_type(got, want):
            raise TypeError(
                f"[cond] operand {got.str_short()} where {want.str_short()} is expected"
            )
    return branches[0].out_avals


def _lowering(ctx: Any, index: Any, *operands: Any, branches: tuple[ClosedJaxpr, ...]) -> Any:
    from lamina.dialects import stablehlo as hlo
    from lamina.interpreters.lowering import tensor_type

    bodies = [
        (lambda b=b: ctx.lower_jaxpr(b.jaxpr, b.consts, operands))
        for b in branches  # type: ignore[misc]
    ]
    return hlo.case(index, bodies, [tensor_type(a) for a in branches[0].out_avals])


@cache_on_jaxpr
def _branch_jvp(closed: ClosedJaxpr, nonzero: tuple[bool, ...], out: tuple[bool, ...]) -> Any:
    return jvp_jaxpr(closed, nonzero, out)


def _jvp(primals: list[Any], tangents: list[Any], *, branches: tuple[ClosedJaxpr, ...]) -> Any:
    index, ops, op_tangents = primals[0], primals[1:], tangents[1:]
    nonzero = tuple(type(t) is not Zero for t in op_tangents)
    none = (False,) * len(branches[0].out_avals)
    wanted = tuple(
        map(any, zip(*[_branch_jvp(b, nonzero, none)[1] for b in branches], strict=True))
    )
    both = tuple(_branch_jvp(b, nonzero, wanted)[0] for b in branches)
    both_hoisted = share_consts(both)
    consts, both = both_hoisted
    outs = cond_p.bind(
        index, *consts, *ops, *(t for t in op_tangents if type(t) is not Zero), branches=both
    )
    n = len(none)
    given = iter(outs[n:])
    out_tangents = [
        next(given) if w else Zero(a.to_tangent_aval())
        for w, a in zip(wanted, branches[0].out_avals, strict=True)
    ]
    return outs[:n], out_tangents


@cache_on_jaxpr
def _branch_batch(closed: ClosedJaxpr, size: int, batched: tuple[bool, ...], out: Any) -> Any:
    return batch_jaxpr(closed, size, batched, out)


def _batching(args: list[Any], dims: list[Any], *, branches: tuple[ClosedJaxpr, ...]) -> Any:
    from lamina import lax

    size = batched_size(args, dims)
    index, ops = args[0], args[1:]
    moved = batches_first(ops, dims[1:])
    batched = tuple(d is not None for d in dims[1:])
    if dims[0] is None:
        out_batched = tuple(
            map(
                any,
                zip(*[_branch_batch(b, size, batched, False)[1] for b in branches], strict=True),
            )
        )
        consts, new = share_consts(
            [_branch_batch(b, size, batched, out_batched)[0] for b in branches]
        )
        outs = cond_p.bind(index, *consts, *moved, branches=new)
        return outs, [0 if b else None for b in out_batched]
    index = move_batch(index, dims[0], size)
    avals = [get_aval(np.int32(0)), *branches[0].in_avals]
    lane = runs_in_lanes(lambda *xs: cond_p.bind(*xs, branches=branches), avals, size, loops=False)
    if lane is not None:
        outs = lanes(lane, [index, *moved], [True, *batched], size, loops=False)
        return outs, [0] * len(outs)
    # Each lane takes its own branch: run all branches on all lanes and select.
    results = []
    for number, b in enumerate(branches):
        mine = lax.eq(index, np.int32(number))
        own = [_of_lanes(mine, x) if by_lane else x for x, by_lane in zip(moved, batched, strict=True)]
        closed, _ = _branch_batch(b, size, batched, True)
        results.append(eval_jaxpr(closed.jaxpr, closed.consts, *own))
    outs = []
    for column in zip(*results, strict=True):
        which = index
        shape = get_aval(column[0]).shape
        if len(branches) == 2:
            which = lax.ne(which, np.int32(0))
        which = lax.broadcast_in_dim(which, shape, (0,))
        outs.append(lax.select_n(which, *column))
    return outs, [0] * len(outs)


def _of_lanes(mine: Any, x: Any) -> Any:
    """x, constant in the lanes that don't take the branch: an infinite derivative there is no NaN."""
    from lamina import lax

    if not dtypes.is_inexact(get_aval(x).dtype):
        return x
    mask = lax.broadcast_in_dim(mine, get_aval(x).shape, (0,))
    return lax.select(mask, x, lax.stop_gradient(x))


def _in_python(index: Any, *operands: Any, branches: tuple[ClosedJaxpr, ...]) -> None:
    jaxpr_as_fun(branches[min(max(int(index), 0), len(branches) - 1)])(*operands)


def _align(args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Where devices take different branches, operands vary too: there is no collective inside."""
    index, *operands = args
    along = get_aval(index).vma
    operands = [cast(x, along) for x in operands]
    inputs = [v | along for v in varying(operands)]
    branches = [retyped(b, inputs) for b in params["branches"]]
    columns = zip(*[[a.vma for a in b.out_avals] for b in branches], strict=True)
    out = [along.union(*column) for column in columns]
    fitting = tuple(retyped(b, inputs, out) for b in branches)
    return (index, *operands), {**params, "branches": fitting}


cond_p = Primitive(
    "cond",
    multiple_results=True,
    align=_align,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=transpose,
    batching=_batching,
    partial_eval=partial_eval,
    dce=dce,
    in_python=_in_python,
)
