"""Staging: runs a Python function on tracers and records what it does as a jaxpr."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import config
from lamina.core import source_info
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import (
    NO_DEBUG_INFO,
    Atom,
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
)
from lamina.core.leaks import check_no_leaks, leaked_tracer_error
from lamina.core.primitive import Primitive
from lamina.core.trace import (
    Trace,
    Tracer,
    current_trace,
    get_aval,
    makes_array,
    set_current_trace,
)

_SCALARS = (bool, int, float, complex)


class JitTracer(Tracer):
    """A value of the program being recorded."""

    __slots__ = ("made_at", "variable")

    _trace: StagingTrace

    def __init__(self, trace: StagingTrace, var: Var, made_at: source_info.SourceInfo) -> None:
        self._trace, self.variable, self.made_at = trace, var, made_at

    @property
    def aval(self) -> ShapedArray:
        return self.variable.aval

    shape = property(lambda self: self.variable.aval.shape)
    dtype = property(lambda self: self.variable.aval.dtype)

    def asked(self) -> Any:
        trace = self._trace
        return trace.at_hand.value(self) if trace.at_hand is not None and trace.alive else None

    def origin_note(self) -> str:
        return self._trace.origin_of(self)

    def __repr__(self) -> str:
        trace = self._trace
        text = trace.at_hand.text(self) if trace.at_hand is not None and trace.alive else None
        return super().__repr__() if text is None else text


class AtHand:
    """The arguments of the call for which a program is recorded, and what of its values can be told meanwhile:
    here nothing."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.arguments = arguments
        self.was_asked = False
        """Whether the program is one of these arguments alone, for Python has looked at values."""

    def value(self, x: JitTracer) -> Any:
        """The array that x stands for; None where it can't be told."""
        return None

    def text(self, x: JitTracer) -> str | None:
        """How x is printed; None where that is as elsewhere."""
        return None


class StagingTrace(Trace):
    """Records equations. One StagingTrace makes one jaxpr."""

    __slots__ = ("at_hand", "consts", "constvars", "debug_info", "eqns", "invars")

    def __init__(
        self, parent: Trace | None, debug_info: DebugInfo = NO_DEBUG_INFO, at_hand: AtHand | None = None
    ) -> None:
        super().__init__(parent)
        self.eqns: list[JaxprEqn] = []
        self.invars: list[Var] = []
        self.constvars: dict[int, Var] = {}
        self.consts: list[Any] = []
        self.debug_info = debug_info
        self.at_hand = at_hand

    def name(self) -> str:
        return self.debug_info.kind

    def new_arg(self, aval: ShapedArray) -> JitTracer:
        """A further input of the program."""
        var = Var(aval)
        self.invars.append(var)
        return JitTracer(self, var, source_info.UNKNOWN)

    def atom(self, x: Any) -> Atom:
        """The variable or literal for a value that the program uses."""
        if type(x) is JitTracer and x._trace is self:
            return x.variable
        if type(x) in _SCALARS:
            return Literal(x, get_aval(x))
        if isinstance(x, Tracer):
            self._check_usable(x)
        elif isinstance(x, np.generic) or (type(x) is np.ndarray and x.ndim == 0):
            aval = get_aval(x)
            return Literal(np.asarray(x).astype(aval.dtype)[()], aval)
        elif makes_array(x):
            return self.atom(x.__jax_array__())
        var = self.constvars.get(id(x))
        if var is None:
            var = self.constvars[id(x)] = Var(get_aval(x))
            self.consts.append(x)  # also keeps x, and so its id, alive
        return var

    def _check_usable(self, x: Tracer) -> None:
        trace: Trace | None = self.parent
        while trace is not None and trace is not x._trace:
            trace = trace.parent
        if trace is None or not x._trace.alive:
            raise_leaked(x)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        atom = self.atom
        invars = [atom(x) for x in args]
        out = primitive.result_types([v.aval for v in invars], params)
        here = source_info.current()
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in out]
            self.eqns.append(JaxprEqn(invars, outvars, primitive, params, here))
            return [JitTracer(self, v, here) for v in outvars]
        var = Var(out)
        self.eqns.append(JaxprEqn(invars, [var], primitive, params, here))
        return JitTracer(self, var, here)

    def to_jaxpr(self, outs: Sequence[Any]) -> ClosedJaxpr:
        """The recorded program, giving `outs`."""
        outvars = [self.atom(x) for x in outs]
        jaxpr = Jaxpr(
            list(self.constvars.values()), self.invars, outvars, self.eqns, self.debug_info
        )
        return ClosedJaxpr(_drop_unread(jaxpr), self.consts)

    def origin_of(self, tracer: JitTracer) -> str:
        """For messages: what is being traced, and which arguments the value depends on."""
        lines = [f"The error occurred while tracing the function {self.debug_info.describe()}."]
        makers = {v: eqn for eqn in self.eqns for v in eqn.outvars}
        reached, todo = set(), [tracer.variable]
        while todo:
            var = todo.pop()
            if var in reached:
                continue
            reached.add(var)
            if var in makers:
                todo += [v for v in makers[var].invars if isinstance(v, Var)]
        names = [
            self.debug_info.arg_names[i] if i < len(self.debug_info.arg_names) else f"arg {i}"
            for i, var in enumerate(self.invars)
            if var in reached
        ]
        if names:
            several = "values of the arguments" if len(names) > 1 else "value of the argument"
            lines.append(
                "This concrete value was not available in Python because it depends on the "
                f"{several} {', '.join(names)}."
            )
        elif tracer.made_at.raw:
            lines.append(f"The value was made on line {tracer.made_at.summary()}.")
        return "\n".join(lines)


