"""Two primitives that run a program on the devices of a mesh.

`shard_map` takes and gives whole arrays: each device gets its blocks of the operands and gives its
block of each result. `on_mesh` is what is left of it inside a program that runs on every device:
the body, on blocks. Bodies are jaxprs on blocks; the mesh axes are named axes in them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.residuals import forward_inputs, gather_residuals, hoist_consts
from lamina.control_flow.varying import as_given, retyped
from lamina.core import axes
from lamina.core.avals import NOWHERE
from lamina.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from lamina.core.manual_axes import UnreducedKind
from lamina.core.primitive import OWED, Primitive
from lamina.core.tangents import Zero, is_undefined_primal
from lamina.core.trace import eval_trace, get_aval
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.interpreters.batching import batch_jaxpr, batched_size, batches_first
from lamina.interpreters.jvp import jvp_jaxpr
from lamina.interpreters.linearize import partial_eval_jaxpr
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.interpreters.transpose import transpose_jaxpr
from lamina.sharding.manual import Manual, shown
from lamina.sharding.mesh import Mesh
from lamina.sharding.spec import PartitionSpec, check_not_spread

Specs = tuple[PartitionSpec, ...]


# ---- blocks and wholes --------------------------------------------------------------------------
def cut_block(x: Any, on: Manual, spec: PartitionSpec) -> Any:
    """This device's block of a whole array. Runs under the axes of `on`."""
    from lamina import lax

    for dim in range(len(spec)):
        names = spec.names_of(dim)
        if names:
            size = x.shape[dim] // on.parts(spec, dim)
            start = lax.axis_index(names) * size
            x = lax.dynamic_slice_in_dim(x, start, size, dim)
    if spec.unreduced_kind is UnreducedKind.sum:  # the first has all, the others nothing
        first = lax.eq(lax.axis_index(tuple(sorted(spec.unreduced, key=str))), 0)
        x = lax.select(lax.broadcast(first, x.shape), x, lax.full_like(x, 0))
    return x


def join_blocks(x: Any, spec: PartitionSpec) -> Any:
    """The whole array of this device's and the other devices' blocks."""
    from lamina import lax

    for dim in range(len(spec)):
        names = spec.names_of(dim)
        if names:
            x = lax.all_gather(x, names, axis=dim, tiled=True)
    if spec.unreduced_kind is not None:
        combined = {
            UnreducedKind.sum: lax.psum,
            UnreducedKind.max: lax.pmax,
            UnreducedKind.min: lax.pmin,
        }
        x = combined[spec.unreduced_kind](x, tuple(sorted(spec.unreduced, key=str))).astype(x.dtype)
    return x


def whole_mesh(mesh: Mesh) -> Manual:
    """All axes of a mesh, of which types tell nothing."""
    return Manual(mesh, mesh.axis_names, False)


# ---- on_mesh ------------------------------------------------------------------------------------
def _on_mesh_lowering(ctx: Any, *args: Any, jaxpr: ClosedJaxpr, on: Manual) -> Any:
    inside = dataclasses.replace(ctx.module, mesh_axes=on.mesh.shape_tuple)
    return dataclasses.replace(ctx, module=inside).call(jaxpr, "shard_map_body", args)


def _names_outside(params: dict[str, Any]) -> frozenset[Any]:
    return axes.used_in(params["jaxpr"].jaxpr) - set(params["on"].names)


on_mesh_p = Primitive(
    "on_mesh",
    multiple_results=True,
    abstract_eval=lambda *avals, jaxpr, on: [a.update(vma=NOWHERE, placed=None) for a in jaxpr.out_avals],
    lowering=_on_mesh_lowering,
    jvp=OWED,  # it is made when a program is compiled: nothing transforms it
    axis_names=_names_outside,
    mesh=lambda params: params["on"].mesh,
    shown=shown,
)


def on_mesh(mesh: Mesh, fun: Callable[..., Sequence[Any]], *args: Any) -> list[Any]:
    """fun of blocks, as one equation."""
    on = whole_mesh(mesh)
    closed, consts = on.trace(fun, [get_aval(x) for x in args])
    return on_mesh_p.bind(*consts, *args, jaxpr=closed, on=on)


