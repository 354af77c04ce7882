"""two_forms: a function in two forms that give the same, of which each target takes the better one.

`plain` is what any tool reads: the decomposition of a StableHLO composite. `in_blocks` is for targets
with few threads and deep caches; `stablehlo-choose-forms` puts it in place for those. Every rule is the
rule of the two programs, side by side. What a derivative needs is computed again from the inputs, so
that both forms need the same; where the two computations stand side by side they are merged. Where the
order shows in derivatives, they are those of `plain` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.varying import retyped, varying
from lamina.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    all_equations,
    close_jaxpr,
    dce_jaxpr,
    jaxpr_as_fun,
    kept,
)
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero, is_undefined_primal
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.batching import batch_jaxpr, batched_size, batches_first
from lamina.interpreters.jvp import jvp_jaxpr
from lamina.interpreters.linearize import partial_eval_jaxpr
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.transpose import transpose_jaxpr

Forms = tuple[ClosedJaxpr, ClosedJaxpr]


def bind_forms(plain: ClosedJaxpr, in_blocks: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of either program on args. What the programs close over become operands: those of
    one are none to the other."""
    (plain, of_plain), (in_blocks, of_blocks) = map(hoist_consts, (plain, in_blocks))
    before, after = len(of_plain), len(of_blocks)
    if before or after:
        avals = plain.in_avals[:before], in_blocks.in_avals[:after], plain.in_avals[before:]
        plain = _taking(plain, avals, lambda a, b, x: [*a, *x])
        in_blocks = _taking(in_blocks, avals, lambda a, b, x: [*b, *x])
    return two_forms_p.bind(*of_plain, *of_blocks, *args, plain=plain, in_blocks=in_blocks)


def _taking(closed: ClosedJaxpr, avals: Any, which: Any) -> ClosedJaxpr:
    """The program as one of three groups of operands, of which it reads some."""
    first, second = len(avals[0]), len(avals[0]) + len(avals[1])

    def fun(*xs: Any) -> list[Any]:
        return jaxpr_as_fun(closed)(*which(xs[:first], xs[first:second], xs[second:]))

    return trace_to_jaxpr(fun, [a for group in avals for a in group], closed.jaxpr.debug_info)


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(*_: Any, plain: ClosedJaxpr, in_blocks: ClosedJaxpr) -> list[Any]:
    return plain.out_avals


def _lowering(ctx: Any, *args: Any, plain: ClosedJaxpr, in_blocks: ClosedJaxpr) -> Any:
    from lamina.dialects import stablehlo as hlo
    from lamina.interpreters.lowering import private_function, tensor_type

    return hlo.composite(
        "lamina.two_forms",
        list(args),
        [tensor_type(a) for a in ctx.avals_out],
        decomposition=private_function(ctx.module, plain, "plain"),
        functions={"in_blocks": private_function(ctx.module, in_blocks, "in_blocks")},
        integers={},
        lists={},
    )


def _jvp(
    primals: list[Any], tangents: list[Any], *, plain: ClosedJaxpr, in_blocks: ClosedJaxpr
) -> Any:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    both, nonzero_out = _jvp_body(plain, nonzero)
    args = [*primals, *(t for t in tangents if type(t) is not Zero)]
    if _ties_show(plain):
        outs = jaxpr_as_fun(both)(*args)
    else:
        outs = bind_forms(both, _jvp_body(in_blocks, nonzero)[0], args)
    n = len(nonzero_out)
    given = iter(outs[n:])
    return outs[:n], [
        next(given) if nz else Zero(aval.to_tangent_aval())
        for nz, aval in zip(nonzero_out, plain.out_avals, strict=True)
    ]


SHARED_BY_TIES = frozenset(("max", "min"))
"""Equal operands share the derivative of these, so who gets how much of it says in which order the
elements were combined: as in JAX, by the plain form."""


@cache_on_jaxpr
def _ties_show(closed: ClosedJaxpr) -> bool:
    return any(eqn.primitive.name in SHARED_BY_TIES for eqn in all_equations(closed.jaxpr))


_jvp_body = cache_on_jaxpr(lambda closed, nonzero: jvp_jaxpr(closed, nonzero, True))


@cache_on_jaxpr
def _known_outs(closed: ClosedJaxpr, unknown: tuple[bool, ...]) -> tuple[bool, ...]:
    return tuple(not u for u in partial_eval_jaxpr(closed, unknown)[2])