def is_staging() -> bool:
    """Whether what runs now ends up in a jaxpr."""
    trace: Trace | None = current_trace()
    while trace is not None and not isinstance(trace, StagingTrace):
        trace = trace.parent
    return trace is not None


def raise_leaked(x: Tracer) -> None:
    """Raises the error for a tracer used outside its trace."""
    inner: Any = x
    while isinstance(inner, Tracer) and not isinstance(inner, JitTracer):
        inner = inner.value if hasattr(inner, "value") else getattr(inner, "primal", None)
    made_at = getattr(inner, "made_at", None)
    info = getattr(getattr(inner, "_trace", None), "debug_info", None)
    what = info.describe() if info is not None else x._trace.name()
    raise leaked_tracer_error(x, made_at, "", what)


def _drop_unread(jaxpr: Jaxpr) -> Jaxpr:
    """Marks results that nobody reads, so that they print as _."""
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal}
    read.update(v for v in jaxpr.outvars if type(v) is not Literal)
    for eqn in jaxpr.eqns:
        for i, v in enumerate(eqn.outvars):
            if v not in read and type(v) is Var:
                eqn.outvars[i] = DropVar(v.aval)
    return jaxpr


def trace_to_jaxpr(
    fun: Callable[..., Sequence[Any]],
    in_avals: Sequence[ShapedArray],
    debug_info: DebugInfo = NO_DEBUG_INFO,
    at_hand: AtHand | None = None,
) -> ClosedJaxpr:
    """The jaxpr of a function of flat arguments that gives a flat list of results.

    Values that the function closes over become constants; tracers of outer transformations are
    allowed among them.
    """
    if config.no_tracing.value:
        raise RuntimeError(f"tracing {debug_info.describe()}, but the no_tracing config option is set")
    trace = StagingTrace(current_trace(), debug_info, at_hand)
    try:
        with set_current_trace(trace):
            outs = fun(*[trace.new_arg(aval) for aval in in_avals])
            closed = trace.to_jaxpr(outs)
        del outs
    finally:
        trace.ended()
    if config.enable_checks.value:
        from lamina.core.jaxpr_checker import check_jaxpr

        check_jaxpr(closed.jaxpr)
    if config.check_tracer_leaks.value:
        ref = weakref.ref(trace)
        del trace
        check_no_leaks(ref, debug_info.describe())
    return closed
