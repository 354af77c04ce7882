"""The primitive while, and its rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.control_flow.carry import fixpoint
from lamina.control_flow.lanes import lanes, runs_in_lanes
from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.varying import cast, grown, results, retyped, varying
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    close_jaxpr,
    dce_jaxpr,
    jaxpr_as_fun,
    kept,
)
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero
from lamina.core.trace import get_aval
from lamina.interpreters.batching import batch_jaxpr, batched_size, batches_first, move_batch
from lamina.interpreters.jvp import jvp_jaxpr
from lamina.interpreters.linearize import partial_eval_jaxpr
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import instantiate_zero


def _split_args(args: Any, cond_nconsts: int, body_nconsts: int) -> tuple[Any, Any, Any]:
    n = cond_nconsts + body_nconsts
    return args[:cond_nconsts], args[cond_nconsts:n], args[n:]


def _abstract_eval(*avals: Any, body_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return body_jaxpr.out_avals


def _lowering(
    ctx: Any,
    *args: Any,
    cond_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    body_jaxpr: ClosedJaxpr,
) -> Any:
    from lamina.dialects import stablehlo as hlo

    cond_consts, body_consts, init = _split_args(args, cond_nconsts, body_nconsts)

    def cond(*carry: Any) -> Any:
        return ctx.lower_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, [*cond_consts, *carry])

    def body(*carry: Any) -> Any:
        return ctx.lower_jaxpr(body_jaxpr.jaxpr, body_jaxpr.consts, [*body_consts, *carry])

    return hlo.while_(init, cond, body)


def _jvp(
    primals: list[Any],
    tangents: list[Any],
    *,
    cond_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    body_jaxpr: ClosedJaxpr,
) -> Any:
    cond_consts, body_consts, init = _split_args(primals, cond_nconsts, body_nconsts)
    _, bconst_t, init_t = _split_args(tangents, cond_nconsts, body_nconsts)
    const_nz = [type(t) is not Zero for t in bconst_t]
    carry_nz = fixpoint(
        [type(t) is not Zero for t in init_t],
        lambda nz: jvp_jaxpr(body_jaxpr, const_nz + nz, nz)[1],
    )
    both, _ = jvp_jaxpr(body_jaxpr, const_nz + carry_nz, carry_nz)
    both, extra = hoist_consts(both)
    n_carry, nb = len(init), body_nconsts
    n_ct = sum(const_nz)
    init_dot = [instantiate_zero(t) for t, nz in zip(init_t, carry_nz, strict=True) if nz]
    const_dot = [t for t in bconst_t if type(t) is not Zero]

    # jvp_jaxpr takes (consts, carry, const tangents, carry tangents); a while body takes all
    # constants before the carry.
    def body(*args: Any) -> list[Any]:
        ex, rest = args[: len(extra)], args[len(extra) :]
        consts, cdots, carry_all = rest[:nb], rest[nb : nb + n_ct], rest[nb + n_ct :]
        return jaxpr_as_fun(both)(*ex, *consts, *carry_all[:n_carry], *cdots, *carry_all[n_carry:])

    carry_avals = [get_aval(x) for x in [*init, *init_dot]]
    const_avals = [get_aval(x) for x in [*extra, *body_consts, *const_dot]]
    new_body = trace_to_jaxpr(body, const_avals + carry_avals, body_jaxpr.jaxpr.debug_info)

    def cond(*args: Any) -> list[Any]:
        return jaxpr_as_fun(cond_jaxpr)(*args[: cond_nconsts + n_carry])

    new_cond = trace_to_jaxpr(
        cond, [get_aval(x) for x in cond_consts] + carry_avals, cond_jaxpr.jaxpr.debug_info
    )
    outs = while_p.bind(
        *cond_consts,
        *extra,
        *body_consts,
        *const_dot,
        *init,
        *init_dot,
        cond_nconsts=cond_nconsts,
        cond_jaxpr=new_cond,
        body_nconsts=len(const_avals),
        body_jaxpr=new_body,
    )
    given = iter(outs[n_carry:])
    out_t = [
        next(given) if nz else Zero(a.to_tangent_aval())
        for nz, a in zip(carry_nz, body_jaxpr.out_avals, strict=True)
    ]
    return outs[:n_carry], out_t


def _partial_eval(trace: Any, args: Any, params: dict[str, Any]) -> list[Any]:
    """Runs the part of the loop that is known; records the whole loop for the rest of it."""
    body_jaxpr, cond_jaxpr = params["body_jaxpr"], params["cond_jaxpr"]
    cond_consts, body_consts, init = _split_args(
        args, params["cond_nconsts"], params["body_nconsts"]
    )
    const_uk = [trace.is_unknown(x) for x in body_consts]
    carry_uk = fixpoint(
        [trace.is_unknown(x) for x in init],
        lambda uk: partial_eval_jaxpr(body_jaxpr, const_uk + uk, uk)[2],
    )
    cond_uk = any(trace.is_unknown(x) for x in cond_consts) or (
        True in partial_eval_jaxpr(cond_jaxpr, [False] * len(cond_consts) + carry_uk)[2]
    )
    if cond_uk or all(carry_uk):
        return trace.emit(while_p, args, params)
    keep = [i for i, u in enumerate(carry_uk) if not u]
    known_body, _, _, _ = partial_eval_jaxpr(body_jaxpr, const_uk + carry_uk, carry_uk)

    def body(*values: Any) -> list[Any]:
        return jaxpr_as_fun(known_body)(*values)[: len(keep)]

    known_consts = [x for x, u in zip(body_consts, const_uk, strict=True) if not u]
    known_init = [init[i] for i in keep]
    avals = [get_aval(x) for x in [*known_consts, *known_init]]
    small_body, extra = hoist_consts(trace_to_jaxpr(body, avals, body_jaxpr.jaxpr.debug_info))

    def cond(*values: Any) -> list[Any]:
        consts, kept = values[: len(cond_consts)], iter(values[len(cond_consts) :])
        # The condition does not read unknown entries: their places may hold anything.
        carry = [
            instantiate_zero(Zero(a)) if u else next(kept)
            for a, u in zip(body_jaxpr.out_avals, carry_uk, strict=True)
        ]
        return jaxpr_as_fun(cond_jaxpr)(*consts, *carry)

    cond_avals = [get_aval(x) for x in [*cond_consts, *known_init]]
    small_cond, cond_extra = hoist_consts(
        trace_to_jaxpr(cond, cond_avals, cond_jaxpr.jaxpr.debug_info)
    )
    known = while_p.bind(
        *cond_extra,
        *cond_consts,
        *extra,
        *known_consts,
        *known_init,
        cond_nconsts=len(cond_extra) + len(cond_consts),
        cond_jaxpr=small_cond,
        body_nconsts=len(extra) + len(known_consts),
        body_jaxpr=small_body,
    )
    whole = trace.emit(while_p, args, params)
    given = iter(known)
    return [w if u else next(given) for w, u in zip(whole, carry_uk, strict=True)]


def _transpose(*_: Any, **__: Any) -> Any:
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic "
        "start/stop values. Try using lax.scan, or using fori_loop with static start/stop."
    )


def _batching(
    args: list[Any],
    dims: list[Any],
    *,
    cond_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    body_jaxpr: ClosedJaxpr,
) -> Any:
    size = batched_size(args, dims)
    moved = batches_first(args, dims)
    batched = [d is not None for d in dims]
    cond_b, body_b, init_b = _split_args(batched, cond_nconsts, body_nconsts)
    cond_consts, body_consts, init = _split_args(moved, cond_nconsts, body_nconsts)

    def step(carry_b: list[bool]) -> list[bool]:
        pred_b = batch_jaxpr(cond_jaxpr, size, cond_b + carry_b, False)[1][0]
        if pred_b:
            return [True] * len(carry_b)
        return batch_jaxpr(body_jaxpr, size, body_b + carry_b, carry_b)[1]

    carry_b = fixpoint(init_b, step)
    init = [
        move_batch(x, None, size) if b and not was else x
        for x, b, was in zip(init, carry_b, init_b, strict=True)
    ]
    new_cond, pred_b = batch_jaxpr(cond_jaxpr, size, cond_b + carry_b, False)
    new_body, _ = batch_jaxpr(body_jaxpr, size, body_b + carry_b, carry_b)
    if pred_b[0]:
        refused = [e.name for e in cond_jaxpr.effects | body_jaxpr.effects if e.per_lane]
        if refused:
            raise NotImplementedError(
                f"{refused[0]} effects are not supported in a while_loop with batched predicate: "
                "they would happen for lanes that have stopped, too"
            )
        params = {
            "cond_nconsts": cond_nconsts, "cond_jaxpr": cond_jaxpr,
            "body_nconsts": body_nconsts, "body_jaxpr": body_jaxpr,
        }  # fmt: skip
        avals = [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals]
        lane = runs_in_lanes(lambda *xs: while_p.bind(*xs, **params), avals, size, loops=True)
        if lane is not None:
            outs = lanes(lane, moved, batched, size, loops=True)
            return outs, [0] * len(outs)
        new_cond, new_body = _while_any_runs(
            new_cond, new_body, *([*map(get_aval, xs)] for xs in (cond_consts, body_consts, init))
        )
        body_consts = [*cond_consts, *body_consts]
    new_cond, cond_extra = hoist_consts(new_cond)
    new_body, body_extra = hoist_consts(new_body)
    outs = while_p.bind(
        *cond_extra,
        *cond_consts,
        *body_extra,
        *body_consts,
        *init,
        cond_nconsts=len(cond_extra) + len(cond_consts),
        cond_jaxpr=new_cond,
        body_nconsts=len(body_extra) + len(body_consts),
        body_jaxpr=new_body,
    )
    return outs, [0 if b else None for b in carry_b]


def _while_any_runs(
    lane_cond: ClosedJaxpr,
    lane_body: ClosedJaxpr,
    cond_const_avals: list[ShapedArray],
    body_const_avals: list[ShapedArray],
    carry_avals: list[ShapedArray],
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """A loop of lanes that stop at different times, of a condition and a body over all of them: it goes
    on while any runs, and holds those that have stopped. Its body takes the condition's constants, too."""
    from lamina import lax

    n_cond, n_body = len(cond_const_avals), len(body_const_avals)

    def any_cond(*values: Any) -> list[Any]:
        preds = jaxpr_as_fun(lane_cond)(*values)[0]
        return [lax.reduce_or(preds, axes=(0,))]

    def held_body(*values: Any) -> list[Any]:
        cond_consts, body_consts, carry = _split_args(values, n_cond, n_body)
        running = jaxpr_as_fun(lane_cond)(*cond_consts, *carry)[0]
        new = jaxpr_as_fun(lane_body)(*body_consts, *carry)
        return [
            lax.select_n(lax.broadcast_in_dim(running, get_aval(x).shape, (0,)), x, y)
            for x, y in zip(carry, new, strict=True)
        ]

    return (
        trace_to_jaxpr(any_cond, cond_const_avals + carry_avals, lane_cond.jaxpr.debug_info),
        trace_to_jaxpr(
            held_body, cond_const_avals + body_const_avals + carry_avals, lane_body.jaxpr.debug_info
        ),
    )


