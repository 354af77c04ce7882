"""Transposition of linear programs: runs a linear jaxpr backwards on cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from lamina.core import tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var
from lamina.core.placed import terms_wanted, undecided
from lamina.core.primitive import NOT_LINEAR, OWED
from lamina.core.source_info import SourceInfo, at_places
from lamina.core.tangents import UndefinedPrimal, UnknownOperand, Zero, is_undefined_primal
from lamina.interpreters.backward_logs import collected, refuse
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import add_tangents, instantiate_zero


def backward_pass(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """Cotangents of the inputs given as UndefinedPrimal (None for the others; Zero where the
    result does not depend on an input).

    jaxpr       a program that is linear in those inputs.
    consts      the values of its constants.
    args        its inputs: values, or UndefinedPrimal where the program is linear in them.
    cotangents  one for each result, of its type, or Zero.

    Raises NotImplementedError where a primitive that is not linear reads such an input.

    >>> closed = lamina.make_jaxpr(lambda x, y: x * y)(3.0, 2.0)
    >>> unknown = lamina.interpreters.ad.UndefinedPrimal(closed.in_avals[0])
    >>> inputs = [unknown, jnp.float32(2)]
    >>> lamina.interpreters.ad.backward_pass(closed.jaxpr, [], inputs, [jnp.float32(1)])
    [Array(2., dtype=float32), None]
    """
    if all(type(ct) is Zero for ct in cotangents):
        return [Zero(x.aval.to_cotangent_aval()) if is_undefined_primal(x) else None for x in args]
    typed = any([v.aval.placed is not None for v in (*jaxpr.invars, *jaxpr.constvars)])
    with at_places() as at, undecided(typed):
        known, linear, backwards = _run_known(jaxpr, consts, args, at)
        sums = _Sums(linear)
        sums.add(jaxpr.outvars, cotangents)
        for eqn in reversed(backwards):
            _transpose(eqn, known, sums, at)
    return [
        sums.of.get(v, Zero(x.aval.to_cotangent_aval())) if is_undefined_primal(x) else None
        for v, x in zip(jaxpr.invars, args, strict=True)
    ]


def _run_known(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], at: Callable[[SourceInfo], None]
) -> tuple[dict[Var, Any], set[Var], list[JaxprEqn]]:
    """The values that no linear input reaches, the variables that one does, and the equations
    that make those.
    """
    linear: set[Var] = set()
    known: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    for v, x in zip(jaxpr.invars, args, strict=True):
        if is_undefined_primal(x):
            linear.add(v)
        else:
            known[v] = x
    backwards: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        invars: list[Any] = eqn.invars
        for x in invars:
            if type(x) is not Literal and x in linear:
                linear.update(eqn.outvars)
                backwards.append(eqn)
                break
        else:
            at(eqn.source_info)
            operands = [x.val if type(x) is Literal else known[x] for x in invars]
            out = eqn.primitive.bind(*operands, **eqn.params)
            known.update(
                zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True)
            )
    return known, linear, backwards


class _Sums:
    """Cotangents of linear variables, added up."""

    def __init__(self, linear: set[Var]) -> None:
        self.linear = linear
        self.of: dict[Var, Any] = {}

    def add(self, variables: Sequence[Any], cotangents: Sequence[Any]) -> None:
        for v, ct in zip(variables, cotangents, strict=True):
            if ct is None or type(ct) is Zero or type(v) is Literal or v not in self.linear:
                continue
            before = self.of.get(v)
            self.of[v] = ct if before is None else add_tangents(before, ct)

    def take(self, eqn: JaxprEqn) -> Any:
        """The cotangents of the results of an equation as its rule wants them; None if there are
        none.
        """
        if not eqn.primitive.multiple_results:
            return self.of.pop(eqn.outvars[0], None)
        cts = [self.of.pop(v, None) for v in eqn.outvars]
        if all(ct is None for ct in cts):
            return None
        return [
            Zero(v.aval.to_cotangent_aval()) if ct is None else ct
            for v, ct in zip(eqn.outvars, cts, strict=True)
        ]


def _transpose(
    eqn: JaxprEqn, known: dict[Var, Any], sums: _Sums, at: Callable[[SourceInfo], None]
) -> None:
    """Adds what the cotangents of an equation's results give those of its linear operands."""
    given = sums.take(eqn)
    if given is None:
        return
    operands: list[Any] = []
    invars: list[Any] = eqn.invars
    for v in invars:
        if type(v) is Literal:
            operands.append(v.val)
        else:
            operands.append(UndefinedPrimal(v.aval) if v in sums.linear else known[v])
    rule = eqn.primitive.transpose
    if rule is NOT_LINEAR or rule is OWED:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{eqn.primitive}' not "
            f"implemented, at {eqn.source_info.summary()}"
        )
    at(eqn.source_info)
    places = [v.aval if v.aval.placed is not None else None for v in invars]
    counts_once = any(a is not None and a.placed.sums.reduced for a in places)
    try:
        with terms_wanted() if counts_once else nullcontext():
            out = rule(given, *operands, **eqn.params)
    except UnknownOperand:
        raise TypeError(_not_linear(eqn, operands)) from None
    if out is not None:
        if any(places):
            out = [_as_typed(ct, aval) for ct, aval in zip(out, places, strict=True)]
        sums.add(eqn.invars, out)


