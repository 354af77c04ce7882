"""optimize_remat of custom_vjp: the function runs where residuals of its fwd rule are not read.

So it is in the first pass over a checkpoint. The function may cost less than its fwd rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.custom_rule import without_consts
from lamina.control_flow.jit_call import jit_p
from lamina.control_flow.varying import as_given
from lamina.core.jaxpr import ClosedJaxpr, JaxprEqn, close_jaxpr, convert_constvars
from lamina.core.primitive import NOT_LINEAR, Primitive
from lamina.core.trace import get_aval
from lamina.interpreters.batching import batch_jaxpr, batched_size, batches_first
from lamina.interpreters.staging import trace_to_jaxpr


def fwd_or_function(
    fwd: Callable[..., tuple[list[Any], list[Any], Any]],
    function: ClosedJaxpr,
    consts: Sequence[Any],
    primals: Sequence[Any],
    name: str,
) -> tuple[list[Any], list[Any], Any]:
    """fwd(*primals), where it is left open until its residuals are found to be read or not whether
    function(*consts, *primals) runs in its place."""
    made: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        outs, residuals, rest = fwd(*xs)
        made[:] = len(outs), rest
        return [*outs, *residuals]

    traced = trace_to_jaxpr(flat, [get_aval(x) for x in primals])
    found = remat_opt_p.bind(
        *traced.consts,
        *consts,
        *primals,
        fwd_jaxpr=close_jaxpr(convert_constvars(traced.jaxpr)),
        fun_jaxpr=function,
        num_fwd_consts=len(traced.consts),
        num_fun_consts=len(consts),
        name=name,
    )
    n, rest = made
    return found[:n], found[n:], rest


def _for_fwd(xs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Of operands, or what goes with them, those of fwd."""
    n = params["num_fwd_consts"]
    return [*xs[:n], *xs[n + params["num_fun_consts"] :]]


def _lowering(ctx: Any, *args: Any, **params: Any) -> Any:
    return ctx.call(params["fwd_jaxpr"], params["name"], _for_fwd(args, params))


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    assert callable(jit_p.jvp)
    return jit_p.jvp(
        _for_fwd(primals, params),
        _for_fwd(tangents, params),
        jaxpr=params["fwd_jaxpr"],
        name=params["name"],
    )


def _batching(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    size = batched_size(args, dims)
    moved = batches_first(args, dims)
    batched = [d is not None for d in dims]
    n_fwd, n_fun = params["num_fwd_consts"], params["num_fun_consts"]
    fwd, _ = batch_jaxpr(params["fwd_jaxpr"], size, _for_fwd(batched, params), True)
    fun, _ = batch_jaxpr(params["fun_jaxpr"], size, batched[n_fwd:], True)
    fwd, fwd_consts = without_consts(fwd)
    fun, fun_consts = without_consts(fun)
    outs = remat_opt_p.bind(
        *fwd_consts,
        *moved[:n_fwd],
        *fun_consts,
        *moved[n_fwd:],
        fwd_jaxpr=fwd,
        fun_jaxpr=fun,
        num_fwd_consts=n_fwd + len(fwd_consts),
        num_fun_consts=n_fun + len(fun_consts),
        name=params["name"],
    )
    return outs, [0] * len(outs)


def _dce(eqn: JaxprEqn, used: list[bool]) -> JaxprEqn:
    fun = eqn.params["fun_jaxpr"]
    n = len(fun.out_avals)
    if any(used[n:]):
        return eqn
    operands = eqn.invars[eqn.params["num_fwd_consts"] :]
    call = eqn.replace(
        primitive=jit_p,
        invars=operands,
        outvars=eqn.outvars[:n],
        params={
            "jaxpr": fun,
            "name": eqn.params["name"],
            "donated_invars": (False,) * len(operands),
            "keep_unused": False,
        },
    )
    assert callable(jit_p.dce)
    return jit_p.dce(call, used[:n])


def _impl(*args: Any, **params: Any) -> list[Any]:
    assert callable(jit_p.impl)
    return jit_p.impl(*_for_fwd(args, params), jaxpr=params["fwd_jaxpr"], name=params["name"])


remat_opt_p = Primitive(
    "remat_opt",
    multiple_results=True,
    align=as_given,
    abstract_eval=lambda *_, fwd_jaxpr, **__: fwd_jaxpr.out_avals,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=_batching,
    dce=_dce,
    impl=_impl,
    shown=lambda params: {
        k: params[k] for k in ("name", "fwd_jaxpr", "fun_jaxpr", "num_fwd_consts", "num_fun_consts")
    },
)
