"""Residuals: the known values that the unknown half of a split program reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, close_jaxpr, convert_constvars


def forward_inputs(known: ClosedJaxpr, n_known_out: int) -> tuple[ClosedJaxpr, list[int | None]]:
    """Takes residuals that are plain inputs out of the known half's results.

    Gives the smaller known half, and for each residual the input that it is, or None where the
    smaller half still gives it (in order).
    """
    jaxpr = known.jaxpr
    position = {v: i for i, v in enumerate(jaxpr.invars)}
    outs = jaxpr.outvars[:n_known_out]
    which: list[int | None] = []
    for v in jaxpr.outvars[n_known_out:]:
        i = position.get(v) if type(v) is not Literal else None  # type: ignore[arg-type]
        which.append(i)
        if i is None:
            outs.append(v)
    slim = Jaxpr(jaxpr.constvars, jaxpr.invars, outs, jaxpr.eqns, jaxpr.debug_info)
    return ClosedJaxpr(slim, known.consts), which


def gather_residuals(
    which: Sequence[int | None], inputs: Sequence[Any], computed: Sequence[Any]
) -> list[Any]:
    """The residuals in order, from the inputs and from what the known half computed."""
    rest = iter(computed)
    return [next(rest) if i is None else inputs[i] for i in which]


def hoist_consts(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """The program with its constants as leading inputs, and those constants."""
    return close_jaxpr(convert_constvars(closed.jaxpr)), closed.consts