# ---- shard_map ----------------------------------------------------------------------------------
def _abstract_eval(
    *avals: Any, jaxpr: ClosedJaxpr, on: Manual, out_specs: Specs, **_: Any
) -> list[Any]:
    return [on.whole_type(a, s) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]


@cache_on_jaxpr
def _on_wholes(closed: ClosedJaxpr, on: Manual, in_specs: Specs, out_specs: Specs) -> ClosedJaxpr:
    """The body with blocks cut from whole arrays, and put together to such."""

    def fun(*args: Any) -> list[Any]:
        blocks = [cut_block(x, on, s) for x, s in zip(args, in_specs, strict=True)]
        outs = jaxpr_as_fun(closed)(*blocks)
        return [join_blocks(x, s) for x, s in zip(outs, out_specs, strict=True)]

    untyped = dataclasses.replace(on, checked=False)
    avals = [on.whole_type(a, s) for a, s in zip(closed.in_avals, in_specs, strict=True)]
    return untyped.trace(fun, avals)[0]


def _lowering(
    ctx: Any, *args: Any, jaxpr: ClosedJaxpr, on: Manual, in_specs: Specs, out_specs: Specs
) -> Any:
    if ctx.module.annotations is not None:
        return _annotated(ctx, args, jaxpr, on, in_specs, out_specs)
    whole = _on_wholes(jaxpr, on, in_specs, out_specs)
    return _on_mesh_lowering(ctx, *args, jaxpr=whole, on=on)


def _annotated(
    ctx: Any, args: Sequence[Any], jaxpr: ClosedJaxpr, on: Manual, in_specs: Specs, out_specs: Specs
) -> Any:
    """What the partitioner takes for a shard_map."""
    from lamina.interpreters.lowering import lower_body, tensor_type

    outside = ctx.module
    names = outside.manual_axes | frozenset(on.names)
    inside = dataclasses.replace(outside, mesh_axes=on.mesh.shape_tuple, manual_axes=names)
    return outside.annotations.manual(
        on,
        args,
        in_specs,
        [tensor_type(a) for a in jaxpr.in_avals],
        [tensor_type(a) for a in ctx.avals_out],
        out_specs,
        lambda *blocks: lower_body(inside, jaxpr.jaxpr, (), blocks),
    )


@cache_on_jaxpr
def _program(closed: ClosedJaxpr, on: Manual, in_specs: Specs, out_specs: Specs) -> ClosedJaxpr:
    avals = [on.whole_type(a, s) for a, s in zip(closed.in_avals, in_specs, strict=True)]
    return trace_to_jaxpr(
        lambda *args: shard_map_p.bind(
            *args, jaxpr=closed, on=on, in_specs=in_specs, out_specs=out_specs
        ),
        avals,
    )


def _impl(*args: Any, jaxpr: ClosedJaxpr, on: Manual, in_specs: Specs, out_specs: Specs) -> Any:
    program = _program(jaxpr, on, in_specs, out_specs)
    return eval_trace().run_jaxpr(program, "shard_map", args)


# Memories of what was made of a body: the mesh and its axes are part of each key. A body closes over nothing: the
# constants that rules bring into one come last here, and are its first operands.
_jvp_body = cache_on_jaxpr(lambda closed, on, nonzero: _under(on, jvp_jaxpr, closed, nonzero))
_batched_body = cache_on_jaxpr(
    lambda closed, on, n, batched: _under(on, batch_jaxpr, closed, n, batched)
)


def _under(on: Manual, transform: Callable[..., Any], *args: Any) -> Any:
    with on.bound():
        closed, which = transform(*args, False)
    closed, consts = hoist_consts(closed)
    return closed, tuple(which), consts


def _whole(consts: Sequence[Any]) -> Specs:
    """The specs of constants: every device has them."""
    return (PartitionSpec(),) * len(consts)


