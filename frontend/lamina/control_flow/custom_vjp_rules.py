"""The primitives of custom_vjp: the call, and the linear map that only its transpose knows.

Differentiating the call runs the fwd rule, and binds the linear map to its residuals and the
tangents. Transposing the map runs the bwd rule; nothing else can be done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.custom_rule import (
    BatchedResults,
    batched_call,
    call_types,
    lower_call,
    run_call,
    transpose_of_call,
    without_consts,
)
from lamina.control_flow.custom_vjp_remat import fwd_or_function
from lamina.control_flow.varying import aligns_call, as_given
from lamina.core import axes, dtypes, tree
from lamina.core.avals import ShapedArray
from lamina.core.axes import Axis
from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero
from lamina.core.trace import get_aval
from lamina.interpreters.backward_logs import collected, log
from lamina.interpreters.batching import batch_flat, batched_size, batches_first, move_batch

Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
"""(residuals, cotangents of the results) -> cotangents of the arguments; either may be Zero."""
Forward = Callable[[Sequence[Any], Sequence[bool]], tuple[list[Any], list[Any], Backward]]
"""(arguments, which are differentiated) -> (results, residuals, what is to be done with them)."""


class CustomVJPException(Exception):
    """A custom_vjp function was differentiated by what it closes over."""

    def __init__(self) -> None:
        super().__init__(
            "Detected differentiation of a custom_vjp function with respect to a closed-over value. "
            "That isn't supported because the custom VJP rule only specifies how to differentiate "
            "the custom_vjp function with respect to explicit input parameters. Try passing the "
            "closed-over value into the custom_vjp function as an argument, and adapting the "
            "custom_vjp fwd and bwd rules."
        )


def _jvp(
    primals: list[Any],
    tangents: list[Any],
    *,
    call_jaxpr: Any,
    fwd: Forward,
    num_consts: int,
    name: str,
    optimize_remat: bool,
) -> Any:
    if any(type(t) is not Zero for t in tangents[:num_consts]):
        raise CustomVJPException
    consts, primals, tangents = primals[:num_consts], primals[num_consts:], tangents[num_consts:]
    nonzero = [type(t) is not Zero for t in tangents]
    if optimize_remat and isinstance(call_jaxpr, ClosedJaxpr):
        outs, residuals, backward = fwd_or_function(
            lambda *xs: fwd(xs, nonzero), call_jaxpr, consts, primals, name
        )
    else:
        outs, residuals, backward = fwd(primals, nonzero)
    out_avals = tuple(get_aval(o).to_tangent_aval() for o in outs)
    dots = iter(
        custom_lin_p.bind(
            *residuals,
            *(t for t in tangents if type(t) is not Zero),
            num_res=len(residuals),
            backward=backward,
            nonzero=tuple(nonzero),
            out_avals=out_avals,
            name=name,
        )
    )
    return outs, [Zero(a) if a.dtype == dtypes.float0 else next(dots) for a in out_avals]


def _batching(
    args: list[Any],
    dims: list[Any],
    *,
    call_jaxpr: ClosedJaxpr,
    fwd: Forward,
    num_consts: int,
    name: str,
    optimize_remat: bool,
) -> Any:
    size = batched_size(args, dims)
    moved = batches_first(args, dims)
    at = [None if d is None else 0 for d in dims]
    closed, out_batched = batched_call(call_jaxpr, size, tuple(d is not None for d in dims))
    results = BatchedResults(out_batched, size, name)
    arg_dims = at[num_consts:]
    axis = axes.batching()  # what the user's rules, run later, may name

    def batched_fwd(primals: Sequence[Any], nonzero: Sequence[bool]) -> Any:
        made: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            outs, residuals, backward = fwd(values, nonzero)
            made[:] = [len(outs), backward]
            return [*outs, *residuals]

        found, found_dims = batch_flat(flat, primals, arg_dims, axis)
        n, backward = made
        results.join(found_dims[:n])
        outs = results.placed(found[:n], found_dims[:n], range(n))
        in_batched = [d is not None for d in arg_dims]
        return outs, found[n:], _batched_backward(backward, found_dims[n:], in_batched, results.batched, axis)

    call_jaxpr, extra = without_consts(closed)
    outs = custom_vjp_call_p.bind(
        *extra,
        *moved,
        call_jaxpr=call_jaxpr,
        fwd=batched_fwd,
        num_consts=num_consts + len(extra),
        name=name,
        optimize_remat=optimize_remat,
    )
    return outs, results.dims()


def _batched_backward(
    backward: Backward,
    res_dims: Sequence[Any],
    in_batched: Sequence[bool],
    out_batched: Sequence[bool],
    axis: Axis,
) -> Backward:
    """backward on batches: cotangents of results are batched where these are; those of arguments that
    are the same for the whole batch are summed over it."""

    def batched(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        from lamina import lax

        zeros = [type(ct) is Zero for ct in cotangents]
        given = [ct for ct in cotangents if type(ct) is not Zero]
        none: list[bool] = []
        logs: list[Any] = []  # their structure

        def flat(*values: Any) -> list[Any]:
            there = iter(values[len(residuals) :])
            cts = [
                (Zero(_one_lane(ct.aval)) if b else ct) if z else next(there)
                for ct, z, b in zip(cotangents, zeros, out_batched, strict=True)
            ]
            with collected() as entries:
                outs = backward(values[: len(residuals)], cts)
            logged, structure = tree.flatten(entries)
            logs[:] = [structure] if entries else []
            none[:] = [type(ct) is Zero for ct in outs]
            return [ct for ct in outs if type(ct) is not Zero] + logged

        ct_dims = [0 if b else None for b, z in zip(out_batched, zeros, strict=True) if not z]
        found, dims = batch_flat(flat, [*residuals, *given], [*res_dims, *ct_dims], axis)
        each = iter(zip(found, dims, strict=True))
        out: list[Any] = []
        for is_zero, by_lane in zip(none, in_batched, strict=True):
            if is_zero:
                out.append(None)
                continue
            ct, dim = next(each)
            if by_lane:
                out.append(move_batch(ct, dim, axis.size))
            else:  # what no lane has of its own is that of the whole batch
                out.append(ct if dim is None else lax.reduce_sum(ct, axes=(dim,)))
        if logs:
            log(tree.unflatten(logs[0], [move_batch(x, dim, axis.size) for x, dim in each]))
        return out

    return batched


def _one_lane(aval: ShapedArray) -> ShapedArray:
    return aval.without_axis(0)


custom_vjp_call_p = Primitive(
    "custom_vjp_call",
    multiple_results=True,
    align=aligns_call("call_jaxpr"),
    abstract_eval=call_types,
    lowering=lower_call,
    jvp=_jvp,
    transpose=transpose_of_call,
    batching=_batching,
    impl=run_call,
    shown=lambda params: {"name": params["name"], "call_jaxpr": params["call_jaxpr"]},
)


# ---- the linear map ----------------------------------------------------------------------------
def _refuse(*_: Any, name: str, **__: Any) -> Any:
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function: "
        f"{name} has a rule for reverse mode alone."
    )


def _lin_abstract_eval(*_: Any, out_avals: Any, **__: Any) -> list[Any]:
    return [a for a in out_avals if a.dtype != dtypes.float0]


def _lin_transpose(
    cts: list[Any],
    *operands: Any,
    num_res: int,
    backward: Backward,
    nonzero: tuple[bool, ...],
    out_avals: tuple[ShapedArray, ...],
    **_: Any,
) -> list[Any]:
    given = iter(cts)
    full = [Zero(a) if a.dtype == dtypes.float0 else next(given) for a in out_avals]
    found = backward(operands[:num_res], full)
    return [None] * num_res + [ct for ct, nz in zip(found, nonzero, strict=True) if nz]


def _lin_batching(
    args: list[Any],
    dims: list[Any],
    *,
    num_res: int,
    backward: Backward,
    nonzero: tuple[bool, ...],
    out_avals: tuple[ShapedArray, ...],
    name: str,
) -> Any:
    size = batched_size(args, dims)
    moved = batches_first(args[num_res:], dims[num_res:])
    lin = iter(dims[num_res:])
    in_batched = [nz and next(lin) is not None for nz in nonzero]
    outs = custom_lin_p.bind(
        *args[:num_res],
        *moved,
        num_res=num_res,
        backward=_batched_backward(
            backward, dims[:num_res], in_batched, [True] * len(out_avals), axes.batching()
        ),
        nonzero=nonzero,
        out_avals=tuple(a.with_axis(0, size, axes.batching().spmd_name) for a in out_avals),
        name=name,
    )
    return outs, [0] * len(outs)


custom_lin_p = Primitive(
    "custom_lin",
    multiple_results=True,
    align=as_given,
    abstract_eval=_lin_abstract_eval,
    lowering=lambda ctx, *args, **params: _refuse(**params),
    jvp=lambda primals, tangents, **params: _refuse(**params),
    transpose=_lin_transpose,
    batching=_lin_batching,
    impl=_refuse,
    shown=lambda params: {"name": params["name"], "num_res": params["num_res"]},
)
