"""Transposition of linear programs: runs a linear jaxpr backwards on cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var
from lamina.core.primitive import NOT_LINEAR, OWED
from lamina.core.source_info import SourceInfo, at_places
from lamina.core.tangents import UndefinedPrimal, UnknownOperand, Zero, is_undefined_primal
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import add_tangents, instantiate_zero


def backward_pass(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """Cotangents of the inputs given as UndefinedPrimal (None for the others; Zero where the
    result does not depend on an input).

    `args` are the inputs: values, or UndefinedPrimal where the program is linear in them.
    """
    if all(type(ct) is Zero for ct in cotangents):
        return [Zero(x.aval) if is_undefined_primal(x) else None for x in args]
    with at_places() as at:
        return _backward_pass(jaxpr, consts, args, cotangents, at)


def _backward_pass(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    args: Sequence[Any],
    cotangents: Sequence[Any],
    at: Callable[[SourceInfo], None],
) -> list[Any]:
    linear: set[Var] = {
        v for v, x in zip(jaxpr.invars, args, strict=True) if is_undefined_primal(x)
    }
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(
        (v, x) for v, x in zip(jaxpr.invars, args, strict=True) if not is_undefined_primal(x)
    )

    def read(v: Any) -> Any:
        return v.val if type(v) is Literal else env[v]

    backwards: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            if type(v) is not Literal and v in linear:
                linear.update(eqn.outvars)
                backwards.append(eqn)
                break
        else:
            at(eqn.source_info)
            out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
            env.update(
                zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True)
            )

    ct_env: dict[Var, Any] = {}

    def write(v: Any, ct: Any) -> None:
        if ct is not None and type(ct) is not Zero and type(v) is not Literal and v in linear:
            before = ct_env.get(v)
            ct_env[v] = ct if before is None else add_tangents(before, ct)

    for v, ct in zip(jaxpr.outvars, cotangents, strict=True):
        write(v, ct)
    for eqn in reversed(backwards):
        primitive = eqn.primitive
        given: Any
        if primitive.multiple_results:
            cts = [ct_env.pop(v, None) for v in eqn.outvars]
            if all(ct is None for ct in cts):
                continue
            given = [
                Zero(v.aval) if ct is None else ct for v, ct in zip(eqn.outvars, cts, strict=True)
            ]
        else:
            given = ct_env.pop(eqn.outvars[0], None)
            if given is None:
                continue
        operands = [
            UndefinedPrimal(v.aval) if type(v) is not Literal and v in linear else read(v)
            for v in eqn.invars
        ]
        rule = primitive.transpose
        if rule is NOT_LINEAR or rule is OWED:
            raise NotImplementedError(
                f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not "
                f"implemented, at {eqn.source_info.summary()}"
            )
        at(eqn.source_info)
        try:
            out = rule(given, *operands, **eqn.params)
        except UnknownOperand:
            raise TypeError(_not_linear(eqn, operands)) from None
        if out is None:
            continue
        for v, ct in zip(eqn.invars, out, strict=True):
            write(v, ct)
    return [
        ct_env.get(v, Zero(x.aval)) if is_undefined_primal(x) else None
        for v, x in zip(jaxpr.invars, args, strict=True)
    ]


def _not_linear(eqn: JaxprEqn, operands: Sequence[Any]) -> str:
    unknown = [i for i, x in enumerate(operands) if is_undefined_primal(x)]
    which = f"operand {unknown[0]}" if len(unknown) == 1 else f"operands {unknown} together"
    types = ", ".join(operands[i].aval.str_short() for i in unknown)
    return (
        f"'{eqn.primitive}' is not linear in its {which} ({types}), at {eqn.source_info.summary()}. "
        "Only a function that is linear in all its arguments can be transposed: use vjp for others."
    )


def transpose_jaxpr(
    closed: ClosedJaxpr,
    linear: Sequence[bool],
    nonzero_cts: Sequence[bool],
    instantiate: bool,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The transpose as a jaxpr: the inputs that are not linear, then the nonzero cotangents of the
    results -> the cotangents of linear inputs.

    With `instantiate` every linear input gets one, else only those that the program depends on.
    Also gives for which inputs there is a cotangent.
    """
    given_out: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        given = iter(args)
        operands = [
            UndefinedPrimal(a) if lin else next(given)
            for a, lin in zip(closed.in_avals, linear, strict=True)
        ]
        cts = [
            next(given) if nz else Zero(a.to_tangent_aval())
            for a, nz in zip(closed.out_avals, nonzero_cts, strict=True)
        ]
        out = backward_pass(closed.jaxpr, closed.consts, operands, cts)
        out = [
            Zero(a.to_tangent_aval()) if ct is None and lin else ct
            for ct, a, lin in zip(out, closed.in_avals, linear, strict=True)
        ]
        given_out[:] = [
            lin and (instantiate or type(ct) is not Zero)
            for ct, lin in zip(out, linear, strict=True)
        ]
        return [instantiate_zero(ct) for ct, g in zip(out, given_out, strict=True) if g]

    avals = [a for a, lin in zip(closed.in_avals, linear, strict=True) if not lin]
    avals += [a.to_tangent_aval() for a, nz in zip(closed.out_avals, nonzero_cts, strict=True) if nz]
    info = closed.jaxpr.debug_info
    out = trace_to_jaxpr(fun, avals, DebugInfo("transpose", info.function, info.location))
    return out, tuple(given_out)
