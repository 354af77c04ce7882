"""scan in reverse mode: its split into known and unknown work, and its transpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from lamina.control_flow.carry import fixpoint
from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.scan_step import split, trace_step
from lamina.core import tree
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, dce_jaxpr, eval_jaxpr, jaxpr_as_fun, kept
from lamina.core.tangents import UndefinedPrimal, Zero, is_undefined_primal
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.backward_logs import collected, log
from lamina.interpreters.linearize import partial_eval_jaxpr
from lamina.interpreters.tangents import add_tangents, instantiate_zero
from lamina.interpreters.transpose import backward_pass


def _scan_p() -> Any:
    from lamina.control_flow.scan_rules import scan_p  # made of these rules

    return scan_p


_cached_split = cache_on_jaxpr(
    lambda closed, unknown, force: partial_eval_jaxpr(closed, unknown, force)
)


def _split_step(closed: ClosedJaxpr, unknown: Sequence[bool], force: Sequence[bool]) -> Any:
    return _cached_split(closed, tuple(unknown), tuple(force))


def _run_known(
    args: Any, unknown: list[bool], params: dict[str, Any]
) -> tuple[list[Any], list[Any], dict[str, Any], list[bool]]:
    """Two scans: the known one also stacks residuals, over which the unknown one then runs.

    Runs the first. Gives its results, the operands and parameters of the second, and which results
    the second gives. Residuals that are operands, or the same in every step, are not stacked.
    """
    jaxpr = params["jaxpr"]
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    const_uk, init_uk, xs_uk = split(unknown, num_consts, num_carry)
    no_ys = [False] * (len(jaxpr.out_avals) - num_carry)
    carry_uk = fixpoint(
        init_uk,
        lambda uk: _split_step(jaxpr, const_uk + uk + xs_uk, uk + no_ys)[2][:num_carry],
    )
    known, later, out_uk, _ = _split_step(jaxpr, const_uk + carry_uk + xs_uk, carry_uk + no_ys)
    known, extra = hoist_consts(known)
    known_or_not = [
        (kept(xs, [not u for u in uk]), kept(xs, uk))
        for xs, uk in zip(
            split(args, num_consts, num_carry), (const_uk, carry_uk, xs_uk), strict=True
        )
    ]
    (k_consts, u_consts), (k_init, u_init), (k_xs, u_xs) = known_or_not
    k_consts = [*extra, *k_consts]
    n_known = out_uk.count(False)
    step, same, sliced, which = _sort_residuals(known, n_known, len(k_consts), len(k_init), k_xs)
    shared = dict(reverse=params["reverse"], length=params["length"], unroll=params["unroll"])
    outs = _scan_p().bind(
        *k_consts,
        *k_init,
        *k_xs,
        jaxpr=step,
        num_consts=len(k_consts),
        num_carry=len(k_init),
        **shared,
    )
    const_res = eval_jaxpr(same, (), *k_consts) if same.outvars else []
    scan_res = [*sliced, *outs[n_known:]]
    n_res = len(which)

    # From (fixed residuals, constants, carry, sliced residuals, x) to (residuals, the rest).
    def later_step(*values: Any) -> list[Any]:
        fixed, rest = values[: len(const_res)], values[len(const_res) :]
        at = len(u_consts) + len(u_init)
        res = [*fixed, *rest[at : at + len(scan_res)]]
        return jaxpr_as_fun(later)(
            *(res[i] for i in which), *rest[:at], *rest[at + len(scan_res) :]
        )

    assert n_res == len(const_res) + len(scan_res)
    later_jaxpr, later_extra = hoist_consts(
        trace_step(later_step, [*const_res, *u_consts, *u_init], [*scan_res, *u_xs], jaxpr)
    )
    later_consts = [*later_extra, *const_res, *u_consts]
    later_params = dict(
        jaxpr=later_jaxpr, num_consts=len(later_consts), num_carry=len(u_init), **shared
    )
    return (
        list(outs[:n_known]),
        [*later_consts, *u_init, *scan_res, *u_xs],
        later_params,
        out_uk,
    )


def _sort_residuals(
    known: ClosedJaxpr, n_known: int, n_consts: int, n_carry: int, xs: Sequence[Any]
) -> tuple[ClosedJaxpr, Jaxpr, list[Any], list[int]]:
    """The known step without the residuals that need no stacking; a program of the constants for
    those that are the same in every step; the xs that are residuals themselves; and for each
    residual its place among (the same in every step, xs, stacked)."""
    jaxpr = known.jaxpr
    consts = jaxpr.invars[:n_consts]
    x_vars = {v: x for v, x in zip(jaxpr.invars[n_consts + n_carry :], xs, strict=True)}
    varying = set(jaxpr.invars[n_consts:])
    for eqn in jaxpr.eqns:
        if any(type(v) is not Literal and v in varying for v in eqn.invars):
            varying.update(eqn.outvars)
    same: list[Any] = []
    sliced: list[Any] = []
    rest: list[Any] = []
    kind: list[tuple[int, int]] = []
    for v in jaxpr.outvars[n_known:]:
        into = rest
        if type(v) is Literal or v not in varying:
            into = same
        elif v in x_vars:
            into = sliced
        kind.append((0 if into is same else 1 if into is sliced else 2, len(into)))
        into.append(v)
    start = (0, len(same), len(same) + len(sliced))
    fixed, _ = dce_jaxpr(Jaxpr([], consts, same, jaxpr.eqns), [True] * len(same))
    step, _ = dce_jaxpr(
        Jaxpr([], jaxpr.invars, [*jaxpr.outvars[:n_known], *rest], jaxpr.eqns, jaxpr.debug_info),
        [True] * (n_known + len(rest)),
    )
    return (
        ClosedJaxpr(step),
        fixed,
        [x_vars[v] for v in sliced],
        [start[k] + i for k, i in kind],
    )


def partial_eval(trace: Any, args: Any, params: dict[str, Any]) -> list[Any]:
    """Runs the known scan, records the other."""
    unknown = [trace.is_unknown(x) for x in args]
    known, later_args, later_params, out_uk = _run_known(args, unknown, params)
    now, then = iter(known), iter(trace.emit(_scan_p(), later_args, later_params))
    return [next(then) if u else next(now) for u in out_uk]


def transpose(
    cts: list[Any],
    *args: Any,
    reverse: bool,
    length: int,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    unroll: int,
) -> list[Any]:
    """A scan the other way: carries the carry's cotangents and sums those of linear constants."""
    linear = [is_undefined_primal(x) for x in args]
    const_lin, carry_lin, xs_lin = split(linear, num_consts, num_carry)
    no_ys = [False] * (len(jaxpr.out_avals) - num_carry)
    # A carry can be linear although it starts from a known value, which then is zero.
    reached = fixpoint(
        carry_lin,
        lambda lin: _split_step(jaxpr, const_lin + lin + xs_lin, lin + no_ys)[2][:num_carry],
    )
    if not all(reached):
        return _transpose_partly_linear(
            cts,
            args,
            linear,
            dict(
                reverse=reverse,
                length=length,
                jaxpr=jaxpr,
                num_consts=num_consts,
                num_carry=num_carry,
                unroll=unroll,
            ),
        )
    consts, _, xs = split(args, num_consts, num_carry)
    res_consts = [x for x in consts if not is_undefined_primal(x)]
    res_xs = [x for x in xs if not is_undefined_primal(x)]
    lin_consts = kept(jaxpr.in_avals[:num_consts], const_lin)
    ct_consts = [instantiate_zero(Zero(a.to_cotangent_aval())) for a in lin_consts]
    ct_carry = [instantiate_zero(ct) for ct in cts[:num_carry]]
    ct_ys = cts[num_carry:]
    body, logs = _step_back(jaxpr, const_lin, xs_lin, [type(ct) is not Zero for ct in ct_ys])
    scanned = [ct for ct in ct_ys if type(ct) is not Zero] + res_xs
    operands = [*res_consts, *ct_consts, *ct_carry]
    closed, extra = hoist_consts(trace_step(body, operands, scanned, jaxpr))
    outs = _scan_p().bind(
        *extra,
        *operands,
        *scanned,
        reverse=not reverse,
        length=length,
        jaxpr=closed,
        num_consts=len(extra) + len(res_consts),
        num_carry=len(ct_consts) + num_carry,
        unroll=unroll,
    )
    it = iter(outs)
    by_const = [next(it) if lin else None for lin in const_lin]
    by_carry = [ct if lin else None for lin, ct in zip(carry_lin, it, strict=False)]
    by_xs = [next(it) if lin else None for lin in xs_lin]
    if logs:
        log(tree.unflatten(logs[0], list(it)))  # of all steps, stacked
    return [*by_const, *by_carry, *by_xs]


