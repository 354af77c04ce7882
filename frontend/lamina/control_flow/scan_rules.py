"""The primitive scan, and the rules that go forwards; scan_reverse.py holds the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import config
from lamina.control_flow.carry import fixpoint
from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.scan_reverse import partial_eval, transpose
from lamina.control_flow.scan_step import split, stacked, trace_step
from lamina.control_flow.varying import cast, grown, results, retyped, varying
from lamina.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    close_jaxpr,
    dce_nested,
    jaxpr_as_fun,
    kept,
)
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero
from lamina.core.trace import get_aval
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.batching import batch_jaxpr, batched_size, move_batch
from lamina.interpreters.jvp import jvp_jaxpr
from lamina.interpreters.tangents import instantiate_zero


def _check_size(body: int, unroll: int, length: int) -> None:
    """Raises ValueError for steps that are too many to be written out."""
    most = config.program_operations.value
    if unroll > 1 and body * unroll > most:
        raise ValueError(
            f"scan: unroll={unroll} of {length} steps would write {body} operations out {unroll} times, "
            f"more than the setting program_operations={most} allows. Use a smaller `unroll`"
        )


def _abstract_eval(
    *avals: Any, length: int, jaxpr: ClosedJaxpr, num_carry: int, **_: Any
) -> list[Any]:
    out = jaxpr.out_avals
    return out[:num_carry] + stacked(out[num_carry:], length)


def _lowering(
    ctx: Any,
    *args: Any,
    reverse: bool,
    length: int,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    unroll: int,
) -> Any:
    from lamina.dialects import stablehlo as hlo

    consts, init, xs = split(args, num_consts, num_carry)
    x_avals = [a.without_axis(0) for a in ctx.avals_in[num_consts + num_carry :]]
    y_avals = ctx.avals_out[num_carry:]
    ys = [ctx.terms(hlo.full(0, a.shape, a.dtype), a) for a in y_avals]
    number = np.int32 if length <= np.iinfo(np.int32).max else np.int64  # of a step

    def step(i: Any, carry: list[Any], ys: list[Any]) -> tuple[list[Any], list[Any]]:
        zero = hlo.constant(number(0))
        x = [
            hlo.reshape(hlo.dynamic_slice(v, [i] + [zero] * a.ndim, [1, *a.shape]), a.shape)
            for v, a in zip(xs, x_avals, strict=True)
        ]
        outs = ctx.lower_jaxpr(jaxpr.jaxpr, jaxpr.consts, [*consts, *carry, *x])
        new_ys = []
        for all_y, y, a in zip(ys, outs[num_carry:], y_avals, strict=True):
            row = ctx.terms(hlo.reshape(y, (1, *a.shape[1:])), a)
            updated = hlo.dynamic_update_slice(all_y, row, [i] + [zero] * (a.ndim - 1))
            new_ys.append(ctx.terms(updated, a))
        return list(outs[:num_carry]), new_ys

    def index(counter: Any, k: int) -> Any:
        """The slice of step counter + k."""
        at = counter if k == 0 else hlo.add(counter, hlo.constant(number(k)))
        return hlo.subtract(hlo.constant(number(length - 1)), at) if reverse else at

    unroll = min(unroll, length) if length else 1
    _check_size(len(jaxpr.jaxpr.eqns), unroll, length)
    whole = length - length % unroll
    carry = list(init)
    if whole > unroll or (whole and unroll == 1 and length > 1):

        def cond(counter: Any, *_: Any) -> Any:
            return hlo.compare(counter, hlo.constant(number(whole)), "LT")

        def body(counter: Any, *values: Any) -> Any:
            c, y = list(values[:num_carry]), list(values[num_carry:])
            for k in range(unroll):
                c, y = step(index(counter, k), c, y)
            return [hlo.add(counter, hlo.constant(number(unroll))), *c, *y]

        outs = hlo.while_([hlo.constant(number(0)), *carry, *ys], cond, body)
        carry, ys = list(outs[1 : 1 + num_carry]), list(outs[1 + num_carry :])
        start = whole
    else:
        start = 0
    for i in range(start, length):
        carry, ys = step(index(hlo.constant(number(i)), 0), carry, ys)
    return [*carry, *ys]


_jvp_body = cache_on_jaxpr(lambda closed, nonzero, force: jvp_jaxpr(closed, nonzero, force))


def _jvp(
    primals: list[Any],
    tangents: list[Any],
    *,
    reverse: bool,
    length: int,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    unroll: int,
) -> Any:
    const_nz, init_nz, xs_nz = split([type(t) is not Zero for t in tangents], num_consts, num_carry)
    n_ys = len(jaxpr.out_avals) - num_carry
    no_ys = [False] * n_ys
    carry_nz = fixpoint(
        init_nz,
        lambda nz: _jvp_body(jaxpr, tuple(const_nz + nz + xs_nz), tuple(nz + no_ys))[1][:num_carry],
    )
    both, out_nz = _jvp_body(jaxpr, tuple(const_nz + carry_nz + xs_nz), tuple(carry_nz + no_ys))
    both, extra = hoist_consts(both)
    consts, init, xs = split(primals, num_consts, num_carry)
    const_t, init_t, xs_t = split(tangents, num_consts, num_carry)
    const_dot = [t for t in const_t if type(t) is not Zero]
    init_dot = [instantiate_zero(t) for t, nz in zip(init_t, carry_nz, strict=True) if nz]
    xs_dot = [t for t in xs_t if type(t) is not Zero]
    sizes = [len(extra), num_consts, num_carry, len(xs), len(const_dot), len(init_dot)]

    # From (consts, carry, x, consts', carry', x') to (consts, consts', carry, carry', x, x').
    def body(*args: Any) -> list[Any]:
        it = iter(args)
        take = lambda n: [next(it) for _ in range(n)]  # noqa: E731
        ex, c, cd = take(sizes[0]), take(sizes[1]), take(sizes[4])
        k, kd, x = take(sizes[2]), take(sizes[5]), take(sizes[3])
        outs = jaxpr_as_fun(both)(*ex, *c, *k, *x, *cd, *kd, *it)
        n = num_carry + n_ys
        dots = outs[n:]
        n_kd = sum(carry_nz)
        return [*outs[:num_carry], *dots[:n_kd], *outs[num_carry:n], *dots[n_kd:]]

    operands = [*extra, *consts, *const_dot, *init, *init_dot]
    new = trace_step(body, operands, [*xs, *xs_dot], jaxpr)
    outs = scan_p.bind(
        *operands,
        *xs,
        *xs_dot,
        reverse=reverse,
        length=length,
        jaxpr=new,
        num_consts=len(extra) + num_consts + len(const_dot),
        num_carry=num_carry + len(init_dot),
        unroll=unroll,
    )
    n_kd = len(init_dot)
    carry_out, carry_dot = outs[:num_carry], outs[num_carry : num_carry + n_kd]
    ys, ys_dot = outs[num_carry + n_kd :][:n_ys], outs[num_carry + n_kd + n_ys :]
    given = iter([*carry_dot, *ys_dot])
    primals_out = [*carry_out, *ys]
    tangents_out = [
        next(given) if nz else Zero(get_aval(p).to_tangent_aval())
        for nz, p in zip(out_nz, primals_out, strict=True)
    ]
    return primals_out, tangents_out


def _batching(
    args: list[Any],
    dims: list[Any],
    *,
    reverse: bool,
    length: int,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    unroll: int,
) -> Any:
    size = batched_size(args, dims)
    batched = [d is not None for d in dims]
    const_b, init_b, xs_b = split(batched, num_consts, num_carry)
    no_ys = [False] * (len(jaxpr.out_avals) - num_carry)
    carry_b = fixpoint(
        init_b,
        lambda b: batch_jaxpr(jaxpr, size, const_b + b + xs_b, b + no_ys)[1][:num_carry],
    )
    closed, out_b = batch_jaxpr(jaxpr, size, const_b + carry_b + xs_b, carry_b + no_ys)
    closed, extra = hoist_consts(closed)
    consts, init, xs = split(list(zip(args, dims, strict=True)), num_consts, num_carry)
    new_consts = [x if d is None else move_batch(x, d, size) for x, d in consts]
    new_init = [move_batch(x, d, size) if b else x for (x, d), b in zip(init, carry_b, strict=True)]
    new_xs = [x if d is None else move_batch(x, d, size, to=1) for x, d in xs]
    outs = scan_p.bind(
        *extra,
        *new_consts,
        *new_init,
        *new_xs,
        reverse=reverse,
        length=length,
        jaxpr=closed,
        num_consts=len(extra) + num_consts,
        num_carry=num_carry,
        unroll=unroll,
    )
    out_dims = [(0 if i < num_carry else 1) if b else None for i, b in enumerate(out_b)]
    return outs, out_dims


def _dce(eqn: JaxprEqn, used: list[bool]) -> JaxprEqn:
    params = eqn.params
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    used_carry, used_ys = used[:num_carry], used[num_carry:]

    def step(carry: list[bool]) -> list[bool]:
        return split(_dce_step(params["jaxpr"], tuple(carry + used_ys))[1], num_consts, num_carry)[
            1
        ]

    used_carry = fixpoint(used_carry, step)
    closed, used_in = _dce_step(params["jaxpr"], tuple(used_carry + used_ys))
    used_consts, read_carry, used_xs = split(used_in, num_consts, num_carry)
    # A carry that is needed and not read stays an input: the step still has to take it.
    if read_carry != used_carry:
        closed = _with_inputs(params["jaxpr"], closed, [*used_consts, *used_carry, *used_xs])
    return eqn.replace(
        invars=kept(eqn.invars, [*used_consts, *used_carry, *used_xs]),
        outvars=kept(eqn.outvars, [*used_carry, *used_ys]),
        params={
            **params,
            "jaxpr": closed,
            "num_consts": sum(used_consts),
            "num_carry": sum(used_carry),
        },
    )


_dce_step = cache_on_jaxpr(lambda closed, used: dce_nested(closed, used))


def _with_inputs(whole: ClosedJaxpr, slim: ClosedJaxpr, keep: list[bool]) -> ClosedJaxpr:
    inner = slim.jaxpr
    return close_jaxpr(
        Jaxpr([], kept(whole.jaxpr.invars, keep), inner.outvars, inner.eqns, inner.debug_info)
    )


def _shown(params: dict[str, Any]) -> dict[str, Any]:
    order = ("jaxpr", "length", "num_carry", "num_consts", "reverse", "unroll")
    return {k: params[k] for k in order}


def _in_python(
    *args: Any,
    reverse: bool,
    length: int,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **_: Any,
) -> None:
    from lamina import lax

    consts, carry, xs = split(args, num_consts, num_carry)
    for i in reversed(range(length)) if reverse else range(length):
        x = [lax.index_in_dim(v, i, keepdims=False) for v in xs]
        carry = jaxpr_as_fun(jaxpr)(*consts, *carry, *x)[:num_carry]


def _align(args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """The carry varies along what any step makes it vary along."""
    closed, n, m = params["jaxpr"], params["num_consts"], params["num_carry"]
    consts, start, xs = split(varying(args), n, m)

    def step(carry: Sequence[Any]) -> list[Any]:
        return results(closed, [*consts, *carry, *xs])[:m]

    carry = grown(start, step)
    _, init, _ = split(args, n, m)
    init = [cast(x, v) for x, v in zip(init, carry, strict=True)]
    out = [*carry, *results(closed, [*consts, *carry, *xs])[m:]]
    closed = retyped(closed, [*consts, *carry, *xs], out)
    return (*args[:n], *init, *args[n + m :]), {**params, "jaxpr": closed}


scan_p = Primitive(
    "scan",
    multiple_results=True,
    align=_align,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=transpose,
    batching=_batching,
    partial_eval=partial_eval,
    dce=_dce,
    in_python=_in_python,
    shown=_shown,
)
