"""custom_gradient and closure_convert: rules that close over values of the forward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.custom_rule import SymbolicZero
from lamina.control_flow.custom_vjp import custom_vjp, custom_vjp_primal_tree_values
from lamina.control_flow.tracing import avals_of, debug_info
from lamina.core import dtypes, tree
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from lamina.core.tangents import Zero
from lamina.core.trace import Tracer, get_aval
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import wraps
from lamina.interpreters.accumulators import NullAccum
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import zeros_like_aval


@api_boundary
def custom_gradient(
    fun: Callable[..., Any] | None = None,
    *,
    with_logs: bool = False,
    remat: bool = False,
    with_accums: Any = None,
) -> Any:
    """A function from one that gives (result, gradient rule); the rule takes the result's cotangent
    and gives those of the arguments: a tuple, or the one alone. Without fun, a decorator.

    The rule may use all that fun computed: what it reads is kept.

    with_logs    the rule gives (cotangents, logs), as in `custom_vjp.defvjp_with_logs`.
    remat        in place of the rule fun gives a function of its arguments that gives (result, rule);
                 what that reads of fun is kept, as in `custom_vjp.defremat`.
    with_accums  the rule takes (cotangent, *places), as in `custom_vjp.defvjp_with_accums`. Says of
                 what class each place is, hijax.ValAccum or RefAccum: a prefix of the arguments' tree.

    Raises NotImplementedError for with_accums and remat together.

    >>> f = lamina.custom_gradient(lambda x: (x**2, lambda g: g * x))
    >>> lamina.grad(f)(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    if fun is None:
        return functools.partial(
            custom_gradient, with_logs=with_logs, remat=remat, with_accums=with_accums
        )
    if with_accums is not None and remat:
        raise NotImplementedError("custom_gradient takes with_accums or remat, not both")
    rule_of = fun

    @custom_vjp
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return rule_of(*args, **kwargs)[0]

    def fwd(*args: Any, **kwargs: Any) -> Any:
        return _with_rule(*rule_of(*args, **kwargs))

    def bwd(kept: _Traced, cotangents: Any) -> Any:
        given, *logs = kept(cotangents) if with_logs else (kept(cotangents),)
        return (_as_tuple(given), *logs) if with_logs else _as_tuple(given)

    if with_accums is not None:
        wrapped.defvjp_with_accums(*_rules_with_places(rule_of, with_accums), symbolic_zeros=True)
    elif remat:

        def first(*args: Any) -> Any:
            out, again = rule_of(*args)
            avals = [get_aval(x) for x in tree.leaves(args)]
            step = lambda *xs: _with_rule(*again(*xs))  # noqa: E731
            return out, _Traced.of(step, tree.structure(args), avals)

        define = wrapped.defremat_with_logs if with_logs else wrapped.defremat
        define(first, lambda kept, *args: kept(*args), bwd)
    else:
        (wrapped.defvjp_with_logs if with_logs else wrapped.defvjp)(fwd, bwd)
    return wraps(rule_of)(lambda *args, **kwargs: wrapped(*args, **kwargs))


def _as_tuple(cotangents: Any) -> tuple[Any, ...]:
    return cotangents if isinstance(cotangents, tuple) else (cotangents,)


def _with_rule(out: Any, rule: Callable[[Any], Any]) -> tuple[Any, _Traced]:
    """A result, and its gradient rule as residuals."""
    leaves, structure = tree.flatten((out,))
    cotangents = [get_aval(x).to_tangent_aval() for x in leaves]
    return out, _Traced.of(rule, structure, cotangents)


def _rules_with_places(
    fun: Callable[..., Any], kinds: Any
) -> tuple[Callable[..., Any], Callable[..., None]]:
    """fwd and bwd of a function whose rule puts cotangents into places of these kinds."""

    def fwd(*primals: Any) -> Any:
        args = custom_vjp_primal_tree_values(primals)
        perturbed = [p.perturbed for p in tree.leaves(primals)]
        given, args_tree = tree.flatten(args)
        avals = [get_aval(x).to_tangent_aval() for x in given]
        classes = tree.broadcast_prefix(kinds, args)
        out, rule = fun(*args)

        def run(cotangent: Any) -> Any:
            places = [
                (c if p else NullAccum)(a) for c, p, a in zip(classes, perturbed, avals, strict=True)
            ]
            logs = rule(cotangent, *tree.unflatten(args_tree, places))
            sums = [place.freeze() for place in places]
            return logs, [None if isinstance(x, Zero) else x for x in sums]

        return _with_rule(out, run)

    def bwd(kept: _Traced, cotangents: Any, *places: Any) -> Any:
        symbolic = tree.leaves(cotangents, is_leaf=lambda x: isinstance(x, SymbolicZero))
        given = [zeros_like_aval(x.aval) if isinstance(x, SymbolicZero) else x for x in symbolic]
        logs, sums = kept.on_leaves(given)
        for place, x in zip(tree.leaves(places), sums, strict=True):
            place.accum(x)
        return logs

    return fwd, bwd


class _Traced:
    """A function as residuals: its program is static, what it closes over are the leaves."""

    def __init__(self, jaxpr: Jaxpr, out_tree: Any, consts: Sequence[Any]) -> None:
        self.jaxpr, self.out_tree, self.consts = jaxpr, out_tree, list(consts)

    @classmethod
    def of(cls, fun: Callable[..., Any], in_tree: Any, avals: Sequence[Any]) -> _Traced:
        """A function of arguments of this structure, with leaves of these types."""
        found: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            leaves, structure = tree.flatten(fun(*tree.unflatten(in_tree, values)))
            found[:] = [structure]
            return leaves

        closed = trace_to_jaxpr(flat, avals, debug_info(fun, "custom_gradient"))
        return cls(closed.jaxpr, found[0], closed.consts)

    def __call__(self, *args: Any) -> Any:
        return self.on_leaves(tree.leaves(args))

    def on_leaves(self, leaves: Sequence[Any]) -> Any:
        """The result for arguments with these leaves."""
        return tree.unflatten(self.out_tree, eval_jaxpr(self.jaxpr, self.consts, *leaves))


tree.register_node(
    _Traced,
    lambda traced: (traced.consts, (traced.jaxpr, traced.out_tree)),
    lambda static, consts: _Traced(static[0], static[1], consts),
)


@api_boundary
def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """fun with what it closes over, and could be differentiated by, as further arguments: a function
    of (*args, *consts), and those consts. For functions handed to a custom_vjp function.

    example_args  arguments (or ShapeDtypeStructs) that say the types.
    Raises TypeError when the result is called with arguments of another structure.

    >>> y = jnp.array(3.0)
    >>> f, consts = lamina.closure_convert(lambda x: x * y, 1.0)
    >>> float(f(2.0, *consts))
    6.0
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