def _as_typed(ct: Any, aval: ShapedArray | None) -> Any:
    """A cotangent that lies as those of the value to which it belongs do."""
    if aval is None or ct is None or type(ct) is Zero:
        return ct
    from lamina import lax

    return lax.as_typed(ct, aval.to_cotangent_aval())


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
    Also gives for which inputs there is a cotangent. Raises NotImplementedError where a rule logs.
    """
    out, given, logs = transpose_with_logs(closed, linear, nonzero_cts, instantiate)
    if logs is not None:
        info = closed.jaxpr.debug_info
        refuse(tree.unflatten(logs, [None] * logs.num_leaves), f"control flow of {info.function}")
    return out, given


def transpose_with_logs(
    closed: ClosedJaxpr,
    linear: Sequence[bool],
    nonzero_cts: Sequence[bool],
    instantiate: bool,
) -> tuple[ClosedJaxpr, tuple[bool, ...], Any]:
    """As transpose_jaxpr, where what rules log are further results, and the last thing given is
    their structure: None where there are none."""
    given_out: list[bool] = []
    logs_tree: list[Any] = [None]

    def fun(*args: Any) -> list[Any]:
        given = iter(args)
        operands = [
            UndefinedPrimal(a) if lin else next(given)
            for a, lin in zip(closed.in_avals, linear, strict=True)
        ]
        cts = [
            next(given) if nz else Zero(a.to_cotangent_aval())
            for a, nz in zip(closed.out_avals, nonzero_cts, strict=True)
        ]
        with collected() as logs:
            out = backward_pass(closed.jaxpr, closed.consts, operands, cts)
        out = [
            Zero(a.to_cotangent_aval()) if ct is None and lin else ct
            for ct, a, lin in zip(out, closed.in_avals, linear, strict=True)
        ]
        given_out[:] = [
            lin and (instantiate or type(ct) is not Zero)
            for ct, lin in zip(out, linear, strict=True)
        ]
        logged, structure = tree.flatten(logs)
        logs_tree[0] = structure if logs else None
        return [instantiate_zero(ct) for ct, g in zip(out, given_out, strict=True) if g] + logged

    avals = [a for a, lin in zip(closed.in_avals, linear, strict=True) if not lin]
    avals += [a.to_cotangent_aval() for a, nz in zip(closed.out_avals, nonzero_cts, strict=True) if nz]
    info = closed.jaxpr.debug_info
    out = trace_to_jaxpr(fun, avals, DebugInfo("transpose", info.function, info.location))
    return out, tuple(given_out), logs_tree[0]
