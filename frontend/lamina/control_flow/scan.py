"""scan: a loop of known length with a carry, over leading slices of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import config
from lamina.control_flow.carry import check_carry, fixpoint, promote_weak_carry
from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.core import tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from lamina.core.primitive import Primitive
from lamina.core.tangents import UndefinedPrimal, Zero, is_undefined_primal
from lamina.core.trace import get_aval
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.batching import batch_jaxpr, batched_size, move_batch
from lamina.interpreters.jvp import jvp_jaxpr
from lamina.interpreters.linearize import partial_eval_jaxpr
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import add_tangents, instantiate_zero, zeros_like_aval
from lamina.interpreters.transpose import backward_pass


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """carry = init; for x in xs: carry, y = f(carry, x); gives (carry, stacked ys).

    init     a pytree of arrays; f gives a carry of the same structure and types.
    xs       a pytree of arrays with one leading size, or None with `length` given.
    reverse  runs from the last slice to the first; ys keep their places.
    unroll   how many steps are written out in one iteration of the loop; True: all of them.
    Raises TypeError where f does not give a pair or changes the carry's type; ValueError where the
    leading sizes differ from each other or from `length`.
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    xs_flat, xs_tree = tree.flatten(xs)
    init_flat, init_tree = tree.flatten(init)
    n = _scan_length(xs, xs_flat, length)
    if config.disable_jit.value:
        return _python_scan(f, init, xs_flat, xs_tree, n, reverse)
    xs_avals = avals_of(xs_flat, "scan")
    x_avals = [a.update(shape=a.shape[1:]) for a in xs_avals]
    in_tree = tree.structure((init, xs))
    carry_avals = avals_of(init_flat, "scan")

    def trace_body(carry_avals: list[ShapedArray]) -> Any:
        closed, consts, out_tree = trace_function(
            f, in_tree, carry_avals + x_avals, debug_info(f, "scan body", (init, xs))
        )
        children = out_tree.children() if out_tree.num_children == 2 else []
        if len(children) != 2 or out_tree.type is not tuple:
            raise TypeError(f"scan body output must be a pair, got {out_tree}.")
        return closed, consts, children

    closed, consts, (out_carry_tree, ys_tree) = trace_body(carry_avals)
    n_carry = len(init_flat)
    init_flat, new_avals = promote_weak_carry(
        init_flat,
        carry_avals,
        closed.out_avals[: out_carry_tree.num_leaves],
        out_carry_tree == init_tree,
    )
    if new_avals != carry_avals:
        carry_avals = new_avals
        closed, consts, (out_carry_tree, ys_tree) = trace_body(carry_avals)
    check_carry(
        "f",
        "scan",
        init,
        out_carry_tree,
        init_tree,
        closed.out_avals[: out_carry_tree.num_leaves],
        carry_avals,
    )
    steps = n if unroll is True else max(int(unroll), 1)
    outs = scan_p.bind(
        *consts,
        *init_flat,
        *xs_flat,
        reverse=bool(reverse),
        length=n,
        jaxpr=closed,
        num_consts=len(consts),
        num_carry=n_carry,
        unroll=max(steps, 1),
    )
    return tree.unflatten(init_tree, outs[:n_carry]), tree.unflatten(ys_tree, outs[n_carry:])


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
        raise ValueError(f"scan got values with different leading axis sizes: {sizes}.")
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


# ---- rules -------------------------------------------------------------------------------------
def _split(values: Any, num_consts: int, num_carry: int) -> tuple[list[Any], list[Any], list[Any]]:
    n = num_consts + num_carry
    return list(values[:num_consts]), list(values[num_consts:n]), list(values[n:])


def _stacked(avals: Sequence[ShapedArray], length: int) -> list[ShapedArray]:
    return [a.update(shape=(length, *a.shape)) for a in avals]