def _jvp(
    primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, on: Manual, in_specs: Specs, out_specs: Specs
) -> Any:  # fmt: skip
    nonzero = tuple(type(t) is not Zero for t in tangents)
    both, nonzero_out, consts = _jvp_body(jaxpr, on, nonzero)
    outs = shard_map_p.bind(
        *consts,
        *primals,
        *(t for t in tangents if type(t) is not Zero),
        jaxpr=both,
        on=on,
        in_specs=_whole(consts)
        + in_specs
        + tuple(s for s, nz in zip(in_specs, nonzero, strict=True) if nz),
        out_specs=out_specs + tuple(s for s, nz in zip(out_specs, nonzero_out, strict=True) if nz),
    )
    given = iter(outs[len(out_specs) :])
    avals = _abstract_eval(jaxpr=jaxpr, on=on, out_specs=out_specs)
    dots = [
        next(given) if nz else Zero(a.to_tangent_aval())
        for nz, a in zip(nonzero_out, avals, strict=True)
    ]
    return outs[: len(out_specs)], dots


@cache_on_jaxpr
def _split(closed: ClosedJaxpr, on: Manual, unknown: tuple[bool, ...]) -> Any:
    """The known and the unknown half. Residuals that are no inputs get a leading dimension, which
    is split over the mesh: each device keeps its own. Last come the specs of all residuals, and the constants of
    both halves."""
    from lamina import lax

    with on.bound():
        known, rest, out_unknown, _ = partial_eval_jaxpr(closed, unknown)
    n_known = len(out_unknown) - sum(out_unknown)
    known, which = forward_inputs(known, n_known)

    def stacking(*args: Any) -> list[Any]:
        outs = jaxpr_as_fun(known)(*args)
        return outs[:n_known] + [lax.expand_dims(r, (0,)) for r in outs[n_known:]]

    def unstacking(*args: Any) -> list[Any]:
        own = [lax.squeeze(r, (0,)) if w is None else r for r, w in zip(args, which)]
        return jaxpr_as_fun(rest)(*own, *args[len(which) :])

    specs = tuple(map(on.each, known.out_avals[n_known:]))
    known, known_consts = on.trace(stacking, known.in_avals)
    avals = [
        a.with_axis(0, 1) if w is None else a
        for a, w in zip(rest.in_avals[: len(which)], which, strict=True)
    ]
    rest, rest_consts = on.trace(unstacking, avals + rest.in_avals[len(which) :])
    return known, rest, tuple(out_unknown), which, specs, (known_consts, rest_consts)


def _partial_eval(trace: Any, args: Any, params: dict[str, Any]) -> list[Any]:
    on, in_specs, out_specs = (params[k] for k in ("on", "in_specs", "out_specs"))
    unknown = tuple(trace.is_unknown(x) for x in args)
    known, rest, out_unknown, which, own_specs, consts = _split(params["jaxpr"], on, unknown)
    known_args = [x for x, u in zip(args, unknown, strict=True) if not u]
    known_specs = tuple(s for s, u in zip(in_specs, unknown, strict=True) if not u)
    known_out = tuple(s for s, u in zip(out_specs, out_unknown, strict=True) if not u)
    outs = shard_map_p.bind(
        *consts[0],
        *known_args,
        jaxpr=known,
        on=on,
        in_specs=_whole(consts[0]) + known_specs,
        out_specs=known_out + own_specs,
    )
    n = len(known_out)
    later: list[Any] = []
    if any(out_unknown):
        residuals = gather_residuals(which, known_args, outs[n:])
        own = iter(own_specs)
        residual_specs = tuple(next(own) if w is None else known_specs[w] for w in which)
        later = trace.emit(
            shard_map_p,
            [*consts[1], *residuals, *(x for x, u in zip(args, unknown, strict=True) if u)],
            dict(
                jaxpr=rest,
                on=on,
                in_specs=_whole(consts[1])
                + residual_specs
                + tuple(s for s, u in zip(in_specs, unknown, strict=True) if u),
                out_specs=tuple(s for s, u in zip(out_specs, out_unknown, strict=True) if u),
            ),
        )
    now, then = iter(outs[:n]), iter(later)
    return [next(then) if u else next(now) for u in out_unknown]


