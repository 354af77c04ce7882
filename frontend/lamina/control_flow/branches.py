"""Branches of one cond take the same inputs: each ignores what only the others read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.control_flow.residuals import hoist_consts
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, Var, close_jaxpr
from lamina.core.trace import get_aval


def with_shared_consts(
    closed: ClosedJaxpr, n_own: int, start: int, total: int, avals: list[ShapedArray]
) -> ClosedJaxpr:
    """A branch whose inputs begin with the constants of all branches, not only its own."""
    jaxpr = closed.jaxpr
    invars = [Var(a) for a in avals]
    invars[start : start + n_own] = jaxpr.invars[:n_own]
    return close_jaxpr(
        Jaxpr([], [*invars, *jaxpr.invars[n_own:]], jaxpr.outvars, jaxpr.eqns, jaxpr.debug_info)
    )


def share_consts(branches: Sequence[ClosedJaxpr]) -> tuple[list[Any], tuple[ClosedJaxpr, ...]]:
    """Constants of transformed branches as shared leading operands."""
    if not any(b.consts for b in branches):
        return [], tuple(branches)
    all_consts = [c for b in branches for c in b.consts]
    avals = [get_aval(c) for c in all_consts]
    out, start = [], 0
    for b in branches:
        hoisted, own = hoist_consts(b)
        out.append(with_shared_consts(hoisted, len(own), start, len(all_consts), avals))
        start += len(own)
    return all_consts, tuple(out)
