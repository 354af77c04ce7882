"""custom_gradient and closure_convert: rules that close over values of the forward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.control_flow.custom_vjp import custom_vjp
from lamina.control_flow.tracing import avals_of, debug_info
from lamina.core import dtypes, tree
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from lamina.core.trace import Tracer, get_aval
from lamina.core.wrapping import wraps
from lamina.interpreters.staging import trace_to_jaxpr


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function from one that gives (result, gradient rule); the rule takes the result's cotangent
    and gives those of the arguments: a tuple, or the one alone.

    The rule may use all that fun computed: what it reads is kept.
    """

    @custom_vjp
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)[0]

    def fwd(*args: Any, **kwargs: Any) -> Any:
        out, rule = fun(*args, **kwargs)
        leaves, out_tree = tree.flatten(out)
        cts = [get_aval(x).to_tangent_aval() for x in leaves]
        in_tree: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            given = rule(tree.unflatten(out_tree, values))
            found, treedef = tree.flatten(given if isinstance(given, tuple) else (given,))
            in_tree.append(treedef)
            return found

        closed = trace_to_jaxpr(flat, cts, debug_info(rule, "custom_gradient"))
        return out, _Rule(closed.jaxpr, in_tree[0], closed.consts)

    def bwd(kept: _Rule, cotangents: Any) -> Any:
        outs = eval_jaxpr(kept.jaxpr, kept.consts, *tree.leaves(cotangents))
        return tree.unflatten(kept.in_tree, outs)

    wrapped.defvjp(fwd, bwd)
    return wraps(fun)(lambda *args, **kwargs: wrapped(*args, **kwargs))


class _Rule:
    """A gradient rule as residuals: its program is static, what it closes over are the leaves."""

    def __init__(self, jaxpr: Jaxpr, in_tree: Any, consts: Any) -> None:
        self.jaxpr, self.in_tree, self.consts = jaxpr, in_tree, list(consts)


tree.register_node(
    _Rule,
    lambda rule: (rule.consts, (rule.jaxpr, rule.in_tree)),
    lambda static, consts: _Rule(static[0], static[1], consts),
)


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """fun with what it closes over, and could be differentiated by, as further arguments: a function
    of (*args, *consts), and those consts. For functions handed to a custom_vjp function.

    example_args  arguments (or ShapeDtypeStructs) that say the types.
    Raises TypeError when the result is called with arguments of another structure.
    """
    leaves, in_tree = tree.flatten(example_args)
    out_tree: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        out, treedef = tree.flatten(fun(*tree.unflatten(in_tree, values)))
        out_tree.append(treedef)
        return out

    avals = [getattr(x, "aval", None) or get_aval(x) for x in leaves]
    closed: ClosedJaxpr = trace_to_jaxpr(flat, avals, debug_info(fun, "closure_convert"))
    hoisted = [
        isinstance(c, Tracer) and dtypes.is_inexact(get_aval(c).dtype) for c in closed.consts
    ]

    def converted(*args_and_consts: Any) -> Any:
        n = len(args_and_consts) - sum(hoisted)
        args, given = args_and_consts[:n], iter(args_and_consts[n:])
        values, args_tree = tree.flatten(args)
        if args_tree != in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the same Pytree "
                f"structure as the example arguments passed when closure_convert was called: "
                f"expected {in_tree}, but got {args_tree}"
            )
        avals_of(values, "closure_convert")
        consts = [next(given) if h else c for h, c in zip(hoisted, closed.consts, strict=True)]
        return tree.unflatten(out_tree[0], eval_jaxpr(closed.jaxpr, consts, *values))

    return converted, [c for c, h in zip(closed.consts, hoisted, strict=True) if h]
