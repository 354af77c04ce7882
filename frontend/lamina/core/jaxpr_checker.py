"""Type-checks jaxprs: each variable is defined once and before use, each result has the type that
its primitive's abstract evaluation gives."""

from __future__ import annotations

from typing import Any

from lamina.core.avals import ShapedArray, same_type
from lamina.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from lamina.core.placed import ShardingTypeError, undecided
from lamina.core.trace import get_aval
from lamina.errors import JaxprTypeError


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raises JaxprTypeError, naming the equation, where a jaxpr is not well formed.

    jaxpr  a Jaxpr or ClosedJaxpr.

    >>> lamina.extend.core.check_jaxpr(lamina.make_jaxpr(lambda x: x * 2)(1.0))
    """
    if isinstance(jaxpr, ClosedJaxpr):
        for var, const in zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True):
            if not same_type(var.aval, get_aval(const)):
                raise JaxprTypeError(
                    f"constant of type {get_aval(const).str_short()} for variable of type "
                    f"{var.aval.str_short()}"
                )
        jaxpr = jaxpr.jaxpr
    defined: set[Var] = set()
    for var in [*jaxpr.constvars, *jaxpr.invars]:
        _define(var, defined, "the inputs")
    for number, eqn in enumerate(jaxpr.eqns):
        where = f"equation {number} ({eqn.primitive} at {eqn.source_info.summary()})"
        for atom in eqn.invars:
            if not isinstance(atom, Literal) and atom not in defined:
                raise JaxprTypeError(f"{where} reads a variable that is not defined before it")
        _check_equation(eqn, where)
        for var in eqn.outvars:
            _define(var, defined, where)
    for atom in jaxpr.outvars:
        if not isinstance(atom, Literal) and atom not in defined:
            raise JaxprTypeError("a result is a variable that is not defined")


def _define(var: Var, defined: set[Var], where: str) -> None:
    if var in defined:
        raise JaxprTypeError(f"{where}: a variable is defined twice")
    if not isinstance(var, DropVar):
        defined.add(var)


def _result_types(eqn: JaxprEqn) -> Any:
    avals = [v.aval for v in eqn.invars]
    try:
        return eqn.primitive.result_types(avals, eqn.params)
    except (ShardingTypeError, NotImplementedError):
        with undecided():  # as under an out_sharding, and for cotangents, which are told theirs afterwards
            return eqn.primitive.result_types(avals, eqn.params)


def _check_equation(eqn: JaxprEqn, where: str) -> None:
    try:
        out = _result_types(eqn)
    except Exception as e:
        raise JaxprTypeError(f"{where}: {e}") from e
    avals: list[ShapedArray] = list(out) if eqn.primitive.multiple_results else [out]
    if len(avals) != len(eqn.outvars):
        raise JaxprTypeError(f"{where} has {len(eqn.outvars)} results where {len(avals)} are given")
    for var, aval in zip(eqn.outvars, avals, strict=True):
        if not same_type(var.aval, aval):
            raise JaxprTypeError(
                f"{where}: result declared {var.aval.str_short()} but is {aval.str_short()}"
            )
    for name, inner in subjaxprs(eqn.params):
        try:
            check_jaxpr(inner)
        except JaxprTypeError as e:
            raise JaxprTypeError(f"{where}, parameter {name}: {e}") from None
