"""Reductions across a named axis, and what varies along one: psum, pmax, pmin, pvary.

Under vmap they are reductions of the batch dimension, on devices StableHLO's all_reduce.

In a shard_map body with check_vma types say along which mesh axes values vary (`aval.vma`). There
the sum is `psum_invariant`: of a varying value, and the same on all devices. Its transpose is
`pvary`, which does nothing but change the type, and the other way round. `psum` is its own
transpose; it stands where types do not tell, and for groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from lamina import lax
from lamina.core import LINEAR, NOT_LINEAR, Primitive, axes, current_mesh, get_aval, tree
from lamina.core.axes import Axis
from lamina.core.library import library
from lamina.core.placed import WHOLE, Operands, ShardingTypeError, Sums, sums
from lamina.core.tangents import Zero
from lamina.core.trace import Tracer
from lamina.lax import hlo
from lamina.lax.checks import canonical_axes
from lamina.lax.named_axes import (
    CHANNEL,
    Groups,
    are_uneven,
    bound_names,
    device_groups,
    for_each_member,
    group_size,
    names_in,
    rank,
    read_groups,
    reduced_groups,
    times,
)

T = TypeVar("T")


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of x over a named axis, on every lane. Booleans count as int32.

    x                  a tree of arrays. For what is the same everywhere (a number, a NumPy array)
                       the sum is known at once: psum(1, name) is the axis size, an int.
    axis_name          the name that vmap, pmap or shard_map gave the axis, or a tuple of names;
                       integers among them are dimensions of x.
    axis_index_groups  sums only within these groups of positions along the axis.

    Raises NameError for a name that is not bound; ValueError for groups that do not have each position once.

    >>> share = lambda x: x / lax.psum(x, 'i')
    >>> print(lamina.vmap(share, axis_name='i')(jnp.array([1.0, 1.0, 2.0])))
    [0.25 0.25 0.5 ]
    """
    dims = [n for n in names_in(axis_name) if isinstance(n, int)]
    names = bound_names(tuple(n for n in names_in(axis_name) if not isinstance(n, int)), "psum")
    groups = read_groups("psum", names, axis_index_groups, uneven=True)

    def one(leaf: Any) -> Any:
        if get_aval(leaf).dtype == np.bool_:
            leaf = int(leaf) if isinstance(leaf, bool) else lax.convert_element_type(leaf, np.int32)
        if dims:
            leaf = lax.reduce_sum(leaf, canonical_axes("psum", dims, rank(leaf)))
        if not isinstance(leaf, Tracer) and not _is_array(leaf) and not are_uneven(groups):
            return leaf * group_size(names, groups)
        return sum_over(leaf, names, groups)

    return tree.map(one, x)


