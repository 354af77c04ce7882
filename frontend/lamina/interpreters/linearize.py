"""Partial evaluation, and with it linearisation: known work is done, unknown work is recorded.

linearize(f, x) runs jvp(f) with known primals and unknown tangents. What depends on primals alone
runs (in the parent trace) as it comes; what depends on a tangent is recorded, with the known values
that it reads as residuals. The record is the linear function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.core import source_info
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import (
    ClosedJaxpr,
    DebugInfo,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    dce_jaxpr,
    eval_jaxpr,
)
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero
from lamina.core.trace import Trace, Tracer, current_trace, get_aval, set_current_trace, swap_trace
from lamina.interpreters.jvp import jvp_flat
from lamina.interpreters.staging import StagingTrace, raise_leaked, trace_to_jaxpr


class UnknownTracer(Tracer):
    """A value of the recorded, unknown part."""

    __slots__ = ("made_at", "variable")

    def __init__(self, trace: PartialEvalTrace, var: Var, made_at: source_info.SourceInfo) -> None:
        self._trace, self.variable, self.made_at = trace, var, made_at

    @property
    def aval(self) -> ShapedArray:
        return self.variable.aval


class PartialEvalTrace(Trace):
    """Runs what is known in the parent trace, records the rest."""

    __slots__ = ("record",)

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.record = StagingTrace(parent)

    def name(self) -> str:
        return "linearize"

    def new_unknown(self, aval: ShapedArray) -> UnknownTracer:
        """An unknown input."""
        var = Var(aval)
        self.record.invars.append(var)
        return UnknownTracer(self, var, source_info.UNKNOWN)

    def is_unknown(self, x: Any) -> bool:
        if type(x) is UnknownTracer:
            if x._trace is self:
                return True
            if not x._trace.alive:
                raise_leaked(x)
        return False

    def atom(self, x: Any) -> Any:
        """The variable of an unknown value; for a known one, of the residual that holds it."""
        return x.variable if self.is_unknown(x) else self.record.atom(x)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        for x in args:
            if type(x) is UnknownTracer and self.is_unknown(x):
                break
        else:
            old = swap_trace(self.parent)
            try:
                return primitive.bind(*args, **params)
            finally:
                swap_trace(old)
        if primitive.partial_eval is not None:
            old = swap_trace(self.parent)
            try:
                return primitive.partial_eval(self, args, params)
            finally:
                swap_trace(old)
        return self.emit(primitive, args, params)

    def emit(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Records an application whose results are all unknown."""
        atom = self.atom
        invars = [atom(x) for x in args]
        out = primitive.result_types([v.aval for v in invars], params)
        here = source_info.current()
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in out]
            self.record.eqns.append(JaxprEqn(invars, outvars, primitive, params, here))
            return [UnknownTracer(self, v, here) for v in outvars]
        var = Var(out)
        self.record.eqns.append(JaxprEqn(invars, [var], primitive, params, here))
        return UnknownTracer(self, var, here)

    def finish(self, outs: Sequence[Any]) -> ClosedJaxpr:
        """The recorded program giving `outs` (unknown or known), without dead equations or
        residuals; its constants are the residuals."""
        outvars = [self.atom(x) for x in outs]
        full = Jaxpr(
            list(self.record.constvars.values()), self.record.invars, outvars, self.record.eqns
        )
        slim, _ = dce_jaxpr(full, [True] * len(outvars))
        read = {v for eqn in slim.eqns for v in eqn.invars if type(v) is not Literal}
        read.update(v for v in slim.outvars if type(v) is not Literal)
        kept = [
            (v, c) for v, c in zip(full.constvars, self.record.consts, strict=True) if v in read
        ]
        slim.constvars = [v for v, _ in kept]
        return ClosedJaxpr(slim, [c for _, c in kept])


def partial_eval_flat(
    fun: Callable[..., Sequence[Any]], args: Sequence[Any], unknown: Sequence[bool]
) -> tuple[list[Any], list[bool], ClosedJaxpr]:
    """Runs `fun` on known values; where `unknown`, the argument is only a type (a ShapedArray).

    Gives the known results (None where unknown), which results are unknown, and the program for
    the unknown ones: inputs the unknown arguments, constants the residuals.
    """
    trace = PartialEvalTrace(current_trace())
    try:
        with set_current_trace(trace):
            outs = fun(
                *[trace.new_unknown(x) if u else x for x, u in zip(args, unknown, strict=True)]
            )
        out_unknown = [trace.is_unknown(x) for x in outs]
        program = trace.finish([x for x, u in zip(outs, out_unknown, strict=True) if u])
    finally:
        trace.ended()
        trace.record.ended()
    known = [None if u else x for x, u in zip(outs, out_unknown, strict=True)]
    return known, out_unknown, program


