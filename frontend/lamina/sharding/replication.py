"""Along which mesh axes the values of a body may differ from device to device.

This is what `check_vma` checks results by: a result that out_specs call equal on all devices of an
axis must be known to be so. Collectives and control flow have rules here; whatever else there is
varies as its operands do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina.core import axes
from lamina.core.jaxpr import Jaxpr, Literal

Varying = frozenset[Any]
NOWHERE: Varying = frozenset()

Rule = Callable[[Sequence[Varying], dict[str, Any]], Sequence[Varying]]


def varying_results(jaxpr: Jaxpr, inputs: Sequence[Varying]) -> list[Varying]:
    """For each result, the axes along which it may vary."""
    env: dict[Any, Varying] = dict.fromkeys(jaxpr.constvars, NOWHERE)
    env.update(zip(jaxpr.invars, inputs, strict=True))

    def read(v: Any) -> Varying:
        return NOWHERE if type(v) is Literal else env[v]

    for eqn in jaxpr.eqns:
        ins = [read(v) for v in eqn.invars]
        rule = _RULES.get(eqn.primitive.name, _like_operands)
        outs = rule(ins, {**eqn.params, "_eqn": eqn})
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _all(ins: Sequence[Varying]) -> Varying:
    return NOWHERE.union(*ins)


def _like_operands(ins: Sequence[Varying], params: dict[str, Any]) -> list[Varying]:
    eqn = params["_eqn"]
    return [_all(ins) | axes.used_by(eqn.primitive, eqn.params)] * len(eqn.outvars)


def _reduction(ins: Sequence[Varying], params: dict[str, Any]) -> list[Varying]:
    if params["axis_index_groups"] is not None:
        return [_all(ins) | set(params["axes"])]
    return [_all(ins) - set(params["axes"])]


def _all_gather(ins: Sequence[Varying], params: dict[str, Any]) -> list[Varying]:
    if params["axis_index_groups"] is not None:
        return [_all(ins) | {params["axis_name"]}]
    return [_all(ins) - {params["axis_name"]}]


def _call(ins: Sequence[Varying], params: dict[str, Any]) -> list[Varying]:
    closed = params["jaxpr"] if "jaxpr" in params else params["call_jaxpr"]
    return varying_results(closed.jaxpr, ins)


def _cond(ins: Sequence[Varying], params: dict[str, Any]) -> list[Varying]:
    results = [varying_results(b.jaxpr, ins[1:]) for b in params["branches"]]
    return [_all([ins[0], *each]) for each in zip(*results, strict=True)]


def _grown(start: Sequence[Varying], step: Callable[[list[Varying]], Sequence[Varying]]) -> list[Varying]:  # fmt: skip
    """Carried values, once a further step does not make them vary more."""
    carry = list(start)
    while True:
        new = [a | b for a, b in zip(carry, step(carry), strict=True)]
        if new == carry:
            return carry
        carry = new


def _scan(ins: Sequence[Varying], params: dict[str, Any]) -> list[Varying]:
    body, n, m = params["jaxpr"].jaxpr, params["num_consts"], params["num_carry"]
    consts, carry, xs = list(ins[:n]), ins[n : n + m], list(ins[n + m :])

    def step(carry: list[Varying]) -> Sequence[Varying]:
        return varying_results(body, [*consts, *carry, *xs])[:m]

    carry = _grown(carry, step)
    return carry + varying_results(body, [*consts, *carry, *xs])[m:]


def _while(ins: Sequence[Varying], params: dict[str, Any]) -> list[Varying]:
    test, body = params["cond_jaxpr"].jaxpr, params["body_jaxpr"].jaxpr
    n, m = params["cond_nconsts"], params["body_nconsts"]
    of_test, of_body, carry = list(ins[:n]), list(ins[n : n + m]), ins[n + m :]

    def step(carry: list[Varying]) -> Sequence[Varying]:
        (again,) = varying_results(test, [*of_test, *carry])
        return [v | again for v in varying_results(body, [*of_body, *carry])]

    return _grown(carry, step)


_RULES: dict[str, Rule] = {
    "psum": _reduction,
    "pmax": _reduction,
    "pmin": _reduction,
    "all_gather": _all_gather,
    "jit": _call,
    "custom_jvp_call": _call,
    "cond": _cond,
    "scan": _scan,
    "while": _while,
}
