"""What differentiation keeps: names for policies, and listings of the values kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina import checkpoint_policies as checkpoint_policies
from lamina.checkpoint_policies import Offloadable as Offloadable
from lamina.checkpoint_policies import Recompute as Recompute
from lamina.checkpoint_policies import Saveable as Saveable
from lamina.control_flow.checkpoint import checkpoint as checkpoint
from lamina.control_flow.checkpoint import checkpoint_p
from lamina.control_flow.checkpoint_name import checkpoint_name as checkpoint_name
from lamina.control_flow.checkpoint_name import name_p
from lamina.control_flow.jit_call import jit_p
from lamina.control_flow.tracing import avals_of, debug_info
from lamina.core import dtypes, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import JaxprEqn, Literal
from lamina.core.trace import get_aval
from lamina.interpreters.linearize import linearize_flat
from lamina.interpreters.staging import trace_to_jaxpr

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]

remat = checkpoint
checkpoint_name_fwd = checkpoint_name


def saved_residuals(
    f: Callable[..., Any], *args: Any, **kwargs: Any
) -> list[tuple[ShapedArray, str]]:
    """The values that the backward pass of f keeps at these arguments: a list of (type, where it
    comes from).

    f             a function of pytrees of arrays.
    args, kwargs  where it is traced; values do not matter.

    >>> [str(kind) for kind, _ in lamina.ad_checkpoint.saved_residuals(jnp.sin, jnp.ones(3))]
    ['float32[3]']
    """
    leaves, in_tree = tree.flatten((args, kwargs))

    def flat(*values: Any) -> list[Any]:
        a, k = tree.unflatten(in_tree, values)
        return tree.leaves(f(*a, **k))

    def residuals(*values: Any) -> list[Any]:
        active = [dtypes.is_inexact(get_aval(x).dtype) for x in values]
        return linearize_flat(flat, values, active)[1].consts

    info = debug_info(f, "saved_residuals", args, kwargs)
    jaxpr = trace_to_jaxpr(residuals, avals_of(leaves, "saved_residuals"), info).jaxpr
    found: list[tuple[ShapedArray, str]] = [
        (v.aval, "from a literal") for v in jaxpr.outvars if type(v) is Literal
    ]
    wanted = {v for v in jaxpr.outvars if type(v) is not Literal}
    found += [(v.aval, "from a constant") for v in jaxpr.constvars if v in wanted]
    for i, v in enumerate(jaxpr.invars):
        if v in wanted:
            name = info.arg_names[i] if i < len(info.arg_names) else f"{i}"
            found.append((v.aval, f"from the argument {name}"))
    for eqn in jaxpr.eqns:
        found += [(v.aval, _origin(eqn, i)) for i, v in enumerate(eqn.outvars) if v in wanted]
    return found


def _origin(eqn: JaxprEqn, result: int) -> str:
    """Where a result of an equation comes from; of what a checkpoint keeps, where inside."""
    if eqn.primitive is checkpoint_p:
        inner = eqn.params["jaxpr"].jaxpr
        for made in inner.eqns:
            if inner.outvars[result] in made.outvars:
                return _origin(made, made.outvars.index(inner.outvars[result]))
    place = eqn.source_info.summary()
    if eqn.primitive is name_p:
        return f"named '{eqn.params['name']}' from {place}"
    if eqn.primitive is jit_p:
        return f"output of jitted function '{eqn.params['name']}' from {place}"
    return f"output of {eqn.primitive.name} from {place}"


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints the values that the backward pass of f keeps at these arguments, one a line.

    f             a function of pytrees of arrays.
    args, kwargs  where it is traced; values do not matter.

    >>> lamina.ad_checkpoint.print_saved_residuals(lamina.checkpoint(jnp.sin), jnp.ones(3))
    f32[3] from the argument x
    """
    for aval, what in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short()} {what}")
