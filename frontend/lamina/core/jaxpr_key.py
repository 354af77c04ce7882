"""A text that says all of a jaxpr that lowering reads, made fast: it names programs in the store.

Unlike the printed jaxpr it is for nobody to read: variables are numbers in the order in which they
are made, and a jaxpr that is a parameter in several places is written where it is met first.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from lamina.core.jaxpr_printer import param_text
from lamina.core.primitive import Primitive
from lamina.core.trace import Tracer, physical

_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))
"""Types of parameters whose repr says all."""


def jaxpr_key(jaxpr: Jaxpr) -> str | None:
    """The text, equal for jaxprs that lower to the same program up to locations; None where
    something in it has none: a user's primitive, a Python function that is called back."""
    writer = _Writer()
    try:
        writer.jaxpr(jaxpr)
    except _NoText:
        return None
    return "\n".join(writer.lines)


class _NoText(Exception):
    pass


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers: dict[Any, int] = {}  # variables, and jaxprs met before
        self._types: dict[int, str] = {}  # by what the jaxpr holds: few types are equal to others
        self._dtypes: dict[np.dtype, str] = {}

    def jaxpr(self, jaxpr: Jaxpr) -> None:
        numbers, type_of = self._numbers, self._type
        for binders in (jaxpr.constvars, jaxpr.invars):
            for v in binders:
                numbers[v] = len(numbers)
            self.lines.append(" ".join([type_of(v.aval) for v in binders]))
        for eqn in jaxpr.eqns:
            parts = [eqn.primitive.name]
            if eqn.params or type(eqn.primitive) is not Primitive:
                parts.append(self._params(eqn))
            for atom in eqn.invars:
                parts.append(self._literal(atom) if type(atom) is Literal else str(numbers[atom]))
            for v in eqn.outvars:
                numbers[v] = len(numbers)
                parts.append(type_of(v.aval))
            self.lines.append(" ".join(parts))
        outs = [
            self._literal(atom) if type(atom) is Literal else str(numbers[atom])
            for atom in jaxpr.outvars
        ]
        self.lines.append(f"return {' '.join(outs)}")

    def _type(self, aval: ShapedArray) -> str:
        text = self._types.get(id(aval))
        if text is None:
            text = self._types[id(aval)] = aval.str_short()
        return text

    def _literal(self, literal: Literal) -> str:
        value = literal.val
        # A number's bytes, since -0.0 is equal to 0.0 and NaN to nothing.
        text = repr(value) if type(value) in _PLAIN else np.asarray(value).tobytes().hex()
        return f"{type(value).__name__}={text}:{self._type(literal.aval)}"

    def _params(self, eqn: JaxprEqn) -> str:
        primitive = eqn.primitive
        if type(primitive) is not Primitive or primitive.name.endswith("_callback"):
            raise _NoText  # what its lowering does is in no text
        shown: Callable[[dict[str, Any]], dict[str, Any]] | None = primitive.shown
        params = eqn.params if shown is None else shown(eqn.params)
        return str([(name, self._param(params[name])) for name in sorted(params)])

    def _param(self, value: Any) -> str:
        kind = type(value)
        if kind in _PLAIN:
            return repr(value)
        if kind is ClosedJaxpr:
            return self._inner(value.jaxpr) + "".join(map(self._const, value.consts))
        if kind is Jaxpr:
            return self._inner(value)
        if isinstance(value, (tuple, list)):
            return f"{kind.__name__}({','.join([self._param(item) for item in value])})"
        if isinstance(value, np.dtype):
            known = self._dtypes.get(value)
            if known is None:
                known = self._dtypes[value] = f"{kind.__name__} {param_text(value)}"
            return known
        if isinstance(value, enum.Enum):
            return f"{kind.__name__}.{value.name}"
        if isinstance(value, dict):
            items = [f"{self._param(k)}:{self._param(v)}" for k, v in value.items()]
            return f"{kind.__name__}{{{','.join(items)}}}"
        if isinstance(value, (set, frozenset)):
            return f"{kind.__name__}{{{','.join(sorted(map(self._param, value)))}}}"
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [self._param(getattr(value, f.name)) for f in dataclasses.fields(value)]
            return f"{kind.__name__}({','.join(fields)})"
        if isinstance(value, Tracer):
            raise _NoText
        if hasattr(value, "__array__"):
            return self._array(np.asarray(physical(value)))
        return self._text(value)

    def _array(self, value: np.ndarray) -> str:
        if value.dtype.hasobject:
            raise _NoText
        return f"{value.dtype.name}{value.shape}{value.tobytes().hex()}"

    def _text(self, value: Any) -> str:
        """The repr, of lamina's own types alone: others may leave out digits, elements or fields."""
        kind = type(value)
        if kind.__module__.partition(".")[0] != "lamina" or kind.__repr__ is object.__repr__:
            raise _NoText
        text = repr(value)
        if " at 0x" in text:
            raise _NoText  # of a part that is told by its place in memory
        return f"{kind.__name__} {text}"

    def _const(self, value: Any) -> str:
        if isinstance(value, Tracer):
            raise _NoText
        return self._array(np.asarray(physical(value)))

    def _inner(self, jaxpr: Jaxpr) -> str:
        number = self._numbers.get(jaxpr)
        if number is None:
            number = self._numbers[jaxpr] = len(self._numbers)
            self.lines.append(f"begin {number}")
            self.jaxpr(jaxpr)
            self.lines.append("end")
        return f"jaxpr {number}"
