"""Jaxprs from text, with all of lamina's primitives known."""

from __future__ import annotations

import functools
from typing import Any

from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.jaxpr_parser import JaxprSyntaxError as JaxprSyntaxError
from lamina.core.jaxpr_parser import parse_jaxpr as _parse
from lamina.core.primitive import Primitive


def parse_jaxpr(text: str) -> ClosedJaxpr:
    """The jaxpr in `text`, in the notation that str(make_jaxpr(f)(x)) gives.

    Raises JaxprSyntaxError, showing the place, and JaxprTypeError where it is not well formed.
    """
    from lamina.core.jaxpr_checker import check_jaxpr

    closed = _parse(text, *_known())
    check_jaxpr(closed)
    return closed


@functools.cache
def _known() -> tuple[dict[str, Primitive], dict[str, Any]]:
    from lamina import lax
    from lamina.control_flow.checkpoint import checkpoint_p
    from lamina.control_flow.checkpoint_name import name_p
    from lamina.control_flow.cond import cond_p
    from lamina.control_flow.jit_call import jit_p
    from lamina.control_flow.lanes import lanes_p
    from lamina.control_flow.scan import scan_p
    from lamina.control_flow.two_forms import two_forms_p
    from lamina.control_flow.while_rules import while_p

    public = {name: getattr(lax, name) for name in dir(lax)}  # those, too, that nothing has named yet
    found = [v for v in public.values() if isinstance(v, Primitive)]
    higher = [checkpoint_p, cond_p, jit_p, lanes_p, name_p, scan_p, two_forms_p, while_p]
    primitives = {p.name: p for p in [*found, *higher]}
    names = {k: v for k, v in public.items() if isinstance(v, type)}
    return primitives, names
