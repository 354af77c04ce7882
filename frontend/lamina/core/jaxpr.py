"""Jaxprs: programs as lists of primitive applications in SSA form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lamina.core.avals import ShapedArray
from lamina.core.effects import NO_EFFECTS, Effects
from lamina.core.placed import undecided
from lamina.core.primitive import Primitive
from lamina.core.source_info import UNKNOWN, SourceInfo, at_places
from lamina.records import Record


class Var:
    """A variable: assigned once. Its name is given when a jaxpr is printed."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """A result that nobody reads; printed as _."""

    __slots__ = ()


class Literal:
    """A scalar written into the program."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray) -> None:
        self.val, self.aval = val, aval

    def array(self) -> np.ndarray:
        """The value as an array of its type."""
        with np.errstate(over="ignore"):  # a number too large for its dtype is infinite
            return np.asarray(self.val, self.aval.dtype)

    def key(self) -> tuple[Any, ...]:
        """Different for values of different bits."""
        value, dtype = self.val, self.aval.dtype
        is_exact = isinstance(value, np.generic) and value.dtype == dtype
        return dtype, (value if is_exact else self.array()).tobytes()

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal


class JaxprEqn:
    """outvars = primitive[params](invars), made at source_info."""

    __slots__ = ("invars", "outvars", "params", "primitive", "source_info")

    def __init__(
        self,
        invars: list[Atom],
        outvars: list[Var],
        primitive: Primitive,
        params: dict[str, Any],
        source_info: SourceInfo = UNKNOWN,
    ) -> None:
        self.invars, self.outvars = invars, outvars
        self.primitive, self.params, self.source_info = primitive, params, source_info

    @property
    def effects(self) -> Effects:
        """What it does besides giving results."""
        return self.primitive.effects_on([v.aval for v in self.invars], self.params)

    def replace(self, **changes: Any) -> JaxprEqn:
        new = {s: getattr(self, s) for s in self.__slots__}
        new.update(changes)
        return JaxprEqn(**new)

    def __repr__(self) -> str:
        return f"{self.outvars} = {self.primitive} {self.invars}"


class DebugInfo(Record):
    """Where a traced function comes from: for messages and for names in the IR."""

    kind: str  # jit, vmap, scan body, ...
    function: str = "<function>"
    location: str = ""
    arg_names: tuple[str, ...] = ()
    result_paths: tuple[str, ...] = ()

    def place(self) -> str:
        """The function and where it is defined: f at FILE:LINE."""
        return f"{self.function} at {self.location}" if self.location else self.function

    def describe(self) -> str:
        return f"{self.place()} for {self.kind}"


NO_DEBUG_INFO = DebugInfo("a transformation")


class Jaxpr:
    """A program with free constants: `{ lambda constvars ; invars. let eqns in outvars }`."""

    __slots__ = ("__weakref__", "_effects", "constvars", "debug_info", "eqns", "invars", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        debug_info: DebugInfo = NO_DEBUG_INFO,
    ) -> None:
        self.constvars, self.invars = list(constvars), list(invars)
        self.outvars, self.eqns = list(outvars), list(eqns)
        self.debug_info = debug_info
        self._effects: Effects | None = None

    @property
    def effects(self) -> Effects:
        """The effects of its equations."""
        if self._effects is None:
            self._effects = NO_EFFECTS.union(*(eqn.effects for eqn in self.eqns))
        return self._effects

    def pretty_print(self, *, source_info: bool = False, **options: Any) -> str:
        """The text, with places in the user's code beside equations where asked for; JAX's other
        options (print_shapes, use_color, name_stack, ...) are accepted and change nothing."""
        from lamina.core.jaxpr_printer import jaxpr_text

        return jaxpr_text(self, source_info=source_info)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__


class ClosedJaxpr:
    """A jaxpr with the values of its constants."""

    __slots__ = ("__weakref__", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        assert len(consts) == len(jaxpr.constvars), (len(consts), len(jaxpr.constvars))
        self.jaxpr, self.consts = jaxpr, list(consts)

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.outvars]

    constvars = property(lambda self: self.jaxpr.constvars)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    debug_info = property(lambda self: self.jaxpr.debug_info)
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)
    literals = property(lambda self: self.consts)

    def pretty_print(self, *, source_info: bool = False, **options: Any) -> str:
        """See Jaxpr.pretty_print."""
        return self.jaxpr.pretty_print(source_info=source_info, **options)

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