def pmean(x: T, axis_name: Any, *, axis_index_groups: Any = None) -> T:
    """The mean of x over a named axis, on every lane.

    x                  a tree of arrays.
    axis_name          the axis' name, or a tuple of names.
    axis_index_groups  takes means only within these groups of positions.

    Raises NameError for a name that is not bound; ValueError for groups that do not have each position once.

    >>> centred = lambda x: x - lax.pmean(x, 'i')
    >>> print(lamina.vmap(centred, axis_name='i')(jnp.array([1.0, 2.0, 6.0])))
    [-2. -1.  3.]
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    n = psum(1, axis_name, axis_index_groups=axis_index_groups)
    if any(isinstance(name, int) for name in names_in(axis_name)):
        counts = psum(tree.map(lambda leaf: np.ones(np.shape(leaf), np.int32), x), axis_name)
        return tree.map(lambda v, c: v / c, total, counts)
    return tree.map(lambda v: v / n, total)


def pmax(x: T, axis_name: Any, *, axis_index_groups: Any = None) -> T:
    """The largest x over a named axis, on every lane.

    x                  a tree of arrays.
    axis_name          the axis' name, or a tuple of names.
    axis_index_groups  compares only within these groups of positions.

    Raises NameError for a name that is not bound; ValueError for groups that do not have each position once.

    >>> relative = lambda x: x / lax.pmax(x, 'i')
    >>> print(lamina.vmap(relative, axis_name='i')(jnp.array([1.0, 2.0, 4.0])))
    [0.25 0.5  1.  ]
    """
    return _extremum("pmax", pmax_p, lax.reduce_max, x, axis_name, axis_index_groups)


def pmin(x: T, axis_name: Any, *, axis_index_groups: Any = None) -> T:
    """The least x over a named axis, on every lane.

    x                  a tree of arrays.
    axis_name          the axis' name, or a tuple of names.
    axis_index_groups  compares only within these groups of positions.

    Raises NameError for a name that is not bound; ValueError for groups that do not have each position once.

    >>> print(lamina.vmap(lambda x: x - lax.pmin(x, 'i'), axis_name='i')(jnp.array([3, 5, 4])))
    [0 2 1]
    """
    return _extremum("pmin", pmin_p, lax.reduce_min, x, axis_name, axis_index_groups)


def _extremum(
    what: str, primitive: Primitive, reduce: Any, x: Any, axis_name: Any, index_groups: Any
) -> Any:
    dims = [n for n in names_in(axis_name) if isinstance(n, int)]
    names = bound_names(tuple(n for n in names_in(axis_name) if not isinstance(n, int)), what)
    groups = read_groups(what, names, index_groups, uneven=True)

    def one(leaf: Any) -> Any:
        if dims:
            leaf = reduce(leaf, canonical_axes(what, dims, rank(leaf)))
        return primitive.bind(leaf, axes=names, axis_index_groups=groups) if names else leaf

    return tree.map(one, x)


def _is_array(x: Any) -> bool:
    return hasattr(x, "aval")


def sum_over(x: Any, names: tuple[Any, ...], groups: Groups = None) -> Any:
    """The sum of an array over bound names: of what types tell about, it varies no more."""
    typed = tuple(n for n in names if n in axes.typed()) if groups is None else ()
    rest = tuple(n for n in names if n not in typed)
    if typed and get_aval(x).placed is not None:
        terms = unreduced(x)
        x = _sum_of_terms(x, typed)
        typed = tuple(n for n in typed if n not in terms)
    if rest:
        x = psum_p.bind(x, axes=rest, axis_index_groups=groups)
    return psum_invariant_p.bind(x, axes=typed) if typed else x


def unreduced(x: Any) -> frozenset[Any]:
    """The axes along which each device has a term of x."""
    placed = get_aval(x).placed
    return frozenset() if placed is None else placed.sums.unreduced


def _sum_of_terms(x: Any, names: tuple[Any, ...]) -> Any:
    from lamina.lax.terms import sum_of_terms

    return sum_of_terms(x, names)


def _reduction(
    name: str,
    reduce: Callable[[Any, Sequence[int]], Any],
    repeat: Callable[[Any, int], Any],
    combine: Callable[[Any, Any], Any],
    jvp: Any,
    transpose: Any,
    sums_rule: Any = None,
) -> Primitive:
    """A reduction over named axes. repeat(x, n): what n equal lanes come to."""

    def lowering(ctx: Any, x: Any, *, axes: Any, axis_index_groups: Groups = None) -> Any:
        groups = device_groups(ctx, axes, axis_index_groups)
        return hlo.all_reduce(x, groups, CHANNEL, combine)

    def batching(args: Any, dims: Any, **params: Any) -> Any:
        return primitive.bind(*args, **params), dims[0]

    def axis_batching(
        axis: Axis, args: Any, dims: Any, *, axes: Any, axis_index_groups: Groups = None
    ) -> Any:
        (x,), (d,) = args, dims
        if axis_index_groups is not None:
            per_group = reduced_groups(x, d, axis, axis_index_groups, reduce)
            return for_each_member(per_group, axis, axis_index_groups), 0
        x = repeat(x, axis.size) if d is None else reduce(x, (d,))
        rest = tuple(n for n in axes if n != axis.name)
        return _again(primitive, x, rest) if rest else x, None

    primitive = Primitive(
        name,
        abstract_eval=lambda x, **_: x,
        lowering=lowering,
        jvp=jvp,
        transpose=transpose,
        batching=batching,
        axis_batching=axis_batching,
        axis_names=lambda params: params["axes"],
        varying=_reduced,
        sums=sums_rule,
    )
    return primitive


def _again(primitive: Primitive, x: Any, rest: tuple[Any, ...]) -> Any:
    """The same reduction over fewer names."""
    if primitive is psum_invariant_p:
        return primitive.bind(x, axes=rest)
    return primitive.bind(x, axes=rest, axis_index_groups=None)


def _reduced(along: frozenset[Any], params: dict[str, Any]) -> tuple[Any, Any]:
    """What is reduced over all of an axis is the same along it."""
    over = axes.typed() & frozenset(params["axes"])
    whole = params.get("axis_index_groups") is None
    return along | over, along - over if whole else along | over


def _extremum_sums(kind: str) -> Callable[..., Sums]:
    """The `sums` rule of an extremum over devices: of what they have of an extremum it is the whole one."""

    def rule(of: Operands, *, axes: Any, **_: Any) -> Sums:
        have = of.sums_of(0)
        if have.unreduced and (have.kind is None or have.kind.name != kind):
            raise ShardingTypeError(
                f"{of.name} takes what devices have of an extremum (unreduced_kind {kind}), and these are combined "
                f"otherwise: {of.avals[0].str_short()}. Reshard the operand first, so that it is whole"
            )
        return sums(have.unreduced - set(axes), have.reduced, have.kind)

    return rule


def _extremum_jvp(primitive: Callable[[], Primitive]) -> Any:
    """The tangent is that of the lane that has the extremum, shared out among equals."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        out = primitive().bind(x, **params)
        if type(t) is Zero:
            return out, t
        here = lax.convert_element_type(lax.eq(x, out), get_aval(t).dtype)
        count = sum_over(here, params["axes"], params["axis_index_groups"])
        total = sum_over(lax.mul(t, here), params["axes"], params["axis_index_groups"])
        return out, lax.div(total, count)

    return jvp


