"""Jaxprs as text, in JAX's notation:

{ lambda ; a:f32[5]. let b:f32[5] = mul a 2.0; c:f32[5] = add b 1.0 in (c,) }
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina.core import dtypes, pretty
from lamina.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from lamina.core.pretty import Break, Concat, Doc, Group, Nest, Text, join

WIDTH = 80


class Names:
    """Gives variables the names a, b, ..., z, ba, bb, ... in order of appearance."""

    def __init__(self) -> None:
        self._names: dict[Var, str] = {}

    def __call__(self, var: Var) -> str:
        if isinstance(var, DropVar):
            return "_"
        name = self._names.get(var)
        if name is None:
            name = self._names[var] = _letters(len(self._names))
        return name


def _letters(n: int) -> str:
    out = ""
    while True:
        n, digit = divmod(n, 26)
        out = chr(ord("a") + digit) + out
        if not n:
            return out


def jaxpr_text(jaxpr: Jaxpr | ClosedJaxpr, *, width: int = WIDTH, source_info: bool = False) -> str:
    """The text of a jaxpr; with source_info each equation ends in `# file:line (function)`."""
    inner = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    return pretty.layout(_jaxpr(inner, Names(), source_info), width)


def _jaxpr(jaxpr: Jaxpr, names: Names, source_info: bool) -> Doc:
    head = f"{{ lambda {_binders(jaxpr.constvars, names)}; {_binders(jaxpr.invars, names)}"
    eqns: list[Doc] = [_equation(e, names, source_info) for e in jaxpr.eqns]
    outs = [literal_text(v) if type(v) is Literal else names(v) for v in jaxpr.outvars]  # type: ignore[arg-type]
    tail = "(" + ", ".join(outs) + ("," if len(outs) == 1 else "") + ")"
    body: list[Doc] = [Text((head[:-1] if jaxpr.invars else head) + ". let")]
    between = Concat([Break("; ")])
    if eqns:
        body.append(Nest(4, Concat([Break(" "), join(between, eqns)])))
    body.append(Nest(2, Concat([Break(" "), Text("in " + tail + " }")])))
    return Group(Concat(body))


def _binders(variables: list[Var], names: Names) -> str:
    return "".join(f"{names(v)}:{v.aval.str_short()} " for v in variables)


def _equation(eqn: JaxprEqn, names: Names, source_info: bool) -> Doc:
    args = [literal_text(v) if type(v) is Literal else names(v) for v in eqn.invars]  # type: ignore[arg-type]
    outs = " ".join(f"{names(v)}:{v.aval.str_short()}" for v in eqn.outvars)
    parts: list[Doc | str] = [f"{outs} = {eqn.primitive.name}" if outs else eqn.primitive.name]
    shown: Callable[[dict[str, Any]], dict[str, Any]] | None = eqn.primitive.shown
    params = shown(eqn.params) if shown is not None else dict(sorted(eqn.params.items()))
    if params:
        inner = [Concat([Text(f"{k}="), _param(v, source_info)]) for k, v in params.items()]
        parts.append(
            Group(
                Concat(
                    [
                        Text("["),
                        Nest(2, Concat([Break(""), join(Break(" "), inner)])),
                        Break(""),
                        Text("]"),
                    ]
                )
            )
        )
    parts.append("".join(" " + a for a in args))
    if source_info:
        parts.append(f"  # {eqn.source_info.summary()}")
    return pretty.concat(parts)


def _param(value: Any, source_info: bool) -> Doc:
    if isinstance(value, (Jaxpr, ClosedJaxpr)):
        inner = value.jaxpr if isinstance(value, ClosedJaxpr) else value
        return _jaxpr(inner, Names(), source_info)
    if isinstance(value, tuple) and any(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value):
        items = [_param(v, source_info) for v in value]
        return Group(
            Concat(
                [
                    Text("("),
                    Nest(2, Concat([Break(" "), join(Break(" "), items)])),
                    Break(" "),
                    Text(")"),
                ]
            )
        )
    return Text(param_text(value))


def param_text(value: Any) -> str:
    """A parameter without jaxprs, as text."""
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, tuple):
        inner = ", ".join(param_text(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return str(value)


_DEFAULT = (np.dtype("float32"), np.dtype("int32"), np.dtype("bool"))


def literal_text(literal: Literal) -> str:
    """2.0, 1, True; with its type where that is not the default one of such a number: 2.0:f16[].

    Floats have the fewest digits that tell them from others of their dtype.
    """
    dtype = literal.aval.dtype
    kind = dtypes.short_name(dtype)
    if dtype == dtypes.float0:
        return f"0:{kind}[]"
    text = str(literal.array())
    if dtypes.is_float(dtype):
        text = repr(float(text))
    return text if dtype in _DEFAULT else f"{text}:{kind}[]"
