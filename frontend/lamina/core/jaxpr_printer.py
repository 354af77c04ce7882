"""Jaxprs as text, in JAX's notation:

{ lambda ; a:f32[5]. let
    b:f32[5] = mul a 2.0
    c:f32[5] = add b 1.0
  in (c,) }

Names are given once for a whole text. In the jaxpr of a jit what is an operand or a result of the call goes by the
same name as outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
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
from lamina.core.library import library
from lamina.core.pretty import Break, Concat, Doc, Group, Nest, Text, join
from lamina.records import Record

WIDTH = 80


class Names:
    """Gives variables the names a, b, ..., z, ba, bb, ... in order of appearance, but for those that are taken."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._names: dict[Var, str] = {}
        self._taken, self._next = taken, 0

    def __call__(self, var: Var) -> str:
        if isinstance(var, DropVar):
            return "_"
        name = self._names.get(var)
        if name is None:
            name = self._names[var] = self._fresh()
        return name

    def _fresh(self) -> str:
        while True:
            name = _letters(self._next)
            self._next += 1
            if name not in self._taken:
                return name

    def carry_in(self, eqn: JaxprEqn, inside: Jaxpr) -> None:
        """Variables of a call's jaxpr that stand for what the call is given and gives go by the names outside."""
        used: set[str] = set()
        for pairs in (zip(inside.invars, eqn.invars), zip(inside.outvars, eqn.outvars)):
            for inner, outer in pairs:
                if isinstance(inner, Literal) or isinstance(outer, (Literal, DropVar)) or inner in self._names:
                    continue
                if (name := self(outer)) not in used:
                    self._names[inner] = name
                    used.add(name)


def _letters(n: int) -> str:
    out = ""
    while True:
        n, digit = divmod(n, 26)
        out = chr(ord("a") + digit) + out
        if not n:
            return out


def jaxpr_text(jaxpr: Jaxpr | ClosedJaxpr, *, width: int = WIDTH, source_info: bool = False) -> str:
    """The text of a jaxpr; with source_info each equation ends in `# file:line (function)`.

    A jaxpr that is a parameter in several places, and the long one of a jit, is written once, before the others:
    `let f = { ... } in { ... jit[name=f jaxpr=f] ... }`.
    """
    inner = _open(jaxpr)
    shared = _shared(inner)
    printer = _Printer(source_info, shared, Names(frozenset(shared.values())))
    docs: list[Doc] = []
    for one, name in shared.items():
        docs += [Text(f"let {name} = "), printer.jaxpr(one), Text(" in"), Break(" ")]
    return pretty.layout(Concat([*docs, printer.jaxpr(inner)]), width)


def _open(jaxpr: Jaxpr | ClosedJaxpr) -> Jaxpr:
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr


_LONG = 10  # equations, up to which the jaxpr of a jit is read more easily where the call stands


def _shared(jaxpr: Jaxpr) -> dict[Jaxpr, str]:
    """The jaxprs that are written before, in the order in which they are met, with names."""
    uses: dict[Jaxpr, int] = {}
    names: dict[Jaxpr, str] = {}

    def visit(inside: Jaxpr) -> None:
        for eqn in inside.eqns:
            for _, inner in subjaxprs(eqn.params):
                is_long = eqn.primitive.name == "jit" and len(inner.eqns) > _LONG
                uses[inner] = uses.get(inner, 0) + 1 + is_long
                if inner not in names:
                    names[inner] = str(eqn.params.get("name", eqn.primitive.name))
                    visit(inner)

    visit(jaxpr)
    out: dict[Jaxpr, str] = {}
    taken: set[str] = set()
    for inner, given in names.items():
        if uses[inner] > 1:
            base = name = re.sub(r"\W", "", given).strip("_") or "f"
            n = 0
            while name in taken:
                n += 1
                name = f"{base}{n}"
            taken.add(name)
            out[inner] = name
    return out


class _Printer(Record, frozen=False):
    source_info: bool
    shared: dict[Jaxpr, str]
    names: Names

    def jaxpr(self, jaxpr: Jaxpr) -> Doc:
        names = self.names
        head = f"{{ lambda {_binders(jaxpr.constvars, names)}; {_binders(jaxpr.invars, names)}"
        eqns = [self.equation(e) for e in jaxpr.eqns]
        outs = [_atom(v, names) for v in jaxpr.outvars]
        tail = "(" + ", ".join(outs) + ("," if len(outs) == 1 else "") + ")"
        body: list[Doc] = [Text((head[:-1] if jaxpr.invars else head) + ". let")]
        body.append(Nest(4, Concat([Break(" "), join(Break("; "), eqns)])))
        body.append(Nest(2, Concat([Break(" "), Text("in " + tail + " }")])))
        # A place is a comment up to the end of the line.
        return Concat(body) if self.source_info else Group(Concat(body))

    def equation(self, eqn: JaxprEqn) -> Doc:
        names = self.names
        args = [_atom(v, names) for v in eqn.invars]
        outs = " ".join(f"{names(v)}:{v.aval.str_short()}" for v in eqn.outvars)
        parts: list[Doc] = [Text(f"{outs} = {eqn.primitive.name}" if outs else eqn.primitive.name)]
        shown: Callable[[dict[str, Any]], dict[str, Any]] | None = eqn.primitive.shown
        params = shown(eqn.params) if shown is not None else dict(sorted(eqn.params.items()))
        if eqn.primitive.name == "jit" and _open(eqn.params["jaxpr"]) not in self.shared:
            names.carry_in(eqn, _open(eqn.params["jaxpr"]))
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
        inner = ", ".join(repr(v) if isinstance(v, str) else param_text(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return str(value)


_DEFAULT = (np.dtype("float32"), np.dtype("int32"), np.dtype("bool"))


def literal_text(literal: Literal) -> str:
    """2.0, 1, True; with its type where that is not the default one of such a number: 2.0:f16[]. By JAX's names
    with its type always, as JAX prints it.

    Floats have the fewest digits that tell them from others of their dtype.
    """
    dtype = literal.aval.dtype
    kind = dtypes.short_name(dtype)
    if dtype == dtypes.float0:
        return f"0:{kind}[]"
    text = str(literal.array())
    if dtypes.is_float(dtype):
        text = repr(float(text))
    return text if dtype in _DEFAULT and library.name != "JAX" else f"{text}:{kind}[]"