def _dce(eqn: JaxprEqn, used: list[bool]) -> JaxprEqn:
    params = eqn.params
    n_cc, n_bc = params["cond_nconsts"], params["body_nconsts"]
    cond, body = params["cond_jaxpr"].jaxpr, params["body_jaxpr"].jaxpr
    _, cond_reads = dce_jaxpr(cond, [True])
    carry = fixpoint(
        [u or c for u, c in zip(used, cond_reads[n_cc:], strict=True)],
        lambda now: dce_jaxpr(body, now)[1][n_bc:],
    )
    slim, reads = dce_jaxpr(body, carry)
    consts = reads[:n_bc]
    invars = [*kept(body.invars[:n_bc], consts), *kept(body.invars[n_bc:], carry)]
    new_body = Jaxpr([], invars, slim.outvars, slim.eqns, body.debug_info)
    cond_invars = [*cond.invars[:n_cc], *kept(cond.invars[n_cc:], carry)]
    new_cond = Jaxpr([], cond_invars, cond.outvars, cond.eqns, cond.debug_info)
    return eqn.replace(
        invars=kept(eqn.invars, [*[True] * n_cc, *consts, *carry]),
        outvars=kept(eqn.outvars, carry),
        params={
            "cond_nconsts": n_cc,
            "cond_jaxpr": close_jaxpr(new_cond),
            "body_nconsts": sum(consts),
            "body_jaxpr": close_jaxpr(new_body),
        },
    )