def linearize_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], active: Sequence[bool] | None = None
) -> tuple[list[Any], ClosedJaxpr, list[bool]]:
    """Results of `fun`, and its linear map as a jaxpr from the active inputs' tangents to the
    nonzero output tangents; and which output tangents are nonzero."""
    n = len(primals)
    active = [True] * n if active is None else active
    results: list[Any] = []
    nonzero: list[bool] = []

    def jvp_of_fun(*args: Any) -> list[Any]:
        given = iter(args)
        tangents = [
            next(given) if a else Zero(get_aval(p).to_tangent_aval())
            for p, a in zip(primals, active, strict=True)
        ]
        outs, out_tangents = jvp_flat(fun, primals, tangents)
        results[:] = outs
        nonzero[:] = [type(t) is not Zero for t in out_tangents]
        return outs + [t for t in out_tangents if type(t) is not Zero]

    tangent_avals = [get_aval(p).to_tangent_aval() for p, a in zip(primals, active, strict=True) if a]
    trace = PartialEvalTrace(current_trace())
    try:
        with set_current_trace(trace):
            outs = jvp_of_fun(*[trace.new_unknown(a) for a in tangent_avals])
        for x in results:
            if trace.is_unknown(x):
                raise AssertionError("a primal result depends on a tangent")
        linear = trace.finish(outs[len(results) :])
    finally:
        trace.ended()
        trace.record.ended()
    return results, linear, nonzero


def partial_eval_jaxpr(
    closed: ClosedJaxpr,
    unknown: Sequence[bool],
    instantiate: Sequence[bool] | bool = False,
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[ShapedArray]]:
    """Splits a jaxpr by which inputs are unknown.

    known:   known inputs -> known results, then residuals
    unknown: residuals, then unknown inputs -> unknown results

    closed       the program.
    unknown      for each input whether it is unknown.
    instantiate  results that are to be unknown in any case: all, none, or one by one.

    Gives both, which results are unknown (at least where `instantiate`), and the residuals' types.

    >>> closed = lamina.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.sin(x) * y))(0.0, 0.0)
    >>> split = lamina.interpreters.partial_eval.partial_eval_jaxpr_nounits(closed, [False, True])
    >>> split[2], len(split[3])
    ([False, True], 1)
    """
    n_out = len(closed.jaxpr.outvars)
    force = [instantiate] * n_out if isinstance(instantiate, bool) else list(instantiate)
    out_unknown: list[bool] = []
    programs: list[Jaxpr] = []

    def known_part(*known_args: Any) -> list[Any]:
        trace = PartialEvalTrace(current_trace())
        given = iter(known_args)
        args = [
            trace.new_unknown(aval) if u else next(given)
            for aval, u in zip(closed.in_avals, unknown, strict=True)
        ]
        with set_current_trace(trace):
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        out_unknown[:] = [trace.is_unknown(x) or f for x, f in zip(outs, force, strict=True)]
        program = trace.finish([x for x, u in zip(outs, out_unknown, strict=True) if u])
        programs[:] = [program.jaxpr]  # without the constants: they are tracers of this function
        trace.ended()
        trace.record.ended()
        known_outs = [x for x, u in zip(outs, out_unknown, strict=True) if not u]
        return known_outs + program.consts

    info = closed.jaxpr.debug_info
    known_avals = [a for a, u in zip(closed.in_avals, unknown, strict=True) if not u]
    known = trace_to_jaxpr(
        known_part, known_avals, DebugInfo("partial evaluation", info.function, info.location)
    )
    slim, _ = dce_jaxpr(known.jaxpr, [True] * len(known.jaxpr.outvars))
    known = ClosedJaxpr(slim, known.consts)
    program = programs[0]
    residual_avals = [v.aval for v in program.constvars]
    unknown_part = ClosedJaxpr(
        Jaxpr([], [*program.constvars, *program.invars], program.outvars, program.eqns, info), ()
    )
    return known, unknown_part, out_unknown, residual_avals