def eval_jaxpr(jaxpr: Jaxpr | ClosedJaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Applies a jaxpr's equations in turn, in the current trace: a list of results.

    jaxpr   a Jaxpr or ClosedJaxpr.
    consts  the values of its constants,
    args    and of its inputs.

    >>> closed = lamina.make_jaxpr(lambda x: x * 2)(1.0)
    >>> lamina.extend.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    if isinstance(jaxpr, ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    env: dict[Var, Any] = {}
    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    typed = any([v.aval.placed is not None for v in (*jaxpr.invars, *jaxpr.constvars)])
    with at_places() as at, undecided(typed):  # that it says enough was seen when it was traced
        for eqn in jaxpr.eqns:
            at(eqn.source_info)
            values = [v.val if type(v) is Literal else env[v] for v in eqn.invars]  # type: ignore[index,union-attr]
            out = eqn.primitive.bind(*values, **eqn.params)
            if eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, out, strict=True))
            else:
                env[eqn.outvars[0]] = out
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]  # type: ignore[index,union-attr]


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A Python function of flat arguments that evaluates a jaxpr, and gives a list.

    closed  a ClosedJaxpr.

    >>> lamina.extend.core.jaxpr_as_fun(lamina.make_jaxpr(lambda x: x * 2)(1.0))(3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


def subjaxprs(params: dict[str, Any]) -> Iterator[tuple[str, Jaxpr]]:
    """The jaxprs among an equation's parameters, with the names of the parameters."""
    for name, value in params.items():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield name, item.jaxpr
            elif isinstance(item, Jaxpr):
                yield name, item


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], *, keep_inputs: bool = True
) -> tuple[Jaxpr, list[bool]]:
    """Drops unread results and the equations without effects that only they need.

    Gives the new jaxpr and, for each input, whether it is still read. With keep_inputs the inputs
    stay in the jaxpr whether read or not.
    """
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    live: set[Var] = {v for v in outvars if isinstance(v, Var)}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        read = [v in live for v in eqn.outvars]
        if any(read) or eqn.effects:
            if eqn.primitive.dce is not None and not all(read):
                eqn = eqn.primitive.dce(eqn, read)
            eqns.append(eqn)
            live.update(v for v in eqn.invars if type(v) is not Literal)  # type: ignore[misc]
    used = [v in live for v in jaxpr.invars]
    invars = jaxpr.invars if keep_inputs else [v for v in jaxpr.invars if v in live]
    return Jaxpr(jaxpr.constvars, invars, outvars, eqns[::-1], jaxpr.debug_info), used


def dce_nested(closed: ClosedJaxpr, used_outputs: Sequence[bool]) -> tuple[ClosedJaxpr, list[bool]]:
    """A jaxpr without constants, less its unread results and inputs; and which inputs it reads."""
    jaxpr, used = dce_jaxpr(closed.jaxpr, used_outputs, keep_inputs=False)
    return close_jaxpr(jaxpr), used


def kept(values: Sequence[Any], keep: Sequence[bool]) -> list[Any]:
    """The values whose flag is set."""
    return [x for x, k in zip(values, keep, strict=True) if k]


def convert_constvars(jaxpr: Jaxpr) -> Jaxpr:
    """The same program with its constants as leading inputs.

    jaxpr  the program.

    >>> table = jnp.arange(3.0)
    >>> jaxpr = lamina.make_jaxpr(lambda x: x + table)(1.0).jaxpr
    >>> len(lamina.interpreters.partial_eval.convert_constvars_jaxpr(jaxpr).invars)
    2
    """
    return Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns, jaxpr.debug_info)


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A jaxpr without constants, closed.

    jaxpr  the program.

    >>> jaxpr = lamina.make_jaxpr(jnp.sin)(0.0).jaxpr
    >>> lamina.interpreters.partial_eval.close_jaxpr(jaxpr).consts
    []
    """
    return ClosedJaxpr(jaxpr, ())


def all_equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """The equations of a jaxpr and of all jaxprs within it, each jaxpr once."""
    seen: set[Jaxpr] = set()

    def visit(inside: Jaxpr) -> Iterator[JaxprEqn]:
        for eqn in inside.eqns:
            yield eqn
            for _, inner in subjaxprs(eqn.params):
                if inner not in seen:
                    seen.add(inner)
                    yield from visit(inner)

    return visit(jaxpr)
