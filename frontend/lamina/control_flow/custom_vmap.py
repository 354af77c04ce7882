"""custom_vmap: a function whose batching the user gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.custom_rule import run_rule, setter_of_inner
from lamina.control_flow.static_arguments import resolve_keywords
from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.control_flow.varying import aligns_call
from lamina.core import tree
from lamina.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from lamina.core.primitive import NOT_LINEAR, Primitive
from lamina.core.tangents import Zero
from lamina.core.trace import get_aval, is_evaluating, set_current_trace
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import function_name, update_wrapper
from lamina.interpreters.batching import batched_size, batches_first, move_batch
from lamina.interpreters.jvp import jvp_flat, jvp_jaxpr
from lamina.interpreters.tangents import instantiate_zero

FlatRule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]
"""(batch size, which arguments are batched, arguments) -> (results, which of them are)."""


class custom_vmap:
    """Wraps a function so that `def_vmap` says how to run it on batches.

        @custom_vmap
        def f(x, y): return x + y

        @f.def_vmap
        def f_vmap(axis_size, in_batched, x, y):     # batches have their dimension in front
            return x + y, in_batched[0] or in_batched[1]

    The rule gives the result, and a tree of flags that says which of its leaves are batched. Raises
    AttributeError when it is mapped without a rule. In reverse mode the function is differentiated
    as it is written.
    """

    __name__: str

    def __init__(self, fun: Callable[..., Any]) -> None:
        update_wrapper(self, fun).__name__ = function_name(fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule: vmap_rule(axis_size, in_batched, *args) -> (out, out_batched)."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __getattr__(self, name: str) -> Any:
        return setter_of_inner(self, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = resolve_keywords(self.fun, args, kwargs, "custom_vmap")
        if is_evaluating():
            return self.fun(*args)
        leaves, in_tree = tree.flatten(args)
        closed, consts, out_tree = trace_function(
            self.fun, in_tree, avals_of(leaves, self.__name__), debug_info(self.fun, "custom_vmap")
        )
        n = len(consts)

        def rule(size: int, batched: Sequence[bool], values: Sequence[Any]) -> Any:
            if self.vmap_rule is None:
                raise AttributeError(
                    f"No batching rule defined for custom_vmap function {self.__name__} using "
                    "def_vmap."
                )
            if any(batched[:n]):
                raise TypeError(
                    f"custom_vmap function {self.__name__} closes over a value that is batched; pass "
                    "it as an argument"
                )
            flags = list(tree.unflatten(in_tree, list(batched[n:])))  # of each argument
            given = tree.unflatten(in_tree, values[n:])
            return _flat_result(self, run_rule(self.vmap_rule, size, flags, *given), out_tree)

        outs = custom_vmap_call_p.bind(*consts, *leaves, call=closed, rule=rule, name=self.__name__)
        return tree.unflatten(out_tree, outs)


def _flat_result(custom: custom_vmap, result: Any, out_tree: Any) -> tuple[list[Any], list[bool]]:
    rule = getattr(custom.vmap_rule, "__name__", custom.vmap_rule)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(
            f"custom_vmap rule {rule} must produce a pair (list or tuple of length two): the result "
            f"and which of it is batched, but got {result}"
        )
    outs, found = tree.flatten(result[0])
    flags, flags_tree = tree.flatten(result[1])
    if found != out_tree:
        raise ValueError(
            f"structure of output returned by custom vmap rule does not match that of original "
            f"custom-vmapped function.\nOriginal output:\n  {out_tree}\nRule output:\n  {found}"
        )
    if flags_tree != out_tree:
        raise ValueError(
            "structure of output value and output batching specification returned by custom vmap "
            f"rule do not match.\nOutput values: {found}\nBatching spec: {flags_tree}"
        )
    return outs, flags


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """f, which vmap runs on one example after the other, by lax.map: for what is not to be
    vectorised.

    f  a function of pytrees of arrays.

    >>> square = lamina.custom_batching.sequential_vmap(lambda x: x * x)
    >>> print(lamina.vmap(square)(jnp.arange(3)))
    [0 1 4]
    """
    from lamina.control_flow.loops import map as lax_map

    wrapped = custom_vmap(f)

    @wrapped.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> Any:
        leaves, treedef = tree.flatten(args)
        flags = tree.leaves(in_batched)

        def one(mapped: list[Any]) -> Any:
            given = iter(mapped)
            full = [next(given) if b else x for x, b in zip(leaves, flags, strict=True)]
            return f(*tree.unflatten(treedef, full))

        out = lax_map(one, [x for x, b in zip(leaves, flags, strict=True) if b])
        return out, tree.map(lambda _: True, out)

    return wrapped


# ---- rules -------------------------------------------------------------------------------------
def _lowering(ctx: Any, *args: Any, call: ClosedJaxpr, **_: Any) -> Any:
    return ctx.lower_jaxpr(call.jaxpr, call.consts, args)


def _impl(*args: Any, call: ClosedJaxpr, **_: Any) -> list[Any]:
    return jaxpr_as_fun(call)(*args)


def _batching(
    args: list[Any], dims: list[Any], *, call: ClosedJaxpr, rule: FlatRule, name: str
) -> Any:
    size = batched_size(args, dims)
    moved = batches_first(args, dims)
    outs, batched = rule(size, [d is not None for d in dims], moved)
    return outs, [0 if b else None for b in batched]


def _jvp(
    primals: list[Any], tangents: list[Any], *, call: ClosedJaxpr, rule: FlatRule, name: str
) -> Any:
    nonzero = [type(t) is not Zero for t in tangents]
    both, out_nonzero = jvp_jaxpr(call, nonzero, False)
    n_consts, n, n_out = len(both.consts), len(primals), len(out_nonzero)

    def jvp_rule(size: int, batched: Sequence[bool], values: Sequence[Any]) -> Any:
        batched, values = batched[n_consts:], values[n_consts:]
        given = iter(zip(values[n:], batched[n:], strict=True))
        ps, ts, flags = [], [], []
        for p, by_lane, nz in zip(values[:n], batched[:n], nonzero, strict=True):
            t, t_by_lane = next(given) if nz else (None, False)
            flags.append(by_lane or t_by_lane)
            ps.append(move_batch(p, None, size) if t_by_lane and not by_lane else p)
            if nz and by_lane and not t_by_lane:
                t = move_batch(t, None, size)
            ts.append(t if nz else Zero(get_aval(ps[-1]).to_tangent_aval()))
        out_flags: list[bool] = []

        def of_primals(*xs: Any) -> list[Any]:
            outs, found = rule(size, flags, xs)
            out_flags[:] = found
            return outs

        outs, dots = jvp_flat(of_primals, ps, ts)
        kept = [
            (instantiate_zero(t), b)
            for t, b, nz in zip(dots, out_flags, out_nonzero, strict=True)
            if nz
        ]
        return [*outs, *(t for t, _ in kept)], [*out_flags, *(b for _, b in kept)]

    outs = custom_vmap_call_p.bind(
        *both.consts,
        *primals,
        *(t for t in tangents if type(t) is not Zero),
        call=_hoisted(both),
        rule=jvp_rule,
        name=name,
    )
    given = iter(outs[n_out:])
    return outs[:n_out], [
        next(given) if nz else Zero(a.to_tangent_aval())
        for nz, a in zip(out_nonzero, call.out_avals, strict=True)
    ]


def _hoisted(closed: ClosedJaxpr) -> ClosedJaxpr:
    from lamina.control_flow.residuals import hoist_consts

    return hoist_consts(closed)[0]


def _partial_eval(trace: Any, args: Any, params: dict[str, Any]) -> list[Any]:
    """Splits the function's own equations: the linear part has no batching rule of the user's."""
    with set_current_trace(trace):
        return jaxpr_as_fun(params["call"])(*args)


custom_vmap_call_p = Primitive(
    "custom_vmap_call",
    multiple_results=True,
    align=aligns_call("call"),
    abstract_eval=lambda *_, call, **__: call.out_avals,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=_batching,
    partial_eval=_partial_eval,
    impl=_impl,
    shown=lambda params: {"name": params["name"], "call": params["call"]},
)