psum_p: Primitive = _reduction(
    "psum", lambda x, dims: lax.reduce_sum(x, dims), times, lambda a, b: hlo.add(a, b), LINEAR,
    lambda ct, x, **params: [psum_p.bind(ct, **params)],
)  # fmt: skip
psum_invariant_p: Primitive = _reduction(
    "psum_invariant", lambda x, dims: lax.reduce_sum(x, dims), times, lambda a, b: hlo.add(a, b),
    LINEAR, lambda ct, x, *, axes: [spread(ct, axes)],
)  # fmt: skip
pmax_p: Primitive = _reduction(
    "pmax", lambda x, dims: lax.reduce_max(x, dims), lambda x, n: x, lambda a, b: hlo.maximum(a, b),
    _extremum_jvp(lambda: pmax_p), NOT_LINEAR, _extremum_sums("max"),
)  # fmt: skip
pmin_p: Primitive = _reduction(
    "pmin", lambda x, dims: lax.reduce_min(x, dims), lambda x, n: x, lambda a, b: hlo.minimum(a, b),
    _extremum_jvp(lambda: pmin_p), NOT_LINEAR, _extremum_sums("min"),
)  # fmt: skip


# ---- what varies along an axis ------------------------------------------------------------------
def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """x, of a type that says that it varies along an axis. In a shard_map body with check_vma types
    tell along which axes of the mesh devices may have different values; elsewhere x as it is.

    x          a tree of arrays, known to be the same along the axis.
    axis_name  the axis' name, or a tuple of names.
    to         "varying"; "unreduced": what each device has is a term of a sum; "reduced": all have the
               same, and each a term of its cotangent.

    Raises ValueError for another `to` and for an x that varies already; TypeError for a set of
    names.

    >>> print(lamina.vmap(lambda x: lax.pcast(x, 'i', to='varying'), axis_name='i')(jnp.arange(3)))
    [0 1 2]
    """
    if isinstance(axis_name, (set, frozenset)):
        raise TypeError(f"axis_name={axis_name!r} must be a tuple or a str. Got {axis_name}")
    if not axis_name:
        return x
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(
            "Got unexpected `to` value. Allowed `to` values are: {'varying', 'reduced', "
            f"'unreduced'}}, got {to!r}"
        )
    if _is_of_the_current_mesh(axis_name):
        return x
    names = bound_names(axis_name, "pcast")
    typed = [n for n in names if n in axes.typed()]

    def one(leaf: Any) -> Any:
        if typed and (to != "varying" or get_aval(leaf).placed is not None):
            from lamina.lax.terms import cast_terms

            cast = cast_terms(leaf, tuple(typed), to)
            if cast is not None:
                return cast
        vma = get_aval(leaf).vma
        varying = [n for n in typed if n in vma]
        if varying and len(varying) < len(typed):
            raise ValueError(
                f"{library}.lax.pcast can only accept axis_name which corresponds to one of varying or "
                f"invarying state of the input. Got input type: {get_aval(leaf).str_long()}, axes: "
                f"{names}"
            )
        if typed and (varying or to != "varying"):
            state = "varying" if varying else "invarying"
            raise ValueError(f"Unsupported pcast from={state}, to={to!r}")
        return spread(leaf, typed)

    return tree.map(one, x)


