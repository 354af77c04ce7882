"""Jaxprs made, split and cut down, as libraries ask for it (JAX's names)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import Jaxpr, JaxprEqn
from lamina.core.jaxpr import close_jaxpr as close_jaxpr
from lamina.core.jaxpr import convert_constvars as convert_constvars_jaxpr
from lamina.core.jaxpr import dce_jaxpr as _dce_jaxpr
from lamina.core.primitive import Primitive
from lamina.core.rule_tables import RuleTable
from lamina.interpreters.linearize import PartialEvalTrace as JaxprTrace
from lamina.interpreters.linearize import UnknownTracer as JaxprTracer
from lamina.interpreters.linearize import partial_eval_jaxpr as partial_eval_jaxpr_nounits
from lamina.interpreters.staging import JitTracer as DynamicJaxprTracer
from lamina.interpreters.staging import StagingTrace as DynamicJaxprTrace
from lamina.interpreters.staging import trace_to_jaxpr

__all__ = [
    "DynamicJaxprTrace", "DynamicJaxprTracer", "JaxprTrace", "JaxprTracer", "close_jaxpr",
    "convert_constvars_jaxpr", "custom_partial_eval_rules", "dce_jaxpr", "dce_rules",
    "partial_eval_jaxpr_nounits", "trace_to_jaxpr_dynamic",
]  # fmt: skip


def trace_to_jaxpr_dynamic(
    fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray]
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """The jaxpr of a function of flat arguments that gives a flat list; its result types; its
    constants."""
    closed = trace_to_jaxpr(fun, in_avals)
    return closed.jaxpr, closed.out_avals, closed.consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """The jaxpr without unread results, and inputs that it does not read then; which it keeps.

    instantiate  inputs to keep in any case.
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
