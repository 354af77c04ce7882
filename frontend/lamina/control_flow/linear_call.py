"""linear_call: a linear function with the transpose that the user gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.tracing import avals_of, debug_info
from lamina.core import tree
from lamina.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.interpreters.batching import batch_jaxpr, batched_size, batches_first, move_batch
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import instantiate_zero


@api_boundary
def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """fun(residual_args, linear_args), which is linear in the second, with a transpose of its own.

    fun            a function of two pytrees.
    fun_transpose  (residual_args, cotangent) -> the cotangent of linear_args.
    residual_args  what is not differentiated,
    linear_args    and what is.

    Raises TypeError where the transpose gives another structure or other types than linear_args
    have.

    >>> def scale(factor, x):
    ...     multiply = lambda factor, x: factor * x
    ...     return lamina.custom_derivatives.linear_call(multiply, multiply, factor, x)
    >>> print(lamina.linear_transpose(lambda x: scale(3.0, x), 1.0)(2.0))
    (Array(6., dtype=float32, weak_type=True),)
    """
    res, res_tree = tree.flatten(residual_args)
    lin, lin_tree = tree.flatten(linear_args)
    avals = avals_of([*res, *lin], "linear_call")
    n_res = len(res)
    out_tree: list[Any] = []

    def call(*values: Any) -> list[Any]:
        r, x = tree.unflatten(res_tree, values[:n_res]), tree.unflatten(lin_tree, values[n_res:])
        out, treedef = tree.flatten(fun(r, x))
        out_tree.append(treedef)
        return out

    def transposed(*values: Any) -> list[Any]:
        r = tree.unflatten(res_tree, values[:n_res])
        out, treedef = tree.flatten(fun_transpose(r, tree.unflatten(out_tree[0], values[n_res:])))
        if treedef != lin_tree:
            raise TypeError(
                "transpose output pytree structure must match that of linear inputs, got output "
                f"structure {treedef} and input structure {lin_tree}."
            )
        return out

    forward = trace_to_jaxpr(call, avals, debug_info(fun, "linear_call"))
    cts = [a.to_tangent_aval() for a in forward.out_avals]
    backward = trace_to_jaxpr(
        transposed, [*avals[:n_res], *cts], debug_info(fun_transpose, "linear_call transpose")
    )
    wrong = [
        f"{got.str_short()} for {want.str_short()}"
        for got, want in zip(backward.out_avals, avals[n_res:], strict=True)
        if got.shape != want.shape or got.dtype != want.dtype
    ]
    if wrong:
        raise TypeError(f"transpose output does not match the linear inputs: {', '.join(wrong)}")
    outs = _bind(forward, backward, res, lin)
    return tree.unflatten(out_tree[0], outs)


def _bind(forward: ClosedJaxpr, backward: ClosedJaxpr, res: Any, lin: Any) -> list[Any]:
    """Applies the pair; the constants of both programs become residuals, which both take."""
    n_f, n_b = len(forward.consts), len(backward.consts)
    consts = [*forward.consts, *backward.consts]

    def taking_all(closed: ClosedJaxpr, first: int, count: int) -> ClosedJaxpr:
        run = jaxpr_as_fun(hoist_consts(closed)[0])
        avals = [*map(get_aval, consts), *closed.in_avals]
        return trace_to_jaxpr(
            lambda *xs: run(*xs[first : first + count], *xs[len(consts) :]),
            avals,
            closed.jaxpr.debug_info,
        )

    if consts:
        forward, backward = taking_all(forward, 0, n_f), taking_all(backward, n_f, n_b)
    return linear_call_p.bind(
        *consts,
        *res,
        *lin,
        callee=forward,
        transpose=backward,
        num_res=len(consts) + len(res),
    )


def _lowering(ctx: Any, *args: Any, callee: ClosedJaxpr, **_: Any) -> Any:
    return ctx.lower_jaxpr(callee.jaxpr, callee.consts, args)


def _jvp(primals: list[Any], tangents: list[Any], *, num_res: int, **params: Any) -> Any:
    if any(type(t) is not Zero for t in tangents[:num_res]):
        raise NotImplementedError(
            "linear_call was differentiated by its residual arguments or by what its functions "
            "close over; only the linear arguments have a derivative"
        )
    lin = map(instantiate_zero, tangents[num_res:])
    outs = linear_call_p.bind(*primals, num_res=num_res, **params)
    return outs, linear_call_p.bind(*primals[:num_res], *lin, num_res=num_res, **params)


def _transpose(
    cts: list[Any], *args: Any, callee: ClosedJaxpr, transpose: ClosedJaxpr, num_res: int
) -> list[Any]:
    # The transpose of the transpose is the function.
    found = linear_call_p.bind(
        *args[:num_res],
        *map(instantiate_zero, cts),
        callee=transpose,
        transpose=callee,
        num_res=num_res,
    )
    return [None] * num_res + found


def _batching(
    args: list[Any],
    dims: list[Any],
    *,
    callee: ClosedJaxpr,
    transpose: ClosedJaxpr,
    num_res: int,
) -> Any:
    size = batched_size(args, dims)
    res = batches_first(args[:num_res], dims[:num_res])
    lin = [move_batch(x, d, size) for x, d in zip(args[num_res:], dims[num_res:], strict=True)]
    by_lane = [d is not None for d in dims[:num_res]]
    forward, _ = batch_jaxpr(callee, size, by_lane + [True] * len(lin), True)
    n_out = len(callee.out_avals)
    backward, _ = batch_jaxpr(transpose, size, by_lane + [True] * n_out, True)
    outs = _bind(forward, backward, res, lin)
    return outs, [0] * len(outs)


linear_call_p = Primitive(
    "linear_call",
    multiple_results=True,
    abstract_eval=lambda *_, callee, **__: callee.out_avals,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
)