def _in_python(
    *args: Any,
    cond_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    body_jaxpr: ClosedJaxpr,
) -> None:
    cond_consts, body_consts, carry = _split_args(args, cond_nconsts, body_nconsts)
    while jaxpr_as_fun(cond_jaxpr)(*cond_consts, *carry)[0]:
        carry = jaxpr_as_fun(body_jaxpr)(*body_consts, *carry)


def _align(args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """The carry varies along what a step makes it vary along, and along what its test does."""
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    of_cond, of_body, start = _split_args(
        varying(args), params["cond_nconsts"], params["body_nconsts"]
    )

    def step(carry: Sequence[Any]) -> list[Any]:
        (again,) = results(cond, [*of_cond, *carry])
        return [v | again for v in results(body, [*of_body, *carry])]

    carry = grown(start, step)
    n = len(args) - len(carry)
    init = [cast(x, v) for x, v in zip(args[n:], carry, strict=True)]
    fitting = {
        "cond_jaxpr": retyped(cond, [*of_cond, *carry]),
        "body_jaxpr": retyped(body, [*of_body, *carry], carry),
    }
    return (*args[:n], *init), {**params, **fitting}


while_p = Primitive(
    "while",
    multiple_results=True,
    align=_align,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
    partial_eval=_partial_eval,
    dce=_dce,
    in_python=_in_python,
)
