"""lanes: a program run for each lane of a batch, each with control flow of its own.

`vmap` of a `while_loop` or `cond` whose predicate differs from lane to lane can be done in two
ways: every lane does what any lane does and throws away what it does not need (select), or each
lane goes its own way (branch). This primitive says the second. In StableHLO it is a composite whose
decomposition is the select form, which any other tool reads; `stablehlo-expand-lanes` makes a loop
over lanes of it, whose steps the CPU backend gives to its threads.

Lanes of a loop over a few scalars go together by the vector: `block` of them run until the last one
has stopped, which costs little where a step does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina import config
from lamina.control_flow.residuals import forward_inputs, gather_residuals, hoist_consts
from lamina.core import axes
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from lamina.core.primitive import Primitive
from lamina.core.tangents import Zero, is_undefined_primal
from lamina.core.trace import get_aval
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.batching import batch_jaxpr, move_batch
from lamina.interpreters.jvp import jvp_jaxpr
from lamina.interpreters.linearize import partial_eval_jaxpr
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.transpose import transpose_jaxpr

_VECTOR_BLOCK = 64  # lanes of a few scalars that go together
_FEW = 4  # elements that are a few scalars
_LARGE = 4096  # elements of a lane's arrays above which the select form makes good use of threads
_SHARED_WORK = frozenset(("dot_general", "conv_general_dilated"))
"""Operations that are faster done for all lanes at once."""


def runs_in_lanes(
    fun: Callable[..., Any], avals: Sequence[ShapedArray], size: int, *, loops: bool
) -> ClosedJaxpr | None:
    """The program of one lane, where lanes should go their own ways; None for the select form.

    fun    a lane's program, whose predicate differs from lane to lane.
    loops  whether it is a loop: a branch is worth it only where there are loops or much work in it.
    """
    mode = config.lanes.value
    if mode == "select" or size < 2:
        return None
    lane = trace_to_jaxpr(fun, avals)
    if lane.effects or lane.consts or axes.used_in(lane.jaxpr):
        return None  # what lanes do together they can't do one by one
    if mode == "branch":
        return lane
    used = _primitives(lane.jaxpr)
    if used & _SHARED_WORK or _largest(lane.jaxpr) > _LARGE:
        return None
    return lane if loops or used & {"while", "scan", "lanes"} else None


def lanes(
    lane: ClosedJaxpr, args: Sequence[Any], batched: Sequence[bool], size: int, *, loops: bool
) -> list[Any]:
    """lane applied to each of `size` lanes of the batched arguments, which hold them in dimension 0;
    so do all results. `loops` allows lanes to go together by the vector."""
    together = loops and _largest(lane.jaxpr) <= _FEW and "cond" not in _primitives(lane.jaxpr)
    block = min(_VECTOR_BLOCK, size) if together else 1
    return lanes_p.bind(*args, jaxpr=lane, size=size, batched=tuple(batched), block=block)


def _primitives(jaxpr: Jaxpr) -> set[str]:
    """The names of all primitives in a program."""
    found = set()
    for eqn in jaxpr.eqns:
        found.add(eqn.primitive.name)
        for _, inner in subjaxprs(eqn.params):
            found |= _primitives(getattr(inner, "jaxpr", inner))
    return found


def _largest(jaxpr: Jaxpr) -> int:
    """The most elements that a value of a program has."""
    sizes = [v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars]
    sizes += [v.aval.size for v in jaxpr.invars]
    for eqn in jaxpr.eqns:
        for _, inner in subjaxprs(eqn.params):
            sizes.append(_largest(getattr(inner, "jaxpr", inner)))
    return max(sizes, default=0)


# ---- rules -------------------------------------------------------------------------------------
def _abstract_eval(*avals: Any, jaxpr: ClosedJaxpr, size: int, **_: Any) -> list[ShapedArray]:
    return [a.with_axis(0, size) for a in jaxpr.out_avals]


@cache_on_jaxpr
def _in_select_form(closed: ClosedJaxpr, size: int, batched: tuple[bool, ...]) -> ClosedJaxpr:
    """All of `size` lanes at once."""
    with config.lanes("select"):
        return batch_jaxpr(closed, size, batched, True)[0]


def _lowering(
    ctx: Any, *args: Any, jaxpr: ClosedJaxpr, size: int, batched: tuple[bool, ...], block: int
) -> Any:
    from lamina.dialects import stablehlo as hlo
    from lamina.interpreters.lowering import private_function, tensor_type

    block = min(block, size)
    functions = {"lanes": jaxpr if block == 1 else _in_select_form(jaxpr, block, batched)}
    if block > 1:
        functions["lane"] = jaxpr
    return hlo.composite(
        "lamina.lanes",
        list(args),
        [tensor_type(a) for a in ctx.avals_out],
        decomposition=private_function(
            ctx.module, _in_select_form(jaxpr, size, batched), "all_lanes"
        ),
        functions={n: private_function(ctx.module, f, n) for n, f in functions.items()},
        integers={"size": size, "block": block},
        lists={"batched": [int(b) for b in batched]},
    )


def _jvp(
    primals: list[Any],
    tangents: list[Any],
    *,
    jaxpr: ClosedJaxpr,
    size: int,
    batched: tuple[bool, ...],
    block: int,
) -> Any:
    nonzero = [type(t) is not Zero for t in tangents]
    both, out_nonzero = jvp_jaxpr(jaxpr, nonzero, False)
    both, consts = hoist_consts(both)
    given = [t for t in tangents if type(t) is not Zero]
    given_batched = [b for b, nz in zip(batched, nonzero, strict=True) if nz]
    outs = lanes_p.bind(
        *consts,
        *primals,
        *given,
        jaxpr=both,
        size=size,
        batched=(*[False] * len(consts), *batched, *given_batched),
        block=block,
    )
    n = len(jaxpr.out_avals)
    rest = iter(outs[n:])
    avals = _abstract_eval(jaxpr=jaxpr, size=size)
    return outs[:n], [
        next(rest) if nz else Zero(a.to_tangent_aval()) for nz, a in zip(out_nonzero, avals, strict=True)
    ]


def _partial_eval(trace: Any, args: Any, params: dict[str, Any]) -> list[Any]:
    batched = params["batched"]
    unknown = [trace.is_unknown(x) for x in args]
    known, later, out_unknown, _ = partial_eval_jaxpr(params["jaxpr"], unknown)
    if all(out_unknown):
        return trace.emit(lanes_p, args, params)
    n_known = out_unknown.count(False)
    known, which = forward_inputs(known, n_known)
    known, consts = hoist_consts(known)
    known_batched = [b for b, u in zip(batched, unknown, strict=True) if not u]
    known_args = [x for x, u in zip(args, unknown, strict=True) if not u]
    outs = lanes_p.bind(
        *consts,
        *known_args,
        **params | {"jaxpr": known, "batched": (*[False] * len(consts), *known_batched)},
    )
    later_batched = [b for b, u in zip(batched, unknown, strict=True) if u]
    residuals_batched = [i is None or known_batched[i] for i in which]
    rest = trace.emit(
        lanes_p,
        [
            *gather_residuals(which, known_args, outs[n_known:]),
            *(x for x, u in zip(args, unknown, strict=True) if u),
        ],
        params | {"jaxpr": later, "batched": (*residuals_batched, *later_batched)},
    )
    now, then = iter(outs[:n_known]), iter(rest)
    return [next(then) if u else next(now) for u in out_unknown]


def _transpose(
    cts: list[Any],
    *args: Any,
    jaxpr: ClosedJaxpr,
    size: int,
    batched: tuple[bool, ...],
    block: int,
) -> list[Any]:
    from lamina import lax

    linear = [is_undefined_primal(x) for x in args]
    nonzero = [type(ct) is not Zero for ct in cts]
    back, consts = hoist_consts(transpose_jaxpr(jaxpr, linear, nonzero, True)[0])
    given = [ct for ct in cts if type(ct) is not Zero]
    outs = lanes_p.bind(
        *consts,
        *(x for x, lin in zip(args, linear, strict=True) if not lin),
        *given,
        jaxpr=back,
        size=size,
        batched=(
            *[False] * len(consts),
            *(b for b, lin in zip(batched, linear, strict=True) if not lin),
            *[True] * len(given),
        ),
        block=block,
    )
    rest = iter(outs)
    found = [next(rest) if lin else None for lin in linear]
    return [  # what all lanes read gets the cotangents of all of them
        ct if ct is None or b else lax.reduce_sum(ct, axes=(0,))
        for ct, b in zip(found, batched, strict=True)
    ]


def _batching(
    args: list[Any],
    dims: list[Any],
    *,
    jaxpr: ClosedJaxpr,
    size: int,
    batched: tuple[bool, ...],
    block: int,
) -> Any:
    """The lanes of all examples are lanes of one batch."""
    from lamina import lax

    outer = next(get_aval(x).shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    merged, merged_batched = [], []
    for x, d, b in zip(args, dims, batched, strict=True):
        merged_batched.append(b or d is not None)
        if b or d is not None:
            shape = get_aval(x).shape
            one = shape[:d] + shape[d + 1 :] if d is not None else shape
            one = one[1:] if b else one
            x = move_batch(x, d, outer)
            if not b:
                kept = [0, *range(2, 2 + len(one))]
                x = lax.broadcast_in_dim(x, (outer, size, *one), kept)
            x = lax.reshape(x, (outer * size, *one))
        merged.append(x)
    outs = lanes_p.bind(
        *merged, jaxpr=jaxpr, size=outer * size, batched=tuple(merged_batched), block=block
    )
    split = [lax.reshape(x, (outer, size, *get_aval(x).shape[1:])) for x in outs]
    return split, [0] * len(split)


lanes_p = Primitive(
    "lanes",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
    partial_eval=_partial_eval,
)
