"""cond in reverse mode: its split into known and unknown work, its transpose; and its DCE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.control_flow.branches import share_consts
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    close_jaxpr,
    dce_jaxpr,
    jaxpr_as_fun,
    kept,
)
from lamina.core.tangents import Zero, is_undefined_primal
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.linearize import partial_eval_jaxpr
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.tangents import zeros_like_aval
from lamina.interpreters.transpose import transpose_jaxpr


def _cond_p() -> Any:
    from lamina.control_flow.cond import cond_p  # made of these rules

    return cond_p


@cache_on_jaxpr
def _split(closed: ClosedJaxpr, unknown: tuple[bool, ...], out: tuple[bool, ...]) -> Any:
    return partial_eval_jaxpr(closed, unknown, out)


def partial_eval(trace: Any, args: Any, params: dict[str, Any]) -> list[Any]:
    """Runs the known work of the branch taken, records the rest as a cond over its residuals.

    Residuals that are operands are read from there; those of different branches share places of one
    type, which the branch taken fills.
    """
    branches = params["branches"]
    index, ops = args[0], args[1:]
    if trace.is_unknown(index):
        return trace.emit(_cond_p(), args, params)
    unknown = tuple(trace.is_unknown(x) for x in ops)
    none = (False,) * len(branches[0].out_avals)
    out_unknown = tuple(
        map(any, zip(*[_split(b, unknown, none)[2] for b in branches], strict=True))
    )
    splits = [_split(b, unknown, out_unknown)[:2] for b in branches]
    n_known = out_unknown.count(False)
    known_ops = kept(ops, [not u for u in unknown])
    # Where each branch's residuals lie: ("operand", i) or ("place", i) among computed ones.
    places: list[ShapedArray] = []
    homes = [_find_homes(now, n_known, places) for now, _ in splits]
    read = sorted({i for home in homes for kind, i in home if kind == "operand"})
    known = [
        _with_places(now, n_known, home, places)
        for (now, _), home in zip(splits, homes, strict=True)
    ]
    consts, known_branches = share_consts(known)
    outs = []
    if n_known or places or any(b.effects for b in known_branches):
        outs = _cond_p().bind(index, *consts, *known_ops, branches=known_branches)
    unknown_avals = [a for a, u in zip(branches[0].in_avals, unknown, strict=True) if u]
    later = [
        _from_places(then, home, read, [known_branches[0].in_avals[len(consts) + i] for i in read],
                     places, unknown_avals)
        for (_, then), home in zip(splits, homes, strict=True)
    ]  # fmt: skip
    later_consts, later_branches = share_consts(later)
    rest = trace.emit(
        _cond_p(),
        [index, *later_consts, *(known_ops[i] for i in read), *outs[n_known:], *kept(ops, unknown)],
        {"branches": later_branches},
    )
    now_iter, then_iter = iter(outs[:n_known]), iter(rest)
    return [next(then_iter) if u else next(now_iter) for u in out_unknown]


Home = tuple[str, int]


def _find_homes(known: ClosedJaxpr, n_known: int, places: list[ShapedArray]) -> list[Home]:
    """For each residual of a branch where it will lie; `places` grows where it must."""
    operand = {v: i for i, v in enumerate(known.jaxpr.invars)}
    taken: set[int] = set()
    homes: list[Home] = []
    for v in known.jaxpr.outvars[n_known:]:
        if type(v) is not Literal and v in operand:
            homes.append(("operand", operand[v]))
            continue
        free = (i for i, a in enumerate(places) if a == v.aval and i not in taken)
        i = next(free, len(places))
        if i == len(places):
            places.append(v.aval)
        taken.add(i)
        homes.append(("place", i))
    return homes


def _with_places(
    closed: ClosedJaxpr, n_known: int, homes: list[Home], places: list[ShapedArray]
) -> ClosedJaxpr:
    """A known half that fills the common places, with zeros where it has nothing for them."""

    def fun(*args: Any) -> list[Any]:
        outs = jaxpr_as_fun(closed)(*args)
        own = {i: x for (kind, i), x in zip(homes, outs[n_known:], strict=True) if kind == "place"}
        filled = [own[i] if i in own else zeros_like_aval(a) for i, a in enumerate(places)]
        return [*outs[:n_known], *filled]

    return trace_to_jaxpr(fun, closed.in_avals, closed.jaxpr.debug_info)


def _from_places(
    closed: ClosedJaxpr,
    homes: list[Home],
    read: Sequence[int],
    read_avals: Sequence[ShapedArray],
    places: Sequence[ShapedArray],
    unknown: Sequence[ShapedArray],
) -> ClosedJaxpr:
    """An unknown half that takes (operands read by any branch, places, unknown operands)."""
    jaxpr = closed.jaxpr
    operands = [Var(a) for a in read_avals]
    filled = [Var(a) for a in places]
    own = jaxpr.invars[: len(homes)]
    for v, (kind, i) in zip(own, homes, strict=True):
        if kind == "operand":
            operands[list(read).index(i)] = v
        else:
            filled[i] = v
    invars = [*operands, *filled, *jaxpr.invars[len(homes) :]]
    assert len(jaxpr.invars) - len(homes) == len(unknown)
    return ClosedJaxpr(
        Jaxpr(jaxpr.constvars, invars, jaxpr.outvars, jaxpr.eqns, jaxpr.debug_info), closed.consts
    )


def transpose(
    cts: list[Any], index: Any, *ops: Any, branches: tuple[ClosedJaxpr, ...]
) -> list[Any]:
    """The cond of the transposed branches."""
    linear = tuple(is_undefined_primal(x) for x in ops)
    nonlinear_ops = [x for x in ops if not is_undefined_primal(x)]
    nonzero = tuple(type(ct) is not Zero for ct in cts)
    transposed = [_transposed(b, linear, nonzero) for b in branches]
    consts, backward = share_consts(transposed)
    given = [ct for ct in cts if type(ct) is not Zero]
    outs = iter(_cond_p().bind(index, *consts, *nonlinear_ops, *given, branches=backward))
    return [None, *(next(outs) if lin else None for lin in linear)]


_transposed = cache_on_jaxpr(
    lambda closed, linear, nonzero: transpose_jaxpr(closed, linear, nonzero, True)[0]
)


def dce(eqn: JaxprEqn, used: list[bool]) -> JaxprEqn:
    """The cond without unread results, and without operands that no branch reads then."""
    slim = [_slimmed(b, tuple(used)) for b in eqn.params["branches"]]
    keep = [any(reads) for reads in zip(*[reads for _, reads in slim], strict=True)]
    branches = tuple(
        close_jaxpr(Jaxpr([], kept(j.invars, keep), j.outvars, j.eqns, j.debug_info))
        for j, _ in slim
    )
    return eqn.replace(
        invars=[eqn.invars[0], *kept(eqn.invars[1:], keep)],
        outvars=kept(eqn.outvars, used),
        params={**eqn.params, "branches": branches},
    )


_slimmed = cache_on_jaxpr(lambda closed, used: dce_jaxpr(closed.jaxpr, used))
