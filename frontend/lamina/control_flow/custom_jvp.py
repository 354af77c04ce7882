"""custom_jvp: a function whose forward derivative the user gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.custom_rule import (
    BatchedResults,
    Call,
    CustomRule,
    P,
    R,
    SymbolicZero,
    batched_call,
    call_types,
    lower_call,
    place_of,
    run_call,
    run_rule,
    shapes_of,
    tangent_or_zero,
    transpose_of_call,
    without_consts,
)
from lamina.control_flow.varying import aligns_call
from lamina.core import axes, tree
from lamina.core.avals import ShapedArray, same_type
from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero
from lamina.core.trace import get_aval, is_evaluating
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import function_name
from lamina.errors import UnexpectedTracerError
from lamina.interpreters.batching import batch_flat, batched_size, batches_first
from lamina.interpreters.tangents import instantiate_zero


class CustomJVPException(UnexpectedTracerError):
    """A custom_jvp function was differentiated by what it closes over."""

    def __init__(self) -> None:
        super().__init__(
            "Detected differentiation of a custom_jvp function with respect to a closed-over value. "
            "That isn't supported because the custom JVP rule only specifies how to differentiate "
            "the custom_jvp function with respect to explicit input parameters. Try passing the "
            "closed-over value into the custom_jvp function as an argument, and adapting the "
            "custom_jvp rule."
        )


class custom_jvp(CustomRule[P, R]):
    """Wraps a function so that `defjvp` (or `defjvps`) says how to differentiate it.

        @custom_jvp
        def f(x, y): return sin(x) * y

        @f.defjvp
        def f_jvp(primals, tangents):
            x, y = primals
            x_dot, y_dot = tangents
            return f(x, y), cos(x) * x_dot * y + sin(x) * y_dot

    nondiff_argnums, nondiff_argnames  arguments that are static Python values; the rule takes them
                                       first.
    Raises AttributeError when called without a rule.
    """

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule: jvp(primals, tangents) -> (out, out tangent).

        symbolic_zeros  tangents that are zero come as SymbolicZero, and may be given as such.
        """
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets one rule per argument: jvp(tangent, out, *primals) -> its part of the out tangent."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def rule(primals: Any, tangents: Any) -> Any:
            from lamina.interpreters.tangents import add_tangents

            out = self(*primals)  # type: ignore[call-arg]
            zeros = tree.map(lambda x: Zero(get_aval(x).to_tangent_aval()), out)
            parts = [j(t, out, *primals) for j, t in zip(jvps, tangents, strict=True) if j]
            total = zeros
            for part in parts:
                total = tree.map(add_tangents, total, part)
            return out, tree.map(instantiate_zero, total)

        self.jvp = rule

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {self.__name__} using defjvp."
            )
        call = Call(self, args, kwargs, lifts=True)
        if is_evaluating():
            return self.fun(*call.arguments(call.leaves))  # type: ignore[call-arg]
        run, types, consts = call.prepared("custom_jvp")
        values = [*consts, *call.leaves]
        call.forget_values()
        outs = custom_jvp_call_p.bind(
            *values,
            call_jaxpr=run,
            jvp_fun=_flat_rule(self, call, types),
            num_consts=len(consts),
            name=self.__name__,
        )
        return tree.unflatten(call.out_tree, outs)


FlatRule = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]
"""(primals, tangents) -> (results, their tangents), flat; tangents may be Zero."""


