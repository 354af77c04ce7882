"""Jaxprs as text, in JAX's notation:

{ lambda ; a:f32[5]. let b:f32[5] = mul a 2.0; c:f32[5] = add b 1.0 in (c,) }
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina.core import dtypes, pretty
from lamina.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    subjaxprs,
)
from lamina.core.pretty import Break, Concat, Doc, Group, Nest, Text, join
from lamina.records import Record

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
    """The text of a jaxpr; with source_info each equation ends in `# file:line (function)`.

    A jaxpr that is a parameter in several places is written once, before the others:
    `let f = { ... } in { ... jit[name=f jaxpr=f] ... }`.
    """
    inner = _open(jaxpr)
    printer = _Printer(source_info, _shared(inner))
    docs: list[Doc] = []
    for shared, name in printer.shared.items():
        docs += [Text(f"let {name} = "), printer.jaxpr(shared), Text(" in"), Break(" ")]
    return pretty.layout(Concat([*docs, printer.jaxpr(inner)]), width)


def _open(jaxpr: Jaxpr | ClosedJaxpr) -> Jaxpr:
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr


def _shared(jaxpr: Jaxpr) -> dict[Jaxpr, str]:
    """The jaxprs met more than once, each after those it uses itself, with names."""
    uses: dict[Jaxpr, int] = {}
    names: dict[Jaxpr, str] = {}
    order: list[Jaxpr] = []

    def visit(inside: Jaxpr) -> None:
        for eqn in inside.eqns:
            for _, inner in subjaxprs(eqn.params):
                uses[inner] = uses.get(inner, 0) + 1
                if uses[inner] == 1:
                    names[inner] = str(eqn.params.get("name", eqn.primitive.name))
                    visit(inner)
                    order.append(inner)

    visit(jaxpr)
    out: dict[Jaxpr, str] = {}
    taken: set[str] = set()
    for inner in order:
        if uses[inner] > 1:
            base = name = re.sub(r"\W", "_", names[inner])
            n = 0
            while name in taken:
                name, n = f"{base}_{n}", n + 1
            taken.add(name)
            out[inner] = name
    return out


class _Printer(Record, frozen=False):
    source_info: bool
    shared: dict[Jaxpr, str]

    def jaxpr(self, jaxpr: Jaxpr) -> Doc:
        names = Names()
        head = f"{{ lambda {_binders(jaxpr.constvars, names)}; {_binders(jaxpr.invars, names)}"
        eqns = [self.equation(e, names) for e in jaxpr.eqns]
        outs = [_atom(v, names) for v in jaxpr.outvars]
        tail = "(" + ", ".join(outs) + ("," if len(outs) == 1 else "") + ")"
        body: list[Doc] = [Text((head[:-1] if jaxpr.invars else head) + ". let")]
        if eqns:
            body.append(Nest(4, Concat([Break(" "), join(Break("; "), eqns)])))
        body.append(Nest(2, Concat([Break(" "), Text("in " + tail + " }")])))
        # A place is a comment up to the end of the line.
        return Concat(body) if self.source_info else Group(Concat(body))

    def equation(self, eqn: JaxprEqn, names: Names) -> Doc:
        args = [_atom(v, names) for v in eqn.invars]
        outs = " ".join(f"{names(v)}:{v.aval.str_short()}" for v in eqn.outvars)
        parts: list[Doc] = [Text(f"{outs} = {eqn.primitive.name}" if outs else eqn.primitive.name)]
        shown: Callable[[dict[str, Any]], dict[str, Any]] | None = eqn.primitive.shown
        params = shown(eqn.params) if shown is not None else dict(sorted(eqn.params.items()))
        if params:
            inner = [Concat([Text(f"{k}="), self.param(v)]) for k, v in params.items()]
            parts.append(_bracketed("[", inner, "]", ""))
        parts.append(Text("".join(" " + a for a in args)))
        if self.source_info:
            parts.append(Text(f"  # {eqn.source_info.summary()}"))
        return Concat(parts)

    def param(self, value: Any) -> Doc:
        if isinstance(value, (Jaxpr, ClosedJaxpr)):
            inner = _open(value)
            return Text(self.shared[inner]) if inner in self.shared else self.jaxpr(inner)
        if isinstance(value, tuple) and any(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value):
            return _bracketed("(", [self.param(v) for v in value], ")", " ")
        return Text(param_text(value))


def _bracketed(left: str, items: Sequence[Doc], right: str, space: str) -> Doc:
    inside = Nest(2, Concat([Break(space), join(Break(" "), items)]))
    return Group(Concat([Text(left), inside, Break(space), Text(right)]))


def _binders(variables: list[Var], names: Names) -> str:
    return "".join(f"{names(v)}:{v.aval.str_short()} " for v in variables)


def _atom(atom: Atom, names: Names) -> str:
    return literal_text(atom) if isinstance(atom, Literal) else names(atom)


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