def _abstract_eval(
    *avals: Any, length: int, jaxpr: ClosedJaxpr, num_carry: int, **_: Any
) -> list[Any]:
    out = jaxpr.out_avals
    return out[:num_carry] + _stacked(out[num_carry:], length)


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

    consts, init, xs = _split(args, num_consts, num_carry)
    x_avals = [a.update(shape=a.shape[1:]) for a in ctx.avals_in[num_consts + num_carry :]]
    y_avals = ctx.avals_out[num_carry:]
    ys = [hlo.full(0, a.shape, a.dtype) for a in y_avals]

    def step(i: Any, carry: list[Any], ys: list[Any]) -> tuple[list[Any], list[Any]]:
        zero = hlo.constant(np.int32(0))
        x = [
            hlo.reshape(hlo.dynamic_slice(v, [i] + [zero] * a.ndim, [1, *a.shape]), a.shape)
            for v, a in zip(xs, x_avals, strict=True)
        ]
        outs = ctx.lower_jaxpr(jaxpr.jaxpr, jaxpr.consts, [*consts, *carry, *x])
        new_ys = [
            hlo.dynamic_update_slice(
                all_y, hlo.reshape(y, (1, *a.shape[1:])), [i] + [zero] * (a.ndim - 1)
            )
            for all_y, y, a in zip(ys, outs[num_carry:], y_avals, strict=True)
        ]
        return list(outs[:num_carry]), new_ys

    def index(counter: Any, k: int) -> Any:
        """The slice of step counter + k."""
        at = counter if k == 0 else hlo.add(counter, hlo.constant(np.int32(k)))
        return hlo.subtract(hlo.constant(np.int32(length - 1)), at) if reverse else at

    unroll = min(unroll, length) if length else 1
    whole = length - length % unroll
    carry = list(init)
    if whole > unroll or (whole and unroll == 1 and length > 1):

        def cond(counter: Any, *_: Any) -> Any:
            return hlo.compare(counter, hlo.constant(np.int32(whole)), "LT")

        def body(counter: Any, *values: Any) -> Any:
            c, y = list(values[:num_carry]), list(values[num_carry:])
            for k in range(unroll):
                c, y = step(index(counter, k), c, y)
            return [hlo.add(counter, hlo.constant(np.int32(unroll))), *c, *y]

        outs = hlo.while_([hlo.constant(np.int32(0)), *carry, *ys], cond, body)
        carry, ys = list(outs[1 : 1 + num_carry]), list(outs[1 + num_carry :])
        start = whole
    else:
        start = 0
    for i in range(start, length):
        carry, ys = step(index(hlo.constant(np.int32(i)), 0), carry, ys)
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
    const_nz, init_nz, xs_nz = _split(
        [type(t) is not Zero for t in tangents], num_consts, num_carry
    )
    n_ys = len(jaxpr.out_avals) - num_carry
    no_ys = [False] * n_ys
    carry_nz = fixpoint(
        init_nz,
        lambda nz: _jvp_body(jaxpr, tuple(const_nz + nz + xs_nz), tuple(nz + no_ys))[1][:num_carry],
    )
    both, out_nz = _jvp_body(jaxpr, tuple(const_nz + carry_nz + xs_nz), tuple(carry_nz + no_ys))
    both, extra = hoist_consts(both)
    consts, init, xs = _split(primals, num_consts, num_carry)
    const_t, init_t, xs_t = _split(tangents, num_consts, num_carry)
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
    new = _trace_scan_body(body, operands, [*xs, *xs_dot], jaxpr)
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
        next(given) if nz else Zero(get_aval(p).to_tangent())
        for nz, p in zip(out_nz, primals_out, strict=True)
    ]
    return primals_out, tangents_out


def _trace_scan_body(
    body: Any, operands: Sequence[Any], xs: Sequence[Any], like: ClosedJaxpr
) -> ClosedJaxpr:
    avals = [x.aval if is_undefined_primal(x) else get_aval(x) for x in operands]
    for x in xs:
        aval = x.aval if is_undefined_primal(x) else get_aval(x)
        avals.append(aval.update(shape=aval.shape[1:]))
    return trace_to_jaxpr(body, avals, like.jaxpr.debug_info)


