"""Forward-mode differentiation: carries each value with its tangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.core import dtypes, source_info
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, DebugInfo, jaxpr_as_fun
from lamina.core.primitive import LINEAR, NOT_DIFFERENTIABLE, OWED, Primitive
from lamina.core.tangents import Zero
from lamina.core.trace import Trace, Tracer, current_trace, get_aval, set_current_trace, swap_trace
from lamina.interpreters.staging import raise_leaked, trace_to_jaxpr
from lamina.interpreters.tangents import instantiate_zero


class GradTracer(Tracer):
    """A value with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any) -> None:
        self._trace, self.primal, self.tangent = trace, primal, tangent

    @property
    def aval(self) -> ShapedArray:
        primal = self.primal
        return primal.aval if isinstance(primal, Tracer) else get_aval(primal)

    def concrete(self) -> Any:
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal

    def asked(self) -> Any:
        primal = self.primal
        return primal.asked() if isinstance(primal, Tracer) else primal

    def origin_note(self) -> str:
        return self.primal.origin_note() if isinstance(self.primal, Tracer) else ""

    def __repr__(self) -> str:
        tangent = (
            get_aval(self.tangent) if not isinstance(self.tangent, Zero) else self.tangent.aval
        )
        return f"GradTracer(primal={self.primal!r}, typeof(tangent)={tangent.str_short()})"


class JVPTrace(Trace):
    """Applies jvp rules; primals and tangents are values of the parent trace."""

    __slots__ = ()

    def name(self) -> str:
        return "one that is differentiated (grad, jvp, vjp, ...)"

    def pair(self, x: Any) -> tuple[Any, Any]:
        """The primal and the tangent of a value."""
        if type(x) is GradTracer:
            if x._trace is self:
                return x.primal, x.tangent
            if not x._trace.alive:
                raise_leaked(x)
        return x, Zero(get_aval(x).to_tangent_aval())

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        primals, tangents, active = [], [], False
        for x in args:
            p, t = self.pair(x)
            primals.append(p)
            tangents.append(t)
            active = active or type(t) is not Zero
        old = swap_trace(self.parent)
        # All that a rule makes is made at one place; in others than rules of the user's.
        placed = self.parent is not None and not primitive.multiple_results and source_info.pin()
        try:
            rule = primitive.jvp
            if not active or rule is NOT_DIFFERENTIABLE:
                return primitive.bind(*primals, **params)
            out, out_tangent = _apply_rule(primitive, rule, primals, tangents, params)
        finally:
            swap_trace(old)
            if placed:
                source_info.unpin()
        if primitive.multiple_results:
            return [
                p if type(t) is Zero else GradTracer(self, p, t)
                for p, t in zip(out, out_tangent, strict=True)
            ]
        return out if type(out_tangent) is Zero else GradTracer(self, out, out_tangent)


def _apply_rule(
    primitive: Primitive, rule: Any, primals: list[Any], tangents: list[Any], params: dict[str, Any]
) -> tuple[Any, Any]:
    if rule is LINEAR:
        out = primitive.bind(*primals, **params)
        return out, primitive.bind(*map(instantiate_zero, tangents), **params)
    if rule is OWED:
        raise NotImplementedError(f"Differentiation rule for '{primitive}' not implemented")
    return rule(primals, tangents, **params)


def jvp_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Results and their tangents (Zero where there is none) of a function of flat arguments."""
    trace = JVPTrace(current_trace())
    args = [
        p if type(t) is Zero else GradTracer(trace, p, t)
        for p, t in zip(primals, tangents, strict=True)
    ]
    try:
        with set_current_trace(trace):
            outs = fun(*args)
            pairs = [trace.pair(x) for x in outs]
    finally:
        trace.ended()
    return [p for p, _ in pairs], [t for _, t in pairs]


def jvp_jaxpr(
    closed: ClosedJaxpr, nonzero_in: Sequence[bool], instantiate: Sequence[bool] | bool
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of the jvp: (primals, nonzero tangents) -> (outs, nonzero out tangents).

    closed       the program.
    nonzero_in   for each input whether it has a tangent.
    instantiate  which out tangents are given even where they are zero: all, none, or one by one.

    Also gives which out tangents are there.

    >>> closed = lamina.make_jaxpr(lambda x, y: (x * y, y))(1.0, 2.0)
    >>> program, there = lamina.interpreters.ad.jvp_jaxpr(closed, [True, False], False)
    >>> len(program.in_avals), there
    (3, [True, False])
    """
    nonzero_out: list[bool] = []
    n_out = len(closed.jaxpr.outvars)
    wanted = [instantiate] * n_out if isinstance(instantiate, bool) else list(instantiate)
    force = [
        w and dtypes.is_inexact(a.dtype) for w, a in zip(wanted, closed.out_avals, strict=True)
    ]

    def fun(*args: Any) -> list[Any]:
        primals = args[: len(nonzero_in)]
        given = iter(args[len(nonzero_in) :])
        tangents = [
            next(given) if nz else Zero(p.aval.to_tangent_aval())
            for p, nz in zip(primals, nonzero_in, strict=True)
        ]
        outs, out_tangents = jvp_flat(jaxpr_as_fun(closed), primals, tangents)
        nonzero_out[:] = [
            type(t) is not Zero or f for t, f in zip(out_tangents, force, strict=True)
        ]
        return outs + [
            instantiate_zero(t) for t, nz in zip(out_tangents, nonzero_out, strict=True) if nz
        ]

    tangent_avals = [
        a.to_tangent_aval() for a, nz in zip(closed.in_avals, nonzero_in, strict=True) if nz
    ]
    info = closed.jaxpr.debug_info
    out = trace_to_jaxpr(
        fun,
        closed.in_avals + tangent_avals,
        DebugInfo("jvp", info.function, info.location, info.arg_names),
    )
    return out, nonzero_out
