"""checkpoint (remat): keeps few values for the backward pass and computes the others again there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from lamina.control_flow.jit_call import with_calls_inlined
from lamina.control_flow.mutation import SetAside, keeping_refs, values_of, write_all
from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.static_arguments import split_static
from lamina.control_flow.tracing import avals_of, check_callable, debug_info, trace_function
from lamina.control_flow.varying import aligns_call
from lamina.core import refs, tree
from lamina.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    close_jaxpr,
    dce_nested,
    jaxpr_as_fun,
    kept,
)
from lamina.core.library import library
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero, is_undefined_primal
from lamina.core.trace import is_evaluating
from lamina.core.tracebacks import api_boundary
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.core.wrapping import wraps
from lamina.interpreters.backward_logs import log
from lamina.interpreters.batching import batch_jaxpr, batched_size, batches_first
from lamina.interpreters.jvp import jvp_jaxpr
from lamina.interpreters.linearize import partial_eval_jaxpr
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.transpose import transpose_with_logs

P = ParamSpec("P")
R = TypeVar("R")


class _Checkpoint(Protocol):
    """What `checkpoint` gives without a function: a decorator."""

    def __call__(self, fun: Callable[P, R], /) -> Callable[P, R]: ...
Policy = Callable[..., Any]


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool | None = None,
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool | None = None,
) -> _Checkpoint: ...
@api_boundary
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool | None = None,
) -> Any:
    """The same function; differentiated, it keeps its arguments instead of intermediate values, and
    computes those again when the backward pass needs them.

    prevent_cse      keep the compiler from merging the second computation with the first. Within a
                     scan that is so anyway.
    policy           policy(primitive, *avals, **params) says which results to keep after all; see
                     lamina.checkpoint_policies.
    static_argnums, static_argnames  arguments that are no arrays: passed on as they are.
    Raises TypeError where fun is not callable; NotImplementedError for `concrete`, which static
    arguments replace.

    >>> f = lamina.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    >>> float(lamina.grad(f)(0.0))
    1.0
    """
    if concrete is not None:
        raise NotImplementedError(
            f"The 'concrete' option to {library}.checkpoint is not supported; use static_argnums for "
            "arguments whose values decide Python control flow."
        )
    settings: dict[str, Any] = dict(
        prevent_cse=prevent_cse,
        policy=policy,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
    )
    if fun is None:
        return functools.partial(checkpoint, **settings)
    check_callable(fun)
    if policy is not None and not callable(policy):
        raise TypeError(
            f"checkpoint: policy must be a function, as those of {library}.checkpoint_policies are, got "
            f"{policy!r}"
        )
    barrier = prevent_cse if isinstance(prevent_cse, bool) else any(prevent_cse)

    @wraps(fun, attributes=False)
    @api_boundary
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if is_evaluating():
            return fun(*args, **kwargs)
        call, dynamic = split_static(fun, args, kwargs, static_argnums, static_argnames)
        if refs.alive:
            SetAside(fun, "checkpoint", args, kwargs)  # none is there twice
            dynamic = keeping_refs(dynamic)
        leaves, in_tree = tree.flatten(dynamic)
        avals, info = avals_of(leaves, "checkpoint"), debug_info(fun, "checkpoint", args, kwargs)
        with refs.recording() as found:
            closed, consts, out_tree = trace_function(call, in_tree, avals, info)
        if found.kept:  # their rules write to refs: in a second computation they would do so once more
            return fun(*args, **kwargs)
        if found.written:
            of_values = checkpoint(refs.lifted(call, found.used), prevent_cse=prevent_cse, policy=policy)
            result, values = of_values(values_of(found.used), *dynamic)
            write_all(found.used, values)
            return result
        outs = checkpoint_p.bind(
            *consts,
            *leaves,
            jaxpr=closed,
            prevent_cse=barrier,
            differentiated=False,
            policy=policy,
        )
        return tree.unflatten(out_tree, outs)

    return checkpointed


# ---- rules -------------------------------------------------------------------------------------
def _bind(closed: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any], **new: Any) -> Any:
    hoisted, consts = hoist_consts(closed) if closed.consts else (closed, [])
    return checkpoint_p.bind(*consts, *args, **{**params, "jaxpr": hoisted, **new})


def _abstract_eval(*_: Any, jaxpr: ClosedJaxpr, **__: Any) -> list[Any]:
    return jaxpr.out_avals


def _lowering(
    ctx: Any, *args: Any, jaxpr: ClosedJaxpr, prevent_cse: bool, differentiated: bool, **_: Any
) -> Any:
    from lamina.dialects import stablehlo as hlo

    if prevent_cse and differentiated and args:
        # What is computed again waits for all that the backward pass has brought so far.
        args = tuple(hlo.optimization_barrier(args))
    return ctx.lower_jaxpr(jaxpr.jaxpr, jaxpr.consts, args)


_jvp_body = cache_on_jaxpr(lambda closed, nonzero: jvp_jaxpr(closed, nonzero, False))


def _jvp(primals: list[Any], tangents: list[Any], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    both, nonzero_out = _jvp_body(jaxpr, nonzero)
    outs = _bind(both, [*primals, *(t for t in tangents if type(t) is not Zero)], params)
    n = len(nonzero_out)
    given = iter(outs[n:])
    return outs[:n], [
        next(given) if nz else Zero(aval.to_tangent_aval())
        for nz, aval in zip(nonzero_out, jaxpr.out_avals, strict=True)
    ]


def _partial_eval(trace: Any, args: Any, params: dict[str, Any]) -> list[Any]:
    """Runs what is known; records a checkpoint that computes its residuals anew, from known inputs
    and what the policy keeps."""
    unknown = tuple(trace.is_unknown(x) for x in args)
    known, extra, later, out_unknown, reads, n_saved = _split(
        params["jaxpr"], unknown, params["policy"]
    )
    known_args = [*extra, *kept(args, [not u for u in unknown])]
    outs = _bind(known, known_args, params)
    n_known = len(outs) - n_saved
    rest: list[Any] = []
    if any(out_unknown) or later.effects:
        operands = [*outs[n_known:], *kept(known_args, reads), *kept(args, unknown)]
        hoisted, consts = hoist_consts(later)
        new = {**params, "jaxpr": hoisted, "differentiated": True}
        rest = trace.emit(checkpoint_p, [*consts, *operands], new)
    now, then = iter(outs[:n_known]), iter(rest)
    return [next(then) if u else next(now) for u in out_unknown]


@cache_on_jaxpr
def _split(closed: ClosedJaxpr, unknown: tuple[bool, ...], policy: Policy | None) -> Any:
    """The known half, giving (known results, values to keep); constants it takes first; the other
    half, taking (kept values, known inputs that it reads, unknown inputs); which results the other
    half gives; which known inputs it reads; how many values are kept."""
    if policy is not None:
        closed = with_calls_inlined(closed)
    known, later, out_unknown, _ = partial_eval_jaxpr(closed, unknown)
    known, extra = hoist_consts(known)
    jaxpr = known.jaxpr
    n_known = out_unknown.count(False)
    residuals = jaxpr.outvars[n_known:]
    saveable = _saveable(jaxpr, policy) if policy is not None else set()
    again = Jaxpr(
        [],
        [*saveable, *jaxpr.invars],
        residuals,
        [e for e in jaxpr.eqns if not all(v in saveable for v in e.outvars)],
        jaxpr.debug_info,
    )
    # Of an equation with several results some may be kept: its others get their own variables.
    again.eqns = [_hiding(e, saveable) for e in again.eqns]
    again_closed, reads = dce_nested(close_jaxpr(again), [True] * len(residuals))
    saved = kept(list(saveable), reads[: len(saveable)])
    reads = reads[len(saveable) :]
    now, _ = dce_nested(
        close_jaxpr(
            Jaxpr(
                [], jaxpr.invars, [*jaxpr.outvars[:n_known], *saved], jaxpr.eqns, jaxpr.debug_info
            )
        ),
        [True] * (n_known + len(saved)),
    )
    now.jaxpr.invars = jaxpr.invars
    n_reads = len(again_closed.jaxpr.invars)

    def recompute(*args: Any) -> list[Any]:
        res = jaxpr_as_fun(again_closed)(*args[:n_reads])
        return jaxpr_as_fun(later)(*res, *args[n_reads:])

    unknown_avals = kept(closed.in_avals, unknown)
    staged = trace_to_jaxpr(
        recompute, [*again_closed.in_avals, *unknown_avals], closed.jaxpr.debug_info
    )
    return now, extra, staged, out_unknown, reads, len(saved)


def _hiding(eqn: JaxprEqn, given: Any) -> JaxprEqn:
    if not any(v in given for v in eqn.outvars):
        return eqn
    return eqn.replace(outvars=[Var(v.aval) if v in given else v for v in eqn.outvars])


def _saveable(jaxpr: Jaxpr, policy: Policy) -> dict[Var, None]:
    """The variables whose makers the policy keeps, in order."""
    return {
        v: None for eqn in jaxpr.eqns for i, v in enumerate(eqn.outvars) if _keeps(policy, eqn, i)
    }


def _keeps(policy: Policy, eqn: JaxprEqn, result: int) -> bool:
    """What a policy says of a result; of one that a nested program makes, what it says there."""
    inner = [
        p for value in eqn.params.values() for p in (value if isinstance(value, tuple) else (value,))
        if isinstance(p, ClosedJaxpr) and len(p.jaxpr.outvars) == len(eqn.outvars)
    ]  # fmt: skip
    if policy(eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params):
        return True
    for closed in inner:
        v = closed.jaxpr.outvars[result]
        for made in closed.jaxpr.eqns if type(v) is not Literal else ():
            if v in made.outvars and _keeps(policy, made, made.outvars.index(v)):  # type: ignore[arg-type]
                return True
    return False


@cache_on_jaxpr
def _transposed(closed: ClosedJaxpr, linear: tuple[bool, ...], nonzero: tuple[bool, ...]) -> Any:
    backward, given, logs = transpose_with_logs(closed, linear, nonzero, False)
    hoisted, consts = hoist_consts(backward)
    slim, reads = dce_nested(hoisted, [True] * len(hoisted.jaxpr.outvars))
    return slim, consts, reads, given, logs


def _transpose(cts: list[Any], *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    linear = tuple(is_undefined_primal(x) for x in args)
    nonzero = tuple(type(ct) is not Zero for ct in cts)
    backward, consts, reads, given, logs = _transposed(jaxpr, linear, nonzero)
    operands = [*consts, *(x for x in args if not is_undefined_primal(x)), *kept(cts, nonzero)]
    outs = iter(_bind(backward, kept(operands, reads), params))
    found = [next(outs) if g else None for g in given]
    if logs is not None:
        log(tree.unflatten(logs, list(outs)))
    return found


_batched = cache_on_jaxpr(lambda closed, n, batched: batch_jaxpr(closed, n, batched, False))


def _batching(args: list[Any], dims: list[Any], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    size = batched_size(args, dims)
    moved = batches_first(args, dims)
    closed, out_batched = _batched(jaxpr, size, tuple(d is not None for d in dims))
    return _bind(closed, moved, params), [0 if b else None for b in out_batched]


_dce_body = cache_on_jaxpr(lambda closed, used: dce_nested(closed, used))


def _dce(eqn: JaxprEqn, used: list[bool]) -> JaxprEqn:
    closed, reads = _dce_body(eqn.params["jaxpr"], tuple(used))
    return eqn.replace(
        invars=kept(eqn.invars, reads),
        outvars=kept(eqn.outvars, used),
        params={**eqn.params, "jaxpr": closed},
    )


def _shown(params: dict[str, Any]) -> dict[str, Any]:
    policy = params["policy"]
    return {
        "differentiated": params["differentiated"],
        "jaxpr": params["jaxpr"],
        "policy": policy if policy is None else getattr(policy, "__name__", "policy"),
        "prevent_cse": params["prevent_cse"],
    }


checkpoint_p = Primitive(
    "checkpoint",
    multiple_results=True,
    align=aligns_call("jaxpr"),
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
    partial_eval=_partial_eval,
    dce=_dce,
    shown=_shown,
)