def _split_scan(
    args: Any, unknown: list[bool], params: dict[str, Any]
) -> tuple[list[Any], list[Any], dict[str, Any], list[bool]]:
    """Two scans: the known one also stacks residuals, over which the unknown one then runs.

    Runs the first. Gives its results, the operands and parameters of the second, and which results
    the second gives.
    """
    jaxpr, length = params["jaxpr"], params["length"]
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    const_uk, init_uk, xs_uk = _split(unknown, num_consts, num_carry)
    n_ys = len(jaxpr.out_avals) - num_carry
    no_ys = [False] * n_ys
    carry_uk = fixpoint(
        init_uk,
        lambda uk: partial_eval_jaxpr(jaxpr, const_uk + uk + xs_uk, uk + no_ys)[2][:num_carry],
    )
    body_uk = const_uk + carry_uk + xs_uk
    known, later, out_uk, res_avals = partial_eval_jaxpr(jaxpr, body_uk, carry_uk + no_ys)
    known, extra = hoist_consts(known)
    consts, init, xs = _split(args, num_consts, num_carry)
    k_consts = [x for x, u in zip(consts, const_uk, strict=True) if not u]
    k_init = [x for x, u in zip(init, carry_uk, strict=True) if not u]
    k_xs = [x for x, u in zip(xs, xs_uk, strict=True) if not u]
    n_known_out = out_uk.count(False)
    # Residuals that are the body's own constants need no stacking: they are the same every step.
    position = {v: i for i, v in enumerate(known.jaxpr.invars)}
    n_fixed = len(extra) + len(k_consts)
    fixed_inputs = [*extra, *k_consts]
    fixed: list[int | None] = []
    stacked_outs = known.jaxpr.outvars[:n_known_out]
    for v in known.jaxpr.outvars[n_known_out:]:
        i = position.get(v) if not hasattr(v, "val") else None
        fixed.append(i if i is not None and i < n_fixed else None)
        if fixed[-1] is None:
            stacked_outs.append(v)
    known.jaxpr.outvars = stacked_outs
    outs = scan_p.bind(
        *extra,
        *k_consts,
        *k_init,
        *k_xs,
        reverse=params["reverse"],
        length=length,
        jaxpr=known,
        num_consts=n_fixed,
        num_carry=len(k_init),
        unroll=params["unroll"],
    )
    stacked_residuals = iter(outs[n_known_out:])

    u_consts = [x for x, u in zip(consts, const_uk, strict=True) if u]
    u_init = [x for x, u in zip(init, carry_uk, strict=True) if u]
    u_xs = [x for x, u in zip(xs, xs_uk, strict=True) if u]
    n_res = len(res_avals)
    const_res = [fixed_inputs[i] for i in fixed if i is not None]
    scan_res = [next(stacked_residuals) for i in fixed if i is None]

    def later_body(*values: Any) -> list[Any]:
        it = iter(values)
        cr = [next(it) for _ in const_res]
        uc = [next(it) for _ in u_consts]
        ui = [next(it) for _ in u_init]
        sr = [next(it) for _ in scan_res]
        fixed_it, scan_it = iter(cr), iter(sr)
        res = [next(scan_it) if i is None else next(fixed_it) for i in fixed]
        assert len(res) == n_res
        return jaxpr_as_fun(later)(*res, *uc, *ui, *it)

    later_closed, later_extra = hoist_consts(
        _trace_scan_body(later_body, [*const_res, *u_consts, *u_init], [*scan_res, *u_xs], jaxpr)
    )
    later_args = [*later_extra, *const_res, *u_consts, *u_init, *scan_res, *u_xs]
    later_params = dict(
        reverse=params["reverse"],
        length=length,
        jaxpr=later_closed,
        num_consts=len(later_extra) + len(const_res) + len(u_consts),
        num_carry=len(u_init),
        unroll=params["unroll"],
    )
    return list(outs[:n_known_out]), later_args, later_params, out_uk


def _partial_eval(trace: Any, args: Any, params: dict[str, Any]) -> list[Any]:
    unknown = [trace.is_unknown(x) for x in args]
    known, later_args, later_params, out_uk = _split_scan(args, unknown, params)
    now, then = iter(known), iter(trace.emit(scan_p, later_args, later_params))
    return [next(then) if u else next(now) for u in out_uk]


