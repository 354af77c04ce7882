"""jit as a primitive: a call of a compiled function, kept as a call in jaxprs and in StableHLO."""

from __future__ import annotations

from typing import Any

from lamina.control_flow.residuals import forward_inputs, gather_residuals
from lamina.control_flow.varying import aligns_call
from lamina.core import tree
from lamina.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    close_jaxpr,
    convert_constvars,
    dce_nested,
    kept,
)
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero, is_undefined_primal
from lamina.core.trace import eval_trace
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.backward_logs import log
from lamina.interpreters.batching import batch_jaxpr, batched_size, batches_first
from lamina.interpreters.jvp import jvp_jaxpr
from lamina.interpreters.linearize import partial_eval_jaxpr
from lamina.interpreters.transpose import transpose_with_logs


def _abstract_eval(*avals: Any, jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return jaxpr.out_avals


def _lowering(ctx: Any, *args: Any, jaxpr: ClosedJaxpr, name: str, **_: Any) -> Any:
    return ctx.call(jaxpr, name, args)


def _call(closed: ClosedJaxpr, args: list[Any], name: str) -> list[Any]:
    return jit_p.bind(
        *closed.consts,
        *args,
        jaxpr=_closed_over_nothing(closed),
        name=name,
        donated_invars=(False,) * (len(closed.consts) + len(args)),
        keep_unused=False,
    )


def _closed_over_nothing(closed: ClosedJaxpr) -> ClosedJaxpr:
    # Not remembered where it is the same: a memory that holds its own key is never freed.
    return _consts_as_inputs(closed) if closed.consts else closed


@cache_on_jaxpr
def _consts_as_inputs(closed: ClosedJaxpr) -> ClosedJaxpr:
    return close_jaxpr(convert_constvars(closed.jaxpr))


_jvp_jaxpr = cache_on_jaxpr(lambda closed, nonzero: jvp_jaxpr(closed, nonzero, False))


def _jvp(
    primals: list[Any], tangents: list[Any], *, jaxpr: ClosedJaxpr, name: str, **_: Any
) -> Any:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    both, nonzero_out = _jvp_jaxpr(jaxpr, nonzero)
    outs = _call(both, [*primals, *(t for t in tangents if type(t) is not Zero)], name)
    n = len(nonzero_out)
    given = iter(outs[n:])
    tangents_out = [
        next(given) if nz else Zero(aval.to_tangent_aval())
        for nz, aval in zip(nonzero_out, jaxpr.out_avals, strict=True)
    ]
    return outs[:n], tangents_out


@cache_on_jaxpr
def _split(closed: ClosedJaxpr, unknown: tuple[bool, ...]) -> Any:
    known, rest, out_unknown, _ = partial_eval_jaxpr(closed, unknown)
    known, which = forward_inputs(known, len(out_unknown) - sum(out_unknown))
    return known, rest, tuple(out_unknown), which


def _partial_eval(trace: Any, args: Any, params: dict[str, Any]) -> list[Any]:
    name = params["name"]
    unknown = tuple(trace.is_unknown(x) for x in args)
    known, rest, out_unknown, which = _split(params["jaxpr"], unknown)
    known_args = [x for x, u in zip(args, unknown, strict=True) if not u]
    n_known = len(out_unknown) - sum(out_unknown)
    outs = _call(known, known_args, name) if known.jaxpr.outvars or known.effects else []
    residuals = gather_residuals(which, known_args, outs[n_known:])
    unknown_args = [x for x, u in zip(args, unknown, strict=True) if u]
    later: list[Any] = []
    if any(out_unknown) or rest.effects:
        rest_args = [*rest.consts, *residuals, *unknown_args]
        later = trace.emit(
            jit_p,
            rest_args,
            dict(
                jaxpr=_closed_over_nothing(rest),
                name=name,
                keep_unused=False,
                donated_invars=(False,) * len(rest_args),
            ),
        )
    now, then = iter(outs[:n_known]), iter(later)
    return [next(then) if u else next(now) for u in out_unknown]


_transposed = cache_on_jaxpr(
    lambda closed, linear, nonzero: transpose_with_logs(closed, linear, nonzero, False)
)


def transpose_call(
    cts: list[Any], *args: Any, jaxpr: ClosedJaxpr, name: str, **_: Any
) -> list[Any]:
    """The transpose of a call: a call of its transpose."""
    linear = tuple(is_undefined_primal(x) for x in args)
    nonzero = tuple(type(ct) is not Zero for ct in cts)
    backward, nonzero_out, logs = _transposed(jaxpr, linear, nonzero)
    operands = [x for x in args if not is_undefined_primal(x)]
    given = iter(_call(backward, operands + [ct for ct in cts if type(ct) is not Zero], name))
    found = [next(given) if nz else None for nz in nonzero_out]
    if logs is not None:
        log(tree.unflatten(logs, list(given)))
    return found


_batched = cache_on_jaxpr(lambda closed, n, batched: batch_jaxpr(closed, n, batched, False))


def _batching(args: list[Any], dims: list[Any], *, jaxpr: ClosedJaxpr, name: str, **_: Any) -> Any:
    size = batched_size(args, dims)
    moved = batches_first(args, dims)
    closed, out_batched = _batched(jaxpr, size, tuple(d is not None for d in dims))
    outs = _call(closed, moved, name)
    return outs, [0 if b else None for b in out_batched]


def _impl(*args: Any, jaxpr: ClosedJaxpr, name: str, **_: Any) -> list[Any]:
    return eval_trace().run_jaxpr(jaxpr, name, args)


_dce_body = cache_on_jaxpr(lambda closed, used: dce_nested(closed, used))


def _dce(eqn: JaxprEqn, used: list[bool]) -> JaxprEqn:
    closed, used_in = _dce_body(eqn.params["jaxpr"], tuple(used))
    donated = tuple(kept(eqn.params["donated_invars"], used_in))
    return eqn.replace(
        invars=kept(eqn.invars, used_in),
        outvars=kept(eqn.outvars, used),
        params={**eqn.params, "jaxpr": closed, "donated_invars": donated},
    )


def _shown(params: dict[str, Any]) -> dict[str, Any]:
    name = "<lambda>" if params["name"] == "_lambda_" else params["name"]
    shown = {"name": name, "jaxpr": params["jaxpr"]}
    if any(params.get("donated_invars", ())):
        shown["donated_invars"] = params["donated_invars"]
    return shown


jit_p = Primitive(
    "jit",
    multiple_results=True,
    align=aligns_call("jaxpr"),
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=transpose_call,
    batching=_batching,
    partial_eval=_partial_eval,
    dce=_dce,
    impl=_impl,
    shown=_shown,
)


def call_jaxpr(closed: ClosedJaxpr, args: list[Any], name: str) -> list[Any]:
    """Applies a jaxpr as one compiled call."""
    return _call(closed, args, name)


def with_calls_inlined(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the equations of inner jits in place of calls."""
    if not any(e.primitive is jit_p for e in closed.jaxpr.eqns):
        return closed
    jaxpr = closed.jaxpr
    eqns: list[JaxprEqn] = []

    def inline(inside: Jaxpr, env: dict[Any, Any]) -> None:
        def at(v: Any) -> Any:
            return v if type(v) is Literal else env.get(v, v)

        for eqn in inside.eqns:
            invars = [at(v) for v in eqn.invars]
            if eqn.primitive is not jit_p:
                fresh = [Var(v.aval) for v in eqn.outvars]
                env.update(zip(eqn.outvars, fresh, strict=True))
                eqns.append(eqn.replace(invars=invars, outvars=fresh))
                continue
            inner = eqn.params["jaxpr"].jaxpr
            scope = dict(zip(inner.invars, invars, strict=True))
            inline(inner, scope)
            outs = [v if type(v) is Literal else scope.get(v, v) for v in inner.outvars]
            env.update(zip(eqn.outvars, outs, strict=True))

    env: dict[Any, Any] = {}
    inline(jaxpr, env)
    outs = [v if type(v) is Literal else env.get(v, v) for v in jaxpr.outvars]
    return ClosedJaxpr(
        Jaxpr(jaxpr.constvars, jaxpr.invars, outs, eqns, jaxpr.debug_info), closed.consts
    )
