"""Jaxprs made, split and cut down, as libraries ask for it (JAX's names)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import Jaxpr, JaxprEqn
from lamina.core.jaxpr import close_jaxpr as close_jaxpr
from lamina.core.jaxpr import convert_constvars as convert_constvars_jaxpr
from lamina.core.jaxpr import dce_jaxpr as _dce_jaxpr
from lamina.core.primitive import Primitive
from lamina.core.rule_tables import RuleTable
from lamina.interpreters.linearize import PartialEvalTrace as JaxprTrace
from lamina.interpreters.linearize import UnknownTracer as JaxprTracer
from lamina.interpreters.linearize import partial_eval_flat
from lamina.interpreters.linearize import partial_eval_jaxpr as partial_eval_jaxpr_nounits
from lamina.interpreters.staging import JitTracer as DynamicJaxprTracer
from lamina.interpreters.staging import StagingTrace as DynamicJaxprTrace
from lamina.interpreters.staging import trace_to_jaxpr

__all__ = [
    "DynamicJaxprTrace", "DynamicJaxprTracer", "JaxprTrace", "JaxprTracer", "PartialVal",
    "close_jaxpr",    "convert_constvars_jaxpr", "custom_partial_eval_rules", "dce_jaxpr", "dce_rules",
    "partial_eval_jaxpr_nounits", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]  # fmt: skip


def trace_to_jaxpr_dynamic(
    fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray]
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """The jaxpr of a function of flat arguments that gives a flat list; its result types; its constants.

    fun       the function, or a WrappedFun.
    in_avals  the types of its arguments.

    >>> aval = lamina.extend.core.ShapedArray((2,), np.dtype("float32"))
    >>> trace = lamina.interpreters.partial_eval.trace_to_jaxpr_dynamic
    >>> jaxpr, types, consts = trace(lambda x: [x + 1], [aval])
    >>> print(types[0])
    float32[2]
    """
    closed = trace_to_jaxpr(getattr(fun, "call_wrapped", fun), in_avals)
    return closed.jaxpr, closed.out_avals, closed.consts


class PartialVal(NamedTuple):
    """What is known of a value: (None, the value), or (its type, None)."""

    aval: ShapedArray | None
    const: Any

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A value."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """A type."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Whether there is a value."""
        return self.aval is None


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Runs a flat function on what is known. Gives the jaxpr of the unknown results, what is known
    of each result, and the values that the jaxpr takes before the unknown arguments.

    fun          the function, or a WrappedFun.
    pvals        a PartialVal for each argument: known, or unknown of a type.
    instantiate  must be False.

    Raises NotImplementedError for `instantiate`: known results are given as values.

    >>> pe = lamina.interpreters.partial_eval
    >>> aval = lamina.extend.core.ShapedArray((), np.dtype("float32"))
    >>> pvals = [pe.PartialVal.known(2.0), pe.PartialVal.unknown(aval)]
    >>> jaxpr, results, values = pe.trace_to_jaxpr_nounits(lambda x, y: [x + 1, x * y], pvals)
    >>> [p.is_known() for p in results], len(jaxpr.eqns)
    ([True, False], 1)
    """
    if instantiate is True or (instantiate and any(instantiate)):
        raise NotImplementedError("[trace_to_jaxpr_nounits] instantiate: known results are values")
    call = getattr(fun, "call_wrapped", fun)
    unknown = [not p.is_known() for p in pvals]
    args = [p.aval if u else p.const for p, u in zip(pvals, unknown, strict=True)]
    known, out_unknown, program = partial_eval_flat(call, args, unknown)
    types = iter(program.out_avals)
    out = [
        PartialVal.unknown(next(types)) if u else PartialVal.known(value)
        for value, u in zip(known, out_unknown, strict=True)
    ]
    return convert_constvars_jaxpr(program.jaxpr), out, list(program.consts)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """The jaxpr without unread results, and inputs that it does not read then; which it keeps.

    jaxpr         the program.
    used_outputs  for each result whether it is read.
    instantiate   inputs to keep in any case: all, none, or one by one.

    >>> jaxpr = lamina.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y)))(0.0, 0.0).jaxpr
    >>> slim, kept = lamina.interpreters.partial_eval.dce_jaxpr(jaxpr, [True, False])
    >>> len(slim.eqns), kept
    (1, [True, False])
    """
    slim, used = _dce_jaxpr(jaxpr, used_outputs)
    force = [instantiate] * len(used) if isinstance(instantiate, bool) else list(instantiate)
    keep = [u or f for u, f in zip(used, force, strict=True)]
    slim.invars = [v for v, k in zip(slim.invars, keep, strict=True) if k]
    return slim, keep


def _dce_of(_: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    def dce(eqn: JaxprEqn, used: list[bool]) -> JaxprEqn:
        new = rule(used, eqn)[1]
        return eqn if new is None else new

    return dce


dce_rules = RuleTable("dce", _dce_of)
"""rule(used results, eqn) -> (used operands, eqn or None)."""

custom_partial_eval_rules = RuleTable(
    "partial_eval", lambda _, rule: lambda trace, args, params: rule(trace, *args, **params)
)
"""rule(trace, *tracers, **params) -> results."""