def _is_of_the_current_mesh(axis_name: Any) -> bool:
    """Whether these are axes of the current mesh, outside of any shard_map. Raises ValueError where some have
    several devices, for what these have is said in a shard_map alone."""
    mesh = current_mesh.abstract() or current_mesh.entered() or current_mesh.of_programs()
    names = names_in(axis_name)
    if mesh is None or axes.bound() or any(n not in mesh.axis_names for n in names):
        return False
    if longer := [n for n in names if mesh.shape[n] > 1]:
        raise ValueError(
            f"pvary should be called under {library}.shard_map. Got the axes {longer} of {mesh}, over which nothing "
            "maps here"
        )
    return True


def pvary(x: Any, axis_name: Any) -> Any:
    """x, of a type that varies along an axis, whether or not it did: pcast to "varying" that may be
    repeated.

    x          a tree of arrays.
    axis_name  the axis' name, or a tuple of names.

    Raises NameError for a name that is not bound.

    >>> print(lamina.vmap(lambda x: lax.pvary(x, 'i'), axis_name='i')(jnp.arange(3)))
    [0 1 2]
    """
    names = bound_names(axis_name, "pvary")
    return tree.map(lambda leaf: spread(leaf, names), x)


def spread(x: Any, names: Sequence[Any] | frozenset[Any]) -> Any:
    """x, varying at least along these names as far as types tell."""
    new = (frozenset(names) & axes.typed()) - get_aval(x).vma
    placed = get_aval(x).placed
    if new and placed is not None and placed.sums is not WHOLE:
        new -= placed.sums.unreduced
        counted = placed.sums.reduced & new
        if counted:
            from lamina.lax.terms import reduced_to_varying

            x, new = reduced_to_varying(x, tuple(sorted(counted, key=str))), new - counted
    return pvary_p.bind(x, axes=tuple(sorted(new, key=str))) if new else x


pvary_p: Primitive = Primitive(
    "pvary",
    abstract_eval=lambda x, *, axes: x,
    lowering=lambda ctx, x, *, axes: x,
    jvp=LINEAR,
    transpose=lambda ct, x, *, axes: [sum_over(ct, tuple(n for n in axes if n not in x.aval.vma))],
    batching=lambda args, dims, *, axes: (pvary_p.bind(*args, axes=axes), dims[0]),
    axis_batching=lambda axis, args, dims, *, axes: (
        spread(args[0], [n for n in axes if n != axis.name]), dims[0]
    ),
    axis_names=lambda params: params["axes"],
    varying=lambda along, params: (along, along | (axes.typed() & frozenset(params["axes"]))),
)  # fmt: skip
