"""The step function of a scan: how its inputs and results are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.tangents import is_undefined_primal
from lamina.core.trace import get_aval
from lamina.interpreters.staging import trace_to_jaxpr


def split(values: Any, num_consts: int, num_carry: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Operands of a scan by kind: constants, carry, xs."""
    n = num_consts + num_carry
    return list(values[:num_consts]), list(values[num_consts:n]), list(values[n:])


def stacked(avals: Sequence[ShapedArray], length: int) -> list[ShapedArray]:
    """The types of values that each step gives, over all steps."""
    return [a.with_axis(0, length) for a in avals]


def trace_step(
    body: Any, operands: Sequence[Any], xs: Sequence[Any], like: ClosedJaxpr
) -> ClosedJaxpr:
    """The jaxpr of a step: `operands` are constants and carry, `xs` are read slice by slice."""
    avals = [x.aval if is_undefined_primal(x) else get_aval(x) for x in operands]
    for x in xs:
        aval = x.aval if is_undefined_primal(x) else get_aval(x)
        avals.append(aval.without_axis(0))
    return trace_to_jaxpr(body, avals, like.jaxpr.debug_info)
