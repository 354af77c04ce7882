"""custom_jvp: a function whose forward derivative the user gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.core import dtypes, tree
from lamina.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from lamina.core.primitive import NOT_LINEAR, Primitive
from lamina.core.source_info import at_places
from lamina.core.tangents import Zero
from lamina.core.trace import get_aval, is_evaluating
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.batching import batch_flat, batch_jaxpr, batched_size, move_batch
from lamina.interpreters.tangents import instantiate_zero


class custom_jvp:
    """Wraps a function so that `defjvp` (or `defjvps`) says how to differentiate it.

        @custom_jvp
        def f(x, y): return sin(x) * y

        @f.defjvp
        def f_jvp(primals, tangents):
            x, y = primals
            x_dot, y_dot = tangents
            return f(x, y), cos(x) * x_dot * y + sin(x) * y_dot

    nondiff_argnums  positions that hold static Python values; the rule takes them first.
    Raises AttributeError when called without a rule.
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        self.fun = fun
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.jvp: Callable[..., Any] | None = None
        functools.update_wrapper(self, fun)

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule: jvp(primals, tangents) -> (out, out tangent)."""
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets one rule per argument: jvp(tangent, out, *primals) -> its part of the out tangent."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def rule(primals: Any, tangents: Any) -> Any:
            from lamina import lax

            out = self(*primals)
            parts = [j(t, out, *primals) for j, t in zip(jvps, tangents, strict=True) if j]
            total = parts[0]
            for part in parts[1:]:
                total = tree.map(lax.add, total, part)
            return out, total

        self.jvp = rule

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {self.__name__} using defjvp."  # type: ignore[attr-defined]
            )
        args = _resolve_kwargs(self.fun, args, kwargs)
        if is_evaluating():
            return self.fun(*args)
        static = {i: args[i] for i in self.nondiff_argnums}
        dynamic = [x for i, x in enumerate(args) if i not in static]
        fun, jvp = self.fun, self.jvp

        def of_dynamic(*values: Any) -> Any:
            given = iter(values)
            return fun(*[static[i] if i in static else next(given) for i in range(len(args))])

        leaves, in_tree = tree.flatten(tuple(dynamic))
        closed, consts, out_tree = trace_function(
            of_dynamic,
            in_tree,
            avals_of(leaves, self.__name__),  # type: ignore[attr-defined]
            debug_info(self.fun, "custom_jvp"),
        )

        def flat_jvp(
            primals: Sequence[Any], tangents: Sequence[Any]
        ) -> tuple[list[Any], list[Any]]:
            p = tree.unflatten(in_tree, primals[len(consts) :])
            t = tree.unflatten(in_tree, tangents[len(consts) :])
            with at_places() as at:
                at(None)  # the rule is the user's code: its lines are the places
                result = jvp(*static.values(), p, t)
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(
                    f"Custom JVP rule {getattr(jvp, '__name__', jvp)} for function {self.__name__} "  # type: ignore[attr-defined]
                    "must produce a pair (list or tuple of length two) representing primal and "
                    f"tangent outputs, but got {result}."
                )
            outs, tree_out = tree.flatten(result[0])
            dots, tree_dot = tree.flatten(result[1])
            if tree_out != tree_dot or tree_out != out_tree:
                raise TypeError(
                    f"Custom JVP rule for function {self.__name__} must produce primal and tangent "  # type: ignore[attr-defined]
                    f"outputs with the structure of the function's result, {out_tree}, but got "
                    f"{tree_out} and {tree_dot}."
                )
            return outs, dots

        outs = custom_jvp_call_p.bind(*consts, *leaves, call_jaxpr=closed, jvp_fun=flat_jvp,
                                      name=self.__name__)  # type: ignore[attr-defined] # fmt: skip
        return tree.unflatten(out_tree, outs)


def _resolve_kwargs(fun: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, ...]:
    if not kwargs:
        return args
    import inspect

    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError("keyword arguments could not be resolved to positions")
    return bound.args


def _abstract_eval(*_: Any, call_jaxpr: ClosedJaxpr, **__: Any) -> list[Any]:
    return call_jaxpr.out_avals


def _lowering(ctx: Any, *args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> Any:
    return ctx.lower_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, args)


def _jvp(primals: list[Any], tangents: list[Any], *, jvp_fun: Any, **_: Any) -> Any:
    outs, dots = jvp_fun(primals, [instantiate_zero(t) for t in tangents])
    return outs, [
        t if dtypes.is_inexact(get_aval(o).dtype) else Zero(get_aval(o).to_tangent())
        for o, t in zip(outs, dots, strict=True)
    ]


_batched = cache_on_jaxpr(lambda closed, n, batched: batch_jaxpr(closed, n, batched, True))


def _batching(
    args: list[Any], dims: list[Any], *, call_jaxpr: ClosedJaxpr, jvp_fun: Any, name: str
) -> Any:
    size = batched_size(args, dims)
    moved = [x if d is None else move_batch(x, d, size) for x, d in zip(args, dims, strict=True)]
    at = [None if d is None else 0 for d in dims]
    closed, _ = _batched(call_jaxpr, size, tuple(d is not None for d in dims))

    def batched_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        def flat(*values: Any) -> list[Any]:
            n = len(primals)
            outs, dots = jvp_fun(values[:n], values[n:])
            return [*outs, *dots]

        # Tangents are batched where their primals are: a Zero was made full before this point.
        outs, out_dims = batch_flat(flat, [*primals, *tangents], at + at, size)
        outs = [move_batch(x, d, size) for x, d in zip(outs, out_dims, strict=True)]
        half = len(outs) // 2
        return outs[:half], outs[half:]

    outs = custom_jvp_call_p.bind(
        *closed.consts,
        *moved,
        call_jaxpr=_without_consts(closed),
        jvp_fun=_skip_consts(batched_jvp, len(closed.consts)),
        name=name,
    )
    return outs, [0] * len(outs)


def _without_consts(closed: ClosedJaxpr) -> ClosedJaxpr:
    from lamina.control_flow.residuals import hoist_consts

    return hoist_consts(closed)[0]


def _skip_consts(jvp_fun: Any, n: int) -> Any:
    return (lambda primals, tangents: jvp_fun(primals[n:], tangents[n:])) if n else jvp_fun


def _impl(*args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return jaxpr_as_fun(call_jaxpr)(*args)


custom_jvp_call_p = Primitive(
    "custom_jvp_call",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batching=_batching,
    impl=_impl,
    shown=lambda params: {"name": params["name"], "call_jaxpr": params["call_jaxpr"]},
)
