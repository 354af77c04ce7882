"""What devices have along an axis of a mesh that splits nothing: all the same, a term each of a sum, or what
counts once for all.

In a shard_map body with check_vma, types say it (core/placed.py): a value varies along an axis, is *unreduced* (each
device has a term) or *reduced* (all have the same, and each a term of its cotangent). Here are the casts between
these, which move nothing, and the collectives that sum terms. Each is the transpose of another:

    reduced -> varying       varying -> unreduced
    the same -> reduced      unreduced -> the same: the sum (unreduced_psum)
    varying -> reduced: all_gather_reduced      unreduced -> varying: unreduced_reduce_scatter (collective_gathers)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina import lax
from lamina.core import LINEAR, Primitive, ShapedArray, axes, get_aval
from lamina.core.axes import Axis
from lamina.core.placed import WHOLE, Placed, Sums, sums
from lamina.lax import hlo
from lamina.lax.named_axes import CHANNEL, device_groups, times

Names = tuple[Any, ...]


def sums_of(x: Any) -> Sums:
    """What devices have of a value along axes that it does not vary along, as its type says."""
    placed = get_aval(x).placed
    return WHOLE if placed is None else placed.sums


def with_sums(aval: ShapedArray, over: Sums, mesh: Any = None) -> ShapedArray:
    """The type of values of which devices have this."""
    if aval.placed is not None:
        return aval.update(placed=Placed(aval.placed.mesh, aval.placed.dims, over))
    if over is WHOLE:
        return aval
    return aval.update(placed=Placed(mesh or axes.mesh_of_types(), ((),) * aval.ndim, over))


def _typed(names: Names) -> frozenset[Any]:
    return frozenset(names) & axes.typed()


# ---- casts and sums ------------------------------------------------------------------------------
def _between(
    name: str,
    lowering: Callable[..., Any],
    becomes: Callable[[ShapedArray, frozenset[Any]], ShapedArray],
    transpose: Callable[[Any, Names], Any],
    of_lanes: Callable[[Any, int | None, int], tuple[Any, int | None]] = lambda x, d, n: (x, d),
) -> Primitive:
    """From one of these states to another, along axes of a shape that stays. of_lanes(x, dim, n): of a batch."""

    def axis_batching(axis: Axis, args: Any, dims: Any, *, axes: Names) -> Any:
        out, d = of_lanes(args[0], dims[0], axis.size)
        rest = tuple(n for n in axes if n != axis.name)
        return (primitive.bind(out, axes=rest) if rest else out), d

    primitive: Primitive = Primitive(
        name,
        abstract_eval=lambda x, *, axes: becomes(x, _typed(axes)),
        align=lambda args, params: (args, params),
        lowering=lowering,
        jvp=LINEAR,
        transpose=lambda ct, x, *, axes: [transpose(ct, axes)],
        batching=lambda args, dims, *, axes: (primitive.bind(*args, axes=axes), dims[0]),
        axis_batching=axis_batching,
        axis_names=lambda params: params["axes"],
    )
    return primitive


def _as_it_is(ctx: Any, x: Any, *, axes: Names) -> Any:
    return x


def _combined(ctx: Any, x: Any, *, axes: Names) -> Any:
    return hlo.all_reduce(x, device_groups(ctx, axes, None), CHANNEL, hlo.add)


def _changed(
    x: ShapedArray, more: frozenset[Any] | None, less: frozenset[Any] | None, what: str
) -> ShapedArray:
    of = WHOLE if x.placed is None else x.placed.sums
    have: frozenset[Any] = getattr(of, what)
    now = (have | more) if more else have - (less or frozenset())
    unreduced, reduced = (now, of.reduced) if what == "unreduced" else (of.unreduced, now)
    return with_sums(x, sums(unreduced, reduced, of.kind))


vary_unreduced_cast_p: Primitive = _between(
    "vary_unreduced_cast",
    _as_it_is,
    lambda x, names: _changed(x.update(vma=x.vma - names), names, None, "unreduced"),
    lambda ct, names: reduced_vary_cast_p.bind(_to_reduced(ct, names), axes=names),
)
reduced_vary_cast_p: Primitive = _between(
    "reduced_vary_cast",
    _as_it_is,
    lambda x, names: _changed(x.update(vma=x.vma | names), None, names, "reduced"),
    lambda ct, names: vary_unreduced_cast_p.bind(lax.pvary(ct, names), axes=names),
)
preduced_p: Primitive = _between(
    "preduced",
    _as_it_is,
    lambda x, names: _changed(x, names, None, "reduced"),
    lambda ct, names: sum_of_terms(ct, names),
)
unreduced_psum_p: Primitive = _between(
    "unreduced_psum",
    _combined,
    lambda x, names: _changed(x, None, names, "unreduced"),
    lambda ct, names: _to_reduced(ct, names),
    lambda x, d, n: (times(x, n) if d is None else lax.reduce_sum(x, (d,)), None),
)


def sum_of_terms(x: Any, names: Names) -> Any:
    """The sum of terms along axes. Raises ValueError where they are combined otherwise."""
    have = sums_of(x)
    names = tuple(n for n in names if n in have.unreduced)
    if names and (have.kind is None or have.kind.name != "sum"):
        raise ValueError(
            f"unreduced_psum cannot accept args with unreduced_kind {have.kind}: use pmax or pmin"
        )
    return unreduced_psum_p.bind(x, axes=names) if names else x


def reduced_to_varying(x: Any, names: Names) -> Any:
    """x, each device's own along these axes, along which all have the same that counts once."""
    return reduced_vary_cast_p.bind(x, axes=names)


def _to_reduced(x: Any, names: Names) -> Any:
    missing = tuple(n for n in names if n not in sums_of(x).reduced)
    return preduced_p.bind(x, axes=missing) if missing else x


def to_unreduced(x: Any, names: Names) -> Any:
    """x, of which each device along these axes has a term."""
    have, vma = sums_of(x), get_aval(x).vma
    rest = tuple(n for n in names if n in axes.typed() and n not in have.unreduced)
    same = tuple(n for n in rest if n not in vma)
    if same:  # the first device's is the sum, the others have zeros
        first = lax.eq(lax.axis_index(same), 0)
        x = lax.select(
            lax.broadcast(first, get_aval(x).shape), lax.pvary(x, same), lax.full_like(x, 0)
        )
    return vary_unreduced_cast_p.bind(x, axes=rest) if rest else x


def as_sums(x: Any, placed: Placed) -> Any:
    """x, of which devices have what a type says."""
    have, want = sums_of(x), placed.sums
    x = sum_of_terms(x, tuple(sorted(have.unreduced - want.unreduced, key=str)))
    x = to_unreduced(x, tuple(sorted(want.unreduced - have.unreduced, key=str)))
    return _to_reduced(x, tuple(sorted(want.reduced - have.reduced, key=str)))


def cast_terms(x: Any, names: Names, to: str) -> Any:
    """pcast between these states; None where it is none of them."""
    have, vma, over = sums_of(x), get_aval(x).vma, frozenset(names)
    if (
        to == "unreduced"
        and not have.reduced & over
        and not have.unreduced & over
        and (over <= vma or not over & vma)
    ):
        return to_unreduced(x, names)
    if to == "reduced" and not (vma | have.unreduced | have.reduced) & over:
        return _to_reduced(x, names)
    if to == "varying" and over <= have.reduced:
        return reduced_to_varying(x, names)
    return None