def _flat_rule(
    custom: custom_jvp[..., Any], call: Call, out_avals: Sequence[ShapedArray] | None
) -> FlatRule:
    jvp, symbolic = custom.jvp, custom.symbolic_zeros
    assert jvp is not None
    what = f"Custom JVP rule {function_name(jvp)} for function {custom.__name__}"

    def flat(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        static = call.statics(primals)
        if any(type(t) is not Zero for t in tangents[: call.lifted]):
            raise CustomJVPException
        given = [
            t if type(t) is not Zero else SymbolicZero(t.aval) if symbolic else instantiate_zero(t)
            for t in tangents[call.lifted :]
        ]
        p, t = (tree.unflatten(call.in_tree, xs) for xs in (primals[call.lifted :], given))
        result = run_rule(jvp, *static.values(), p, t)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(
                f"{what} must produce a pair (list or tuple of length two) representing primal and "
                f"tangent outputs, but got {result}.{place_of(jvp)}"
            )
        outs, tree_out = tree.flatten(result[0])
        dots, tree_dot = tree.flatten(result[1])
        if tree_out != tree_dot:
            raise TypeError(
                f"{what} must produce primal and tangent outputs with equal container (pytree) "
                f"structures, but got {tree_out} and {tree_dot} respectively.{place_of(jvp)}"
            )
        out_tree = call.out_tree = call.out_tree or tree_out
        if tree_out != out_tree:
            raise TypeError(
                f"{what} must produce a pair (list or tuple of length two) where the first element "
                "represents the primal output (equal in value to the output of the "
                f"custom_jvp-decorated function {custom.__name__}, and in particular of the same "
                "container/pytree structure), but instead the JVP rule output's first element had "
                f"container/pytree structure:\n    {tree_out}\nwhile the custom_jvp-decorated "
                f"function {custom.__name__} had output container/pytree structure:\n    {out_tree}."
                f"{place_of(jvp)}"
            )
        if out_avals is not None and not all(
            same_type(get_aval(o), a) for o, a in zip(outs, out_avals, strict=True)
        ):
            raise TypeError(
                f"{what} must produce a pair (list or tuple of length two) where the first element "
                "represents the primal output (equal in value to the output of the "
                f"custom_jvp-decorated function {custom.__name__}, and in particular with leaves of "
                "the same shape/dtype), but instead the JVP rule output's first element had "
                f"shapes/dtypes of:\n    {shapes_of(outs)}\nwhile the custom_jvp-decorated function "
                f"{custom.__name__} had output shapes/dtypes of:\n    "
                f"{', '.join(a.str_long() for a in out_avals)}{place_of(jvp)}"
            )
        dots = [tangent_or_zero(d, get_aval(o)) for o, d in zip(outs, dots, strict=True)]
        for o, d in zip(outs, dots, strict=True):
            want = get_aval(o).to_tangent_aval()
            if type(d) is not Zero and not same_type(get_aval(d), want):
                raise TypeError(
                    "Custom JVP rule must produce primal and tangent outputs with corresponding "
                    f"shapes and dtypes. Expected {want.str_long()} (tangent type of "
                    f"{get_aval(o).str_long()}) but got {get_aval(d).str_long()}."
                )
        return outs, dots

    return flat


# ---- rules -------------------------------------------------------------------------------------
def _jvp(
    primals: list[Any], tangents: list[Any], *, jvp_fun: FlatRule, num_consts: int, **_: Any
) -> Any:
    if any(type(t) is not Zero for t in tangents[:num_consts]):
        raise CustomJVPException
    return jvp_fun(primals[num_consts:], tangents[num_consts:])


def _batching(
    args: list[Any],
    dims: list[Any],
    *,
    call_jaxpr: ClosedJaxpr,
    jvp_fun: FlatRule,
    num_consts: int,
    name: str,
) -> Any:
    size = batched_size(args, dims)
    moved = batches_first(args, dims)
    at = [None if d is None else 0 for d in dims]
    closed, out_batched = batched_call(call_jaxpr, size, tuple(d is not None for d in dims))
    results = BatchedResults(out_batched, size, name)
    arg_dims = at[num_consts:]
    axis = axes.batching()  # what the user's rule, run later, may name

    def batched_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        zero = [t if type(t) is Zero else None for t in tangents]
        there = [t for t in tangents if type(t) is not Zero]
        out_zero: list[Any] = []
        n = len(primals)

        def flat(*values: Any) -> list[Any]:
            given = iter(values[n:])
            ts = [
                next(given) if z is None else Zero(get_aval(x).to_tangent_aval())
                for z, x in zip(zero, values[:n], strict=True)
            ]
            outs, dots = jvp_fun(values[:n], ts)
            out_zero[:] = [type(d) is Zero for d in dots]
            return [*outs, *(d for d in dots if type(d) is not Zero)]

        # The tangent of a value is batched where the value is.
        t_dims = [d for d, z in zip(arg_dims, zero, strict=True) if z is None]
        outs, out_dims = batch_flat(flat, [*primals, *there], [*arg_dims, *t_dims], axis)
        with_tangents = [i for i, z in enumerate(out_zero) if not z]
        results.join(out_dims[: len(out_zero)])
        of_tangents = dict(zip(with_tangents, out_dims[len(out_zero) :], strict=True))
        results.join([of_tangents.get(i) for i in range(len(out_zero))])
        outs = results.placed(outs, out_dims, [*range(len(out_zero)), *with_tangents])
        values, given = outs[: len(out_zero)], iter(outs[len(out_zero) :])
        return values, [
            Zero(get_aval(o).to_tangent_aval()) if z else next(given)
            for o, z in zip(values, out_zero, strict=True)
        ]

    call_jaxpr, extra = without_consts(closed)
    outs = custom_jvp_call_p.bind(
        *extra,
        *moved,
        call_jaxpr=call_jaxpr,
        jvp_fun=batched_jvp,
        num_consts=num_consts + len(extra),
        name=name,
    )
    return outs, results.dims()


custom_jvp_call_p = Primitive(
    "custom_jvp_call",
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
