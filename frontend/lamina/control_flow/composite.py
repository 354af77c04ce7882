"""composite: a function as one named operation; platform_dependent: a choice among functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lamina.control_flow.jit_call import jit_p
from lamina.control_flow.tracing import avals_of, debug_info, trace_function
from lamina.core import Tracer, tree
from lamina.core.wrapping import wraps


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """`decomposition` as a function of its own in the program: a StableHLO composite, which a later
    stage may replace by its own implementation of what the name says.

    decomposition  a function of arrays; its keyword arguments are attributes: values known now.
    name           of the composite, such as "my.gelu".
    version        of what the name means, an int.

    >>> scale = lax.composite(lambda x, *, by: x * by, "my.scale", version=1)
    >>> print(scale(jnp.array([1.0, 2.0]), by=3.0))
    [3. 6.]
    """

    @wraps(decomposition)
    def call(*args: Any, **attributes: Any) -> Any:
        if any(isinstance(v, Tracer) for v in tree.flatten(attributes)[0]):
            from lamina.errors import UnexpectedTracerError

            raise UnexpectedTracerError(
                f"a traced value was given as an attribute of the composite {name!r}: attributes "
                "must be known when it is traced; pass the value as a positional argument"
            )
        leaves, in_tree = tree.flatten(args)
        body = functools.partial(decomposition, **attributes)
        info = debug_info(decomposition, "composite", args)
        closed, consts, out_tree = trace_function(body, in_tree, avals_of(leaves, name), info)
        out = jit_p.bind(
            *consts, *leaves, jaxpr=closed, name=name.replace(".", "_"), keep_unused=False,
            donated_invars=(False,) * (len(consts) + len(leaves)),
        )  # fmt: skip
        return tree.unflatten(out_tree, out)

    return call


def platform_dependent(*args: Any, default: Callable[..., Any] | None = None,
                       **per_platform: Callable[..., Any]) -> Any:  # fmt: skip
    """The function given for the platform that the program is traced for, applied to args.

    args          pytrees of arrays.
    default       the function for platforms that have none of their own.
    per_platform  functions by platform: cpu=, cuda=.

    Raises NotImplementedError where there is none for this platform; TypeError for what is not
    callable; ValueError for gpu=, which is no platform's name.

    >>> lax.platform_dependent(3.0, cpu=lambda x: 2 * x, default=lambda x: -x)
    6.0
    """
    for platform, branch in per_platform.items():
        if not callable(branch):
            raise TypeError(f"lax.platform_dependent: the '{platform}' branch must be a callable.")
        if platform == "gpu":
            raise ValueError("Use 'cuda' or 'rocm' for lax.platform_dependent.")
    if default is not None and not callable(default):
        raise TypeError("lax.platform_dependent: the 'default' branch must be a callable.")
    chosen = per_platform.get("cpu", default)
    if chosen is None:
        raise NotImplementedError(
            "platform_dependent has no branch for 'cpu' and no default, only for "
            f"{', '.join(per_platform) or 'nothing'}"
        )
    return chosen(*args)