@cache_on_jaxpr
def _transposed(
    closed: ClosedJaxpr,
    on: Manual,
    in_specs: Specs,
    out_specs: Specs,
    linear: tuple[bool, ...],
    nonzero: tuple[bool, ...],
) -> Any:
    """Backwards on blocks. Where types do not tell what varies, a result that all devices along an
    axis give counts once: its cotangent is shared out among them; and an operand that all of them
    get collects from all. Where types tell, what was cast to vary collects."""
    with on.bound():
        backward, given = transpose_jaxpr(closed, linear, nonzero, False)
    result_specs = [s for s, g in zip(in_specs, given, strict=True) if g]
    if on.checked:
        for aval, spec in zip(backward.out_avals, result_specs, strict=True):
            assert aval.mat.unreduced == spec.reduced
            assert aval.vma - frozenset(on.unnamed(spec)) == aval.vma, "a cotangent is not summed"
        return *hoist_consts(backward), given
    n = len(linear) - sum(linear)
    ct_specs = [s for s, nz in zip(out_specs, nonzero, strict=True) if nz]

    def fun(*args: Any) -> list[Any]:
        from lamina import lax

        cts = [_shared(ct, on, s) for ct, s in zip(args[n:], ct_specs, strict=True)]
        outs = jaxpr_as_fun(backward)(*args[:n], *cts)
        return [
            lax.psum(x, over)
            if (over := tuple(n for n in on.unnamed(s) if n not in s.reduced))
            else x
            for x, s in zip(outs, result_specs, strict=True)
        ]

    return *on.trace(fun, backward.in_avals), given


def _shared(ct: Any, on: Manual, spec: PartitionSpec) -> Any:
    from lamina import lax

    times = math.prod(on.mesh.shape[name] for name in on.unnamed(spec) if name not in spec.reduced)
    return ct if times == 1 else lax.div(ct, lax.full_like(ct, times, shape=()))


def _transpose(
    cts: Any, *args: Any, jaxpr: ClosedJaxpr, on: Manual, in_specs: Specs, out_specs: Specs
) -> list[Any]:
    linear = tuple(is_undefined_primal(x) for x in args)
    nonzero = tuple(type(ct) is not Zero for ct in cts)
    backward, consts, given = _transposed(jaxpr, on, in_specs, out_specs, linear, nonzero)
    outs = iter(
        shard_map_p.bind(
            *consts,
            *(x for x, lin in zip(args, linear, strict=True) if not lin),
            *(ct for ct in cts if type(ct) is not Zero),
            jaxpr=backward,
            on=on,
            in_specs=_whole(consts)
            + tuple(s for s, lin in zip(in_specs, linear, strict=True) if not lin)
            + tuple(s.of_cotangent() for s, nz in zip(out_specs, nonzero, strict=True) if nz),
            out_specs=tuple(s.of_cotangent() for s, g in zip(in_specs, given, strict=True) if g),
        )
    )
    return [next(outs) if g else None for g in given]


def _batching(
    args: Any, dims: Any, *, jaxpr: ClosedJaxpr, on: Manual, in_specs: Specs, out_specs: Specs
) -> Any:
    size = batched_size(args, dims)
    over = tuple(name for name in axes.batching().spmd_name if name in on.names)
    for what, specs in (("in_specs", in_specs), ("out_specs", out_specs)):
        for spec in specs:
            check_not_spread(axes.batching().spmd_name, spec, f"shard_map {what}")
    moved = batches_first(args, dims)
    local = size // math.prod(on.mesh.shape[name] for name in over)
    batched = tuple(d is not None for d in dims)
    if on.checked and over:
        avals = zip(jaxpr.in_avals, batched, strict=True)
        with on.bound():
            jaxpr = retyped(jaxpr, [a.vma.union(over) if b else a.vma for a, b in avals])
    closed, out_batched, consts = _batched_body(jaxpr, on, local, batched)

    def with_batch(specs: Specs, which: Sequence[bool]) -> Specs:
        return tuple(
            s.with_entries((over or None, *s)) if b else s
            for s, b in zip(specs, which, strict=True)
        )

    outs = shard_map_p.bind(
        *consts,
        *moved,
        jaxpr=closed,
        on=on,
        in_specs=_whole(consts) + with_batch(in_specs, batched),
        out_specs=with_batch(out_specs, out_batched),
    )
    return outs, [0 if b else None for b in out_batched]


shard_map_p = Primitive(
    "shard_map",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    jvp=_jvp,
    transpose=_transpose,
    batching=_batching,
    partial_eval=_partial_eval,
    impl=_impl,
    align=as_given,
    axis_names=_names_outside,
    mesh=lambda params: params["on"].mesh,
    shown=shown,
)