def _step_back(
    jaxpr: ClosedJaxpr, const_lin: list[bool], xs_lin: list[bool], ys_nz: list[bool]
) -> tuple[Callable[..., list[Any]], list[Any]]:
    """The step of a transposed scan: from what is known of the constants, the sums of cotangents of the
    others so far, the carry's cotangents, those of the ys that have any, and what is known of the xs; to
    new sums, and cotangents of the carry and of the other xs, and what its rules log, whose structure
    is in the list once the step has run."""
    num_consts, num_carry = len(const_lin), len(jaxpr.in_avals) - len(const_lin) - len(xs_lin)
    const_avals, carry_avals, x_avals = split(jaxpr.in_avals, num_consts, num_carry)
    y_avals = jaxpr.out_avals[num_carry:]
    sizes = [const_lin.count(False), const_lin.count(True), num_carry, ys_nz.count(True)]
    logs: list[Any] = []

    def body(*values: Any) -> list[Any]:
        it = iter(values)
        known_consts, sums, ct_carry, ct_ys = ([*islice(it, size)] for size in sizes)
        ys = iter(ct_ys)
        cts = [next(ys) if nz else Zero(a.to_cotangent_aval()) for nz, a in zip(ys_nz, y_avals)]
        operands = [
            *_with_unknown(const_avals, const_lin, iter(known_consts)),
            *map(UndefinedPrimal, carry_avals),
            *_with_unknown(x_avals, xs_lin, it),
        ]
        with collected() as found:
            out = backward_pass(jaxpr.jaxpr, jaxpr.consts, operands, [*ct_carry, *cts])
        logged, structure = tree.flatten(found)
        logs[:] = [structure] if found else []
        consts, carry, xs = split(out, num_consts, num_carry)
        new_sums = map(add_tangents, sums, kept(consts, const_lin))
        cotangents = [instantiate_zero(ct) for ct in (*new_sums, *carry, *kept(xs, xs_lin))]
        return cotangents + logged

    return body, logs


def _with_unknown(avals: Sequence[Any], linear: list[bool], known: Iterator[Any]) -> list[Any]:
    return [UndefinedPrimal(a) if lin else next(known) for a, lin in zip(avals, linear, strict=True)]


def _transpose_partly_linear(
    cts: list[Any], args: Any, linear: list[bool], params: dict[str, Any]
) -> list[Any]:
    """Runs what is not linear (a counter, say), then transposes the rest."""
    _, later_args, later_params, out_linear = _run_known(args, linear, params)
    later_cts = [ct for ct, lin in zip(cts, out_linear, strict=True) if lin]
    later = transpose(later_cts, *later_args, **later_params)
    by_id = {id(x): ct for x, ct in zip(later_args, later, strict=True) if is_undefined_primal(x)}
    return [by_id.get(id(x)) if lin else None for x, lin in zip(args, linear, strict=True)]