def _transpose(
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
    const_lin, carry_lin, xs_lin = _split(linear, num_consts, num_carry)
    no_ys = [False] * (len(jaxpr.out_avals) - num_carry)
    # A carry can be linear although it starts from a known value, which then is zero.
    reached = fixpoint(
        carry_lin,
        lambda lin: partial_eval_jaxpr(jaxpr, const_lin + lin + xs_lin, lin + no_ys)[2][:num_carry],
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
    consts, init, xs = _split(args, num_consts, num_carry)
    res_consts = [x for x, lin in zip(consts, const_lin, strict=True) if not lin]
    res_xs = [x for x, lin in zip(xs, xs_lin, strict=True) if not lin]
    in_avals = jaxpr.in_avals
    lin_const_avals = [a for a, lin in zip(in_avals, const_lin, strict=False) if lin]
    x_avals = in_avals[num_consts + num_carry :]
    ct_carry = [instantiate_zero(ct) for ct in cts[:num_carry]]
    ct_ys = cts[num_carry:]
    ys_nz = [type(ct) is not Zero for ct in ct_ys]
    y_avals = jaxpr.out_avals[num_carry:]
    ct_consts = [zeros_like_aval(a.to_tangent()) for a in lin_const_avals]

    def body(*values: Any) -> list[Any]:
        it = iter(values)
        rc = [next(it) for _ in res_consts]
        sums = [next(it) for _ in ct_consts]
        cc = [next(it) for _ in ct_carry]
        cy = [
            next(it) if nz else Zero(a.to_tangent()) for nz, a in zip(ys_nz, y_avals, strict=True)
        ]
        rc_it, rx_it = iter(rc), it
        operands = [
            UndefinedPrimal(a) if lin else next(rc_it)
            for a, lin in zip(in_avals, const_lin, strict=False)
        ]
        operands += [UndefinedPrimal(a) for a in in_avals[num_consts : num_consts + num_carry]]
        operands += [
            UndefinedPrimal(a) if lin else next(rx_it)
            for a, lin in zip(x_avals, xs_lin, strict=True)
        ]
        out = backward_pass(jaxpr.jaxpr, jaxpr.consts, operands, [*cc, *cy])
        c_ct, k_ct, x_ct = _split(out, num_consts, num_carry)
        new_sums = [
            instantiate_zero(add_tangents(s, ct))
            for s, ct in zip(
                sums, [c for c, lin in zip(c_ct, const_lin, strict=True) if lin], strict=True
            )
        ]
        return (
            new_sums
            + [instantiate_zero(ct) for ct in k_ct]
            + [instantiate_zero(ct) for ct, lin in zip(x_ct, xs_lin, strict=True) if lin]
        )

    scanned = [ct for ct in ct_ys if type(ct) is not Zero] + res_xs
    operands = [*res_consts, *ct_consts, *ct_carry]
    closed, extra = hoist_consts(_trace_scan_body(body, operands, scanned, jaxpr))
    outs = scan_p.bind(
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
    return [*by_const, *by_carry, *(next(it) if lin else None for lin in xs_lin)]


def _transpose_partly_linear(
    cts: list[Any], args: Any, linear: list[bool], params: dict[str, Any]
) -> list[Any]:
    """Runs what is not linear (a counter, say), then transposes the rest."""
    _, later_args, later_params, out_linear = _split_scan(args, linear, params)
    later_cts = [ct for ct, lin in zip(cts, out_linear, strict=True) if lin]
    later = _transpose(later_cts, *later_args, **later_params)
    by_id = {id(x): ct for x, ct in zip(later_args, later, strict=True) if is_undefined_primal(x)}
    return [by_id.get(id(x)) if lin else None for x, lin in zip(args, linear, strict=True)]


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
    const_b, init_b, xs_b = _split(batched, num_consts, num_carry)
    no_ys = [False] * (len(jaxpr.out_avals) - num_carry)
    carry_b = fixpoint(
        init_b,
        lambda b: batch_jaxpr(jaxpr, size, const_b + b + xs_b, b + no_ys)[1][:num_carry],
    )
    closed, out_b = batch_jaxpr(jaxpr, size, const_b + carry_b + xs_b, carry_b + no_ys)
    closed, extra = hoist_consts(closed)
    consts, init, xs = _split(list(zip(args, dims, strict=True)), num_consts, num_carry)
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


def _shown(params: dict[str, Any]) -> dict[str, Any]:
    order = ("jaxpr", "length", "num_carry", "num_consts", "reverse", "unroll")
    return {k: params[k] for k in order}


scan_p = Primitive(
    "scan",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
    partial_eval=_partial_eval,
    shown=_shown,
)