@cache_on_jaxpr
def _split(
    closed: ClosedJaxpr, unknown: tuple[bool, ...], known_out: tuple[bool, ...]
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """The program's results that are known, of known inputs; and the others of all, which computes
    what it needs of the known ones again."""
    n_known = sum(known_out)
    known, later, _, _ = partial_eval_jaxpr(closed, unknown, [not k for k in known_out])
    n_residuals = len(known.out_avals) - n_known

    def part(first: bool) -> ClosedJaxpr:
        used = [first] * n_known + [not first] * n_residuals
        return ClosedJaxpr(dce_jaxpr(known.jaxpr, used)[0], known.consts)

    again = jaxpr_as_fun(part(False))

    def recompute(*args: Any) -> list[Any]:
        residuals = again(*kept(args, [not u for u in unknown]))
        return jaxpr_as_fun(later)(*residuals, *kept(args, unknown))

    return part(True), trace_to_jaxpr(recompute, closed.in_avals, closed.jaxpr.debug_info)


def _partial_eval(trace: Any, args: Any, params: dict[str, Any]) -> list[Any]:
    forms: Forms = (params["plain"], params["in_blocks"])
    unknown = tuple(trace.is_unknown(x) for x in args)
    known_out = tuple(map(all, zip(*(_known_outs(form, unknown) for form in forms), strict=True)))
    (now_plain, plain), (now_in_blocks, in_blocks) = (_split(f, unknown, known_out) for f in forms)
    now: list[Any] = []
    if any(known_out):
        now = bind_forms(now_plain, now_in_blocks, kept(args, [not u for u in unknown]))
    if all(known_out):
        return now
    (plain, some), (in_blocks, others) = map(hoist_consts, (plain, in_blocks))
    assert not some and not others, "a traced program closes over nothing here"
    then = iter(trace.emit(two_forms_p, list(args), {"plain": plain, "in_blocks": in_blocks}))
    known = iter(now)
    return [next(known) if k else next(then) for k in known_out]


_transposed = cache_on_jaxpr(
    lambda closed, linear, nonzero: transpose_jaxpr(closed, linear, nonzero, True)[0]
)


def _transpose(
    cts: list[Any], *args: Any, plain: ClosedJaxpr, in_blocks: ClosedJaxpr
) -> list[Any]:
    linear = tuple(is_undefined_primal(x) for x in args)
    nonzero = tuple(type(ct) is not Zero for ct in cts)
    back, back_in_blocks = (_transposed(form, linear, nonzero) for form in (plain, in_blocks))
    given = [*(x for x in args if not is_undefined_primal(x)), *kept(cts, nonzero)]
    outs = iter(bind_forms(back, back_in_blocks, given))
    return [next(outs) if lin else None for lin in linear]


_batched = cache_on_jaxpr(lambda closed, n, batched: batch_jaxpr(closed, n, batched, True)[0])


def _batching(
    args: list[Any], dims: list[Any], *, plain: ClosedJaxpr, in_blocks: ClosedJaxpr
) -> Any:
    size = batched_size(args, dims)
    batched = tuple(d is not None for d in dims)
    many, many_in_blocks = (_batched(form, size, batched) for form in (plain, in_blocks))
    outs = bind_forms(many, many_in_blocks, batches_first(args, dims))
    return outs, [0] * len(outs)


def _dce(eqn: JaxprEqn, used: list[bool]) -> JaxprEqn:
    forms = {name: _dce_body(eqn.params[name], tuple(used)) for name in ("plain", "in_blocks")}
    reads = [any(both) for both in zip(*(reads for _, reads in forms.values()), strict=True)]

    def reading(jaxpr: Jaxpr) -> ClosedJaxpr:
        invars = kept(jaxpr.invars, reads)
        return close_jaxpr(Jaxpr([], invars, jaxpr.outvars, jaxpr.eqns, jaxpr.debug_info))

    return eqn.replace(
        invars=kept(eqn.invars, reads),
        outvars=kept(eqn.outvars, used),
        params={name: reading(jaxpr) for name, (jaxpr, _) in forms.items()},
    )


_dce_body = cache_on_jaxpr(lambda closed, used: dce_jaxpr(closed.jaxpr, used))


def _align(args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    along = varying(args)
    return args, {name: retyped(form, along) for name, form in params.items()}


def _in_python(*args: Any, plain: ClosedJaxpr, **_: Any) -> None:
    jaxpr_as_fun(plain)(*args)


two_forms_p = Primitive(
    "two_forms",
    multiple_results=True,
    align=_align,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
    partial_eval=_partial_eval,
    dce=_dce,
    in_python=_in_python,
)
