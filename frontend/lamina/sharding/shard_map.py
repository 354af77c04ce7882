"""shard_map: one function on every device of a mesh, each with its blocks of the arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

from lamina.control_flow.tracing import check_outputs
from lamina.core import axes, tree
from lamina.core.avals import ShapedArray
from lamina.core.library import library
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import named_place
from lamina.jit.function import jit
from lamina.lax.collective_sums import spread
from lamina.sharding.body_values import body_values
from lamina.sharding.manual import Manual, check_not_inside, inside
from lamina.sharding.mesh import AbstractMesh, Mesh, get_mesh
from lamina.sharding.on_mesh import shard_map_p
from lamina.sharding.shardings import check_spec
from lamina.sharding.spec import PartitionSpec


class _Inferred:
    """What `in_specs` is by default."""

    def __repr__(self) -> str:
        return "INFERRED"


INFERRED: Any = _Inferred()


@api_boundary
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: Any = INFERRED,
    out_specs: Any = None,
    *,
    axis_names: Any = None,
    check_vma: bool | None = None,
    check_rep: bool | None = None,
    auto: Any = frozenset(),
) -> Any:
    """f on each device of a mesh, each with its blocks; the mesh axes are named axes in f.

    mesh        by default the current one (`with mesh:`, `lamina.set_mesh`).
    in_specs    a PartitionSpec for each argument (a pytree prefix of the arguments): how it is cut. None in
                a tuple: f is given what stands there as it is, which need be no array. Without any they
                are cut as their types say, along explicit axes of the mesh.
    out_specs   a pytree prefix of the result: how its blocks make up arrays.
    axis_names  the axes that f maps over, by default all. Devices along the others ("auto") do the
                same; a shard_map over them may stand in f.
    check_vma   whether types in f say along which axes a value varies (`typeof(x).vma`). Gradients
                inside f are then right for values that all devices share; and a result that
                out_specs call equal on several devices must be known to be so.

    The same program runs on every device, so that all of them come to each collective. Raises
    ValueError where blocks would be of unequal size, specs do not fit the arrays or name an axis
    that f does not map over, or a result is not known to be replicated.

    f           a function of arrays: the blocks of one device.
    check_rep   an older name of check_vma.
    auto        the axes that f does not map over, in place of axis_names.

    >>> mesh, spec = lamina.make_mesh((1,), ("x",)), lamina.sharding.PartitionSpec("x")
    >>> f = lamina.shard_map(lambda x: x * 2, mesh=mesh, in_specs=spec, out_specs=spec)
    >>> f(jnp.arange(3)).tolist()
    [0, 2, 4]
    """
    if f is None:
        return functools.partial(
            shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=axis_names,
            check_vma=check_vma, check_rep=check_rep, auto=auto,
        )  # fmt: skip
    if not callable(f):
        raise TypeError(f"shard_map requires a callable as its first argument, got {f!r}")
    given = check_vma if check_vma is not None else check_rep
    check = True if given is None else bool(given)
    name = getattr(f, "__name__", str(f))
    if in_specs is not INFERRED and any(s is None for s in tree.leaves(in_specs, is_leaf=_is_spec)):
        return _given_whole(
            f,
            in_specs,
            lambda f, specs: shard_map(
                f, mesh, specs, out_specs, axis_names=axis_names, check_vma=check, auto=auto
            ),
        )

    @api_boundary
    def mapped(*args: Any) -> Any:
        on = _manual(mesh, axis_names, auto, check)
        return _apply(f, name, on, in_specs, out_specs, args)

    for word in ("__name__", "__qualname__", "__doc__", "__module__"):
        if hasattr(f, word):
            setattr(mapped, word, getattr(f, word))
    return jit(mapped, inline=True)


def _given_whole(
    f: Callable[..., Any], in_specs: Any, split: Callable[[Callable[..., Any], Any], Callable[..., Any]]
) -> Callable[..., Any]:
    """A shard_map of f some of whose arguments have no spec: f closes over them. `split` makes that of a
    function whose arguments all have one."""

    @functools.wraps(f)
    def call(*args: Any) -> Any:
        leaves, structure = tree.flatten(args)
        specs = _spread_specs("in_specs", in_specs, args)
        pairs = list(zip(leaves, specs, strict=True))

        @functools.wraps(f)
        def on_arrays(*blocks: Any) -> Any:
            rest = iter(blocks)
            return f(*tree.unflatten(structure, [x if s is None else next(rest) for x, s in pairs]))

        arrays = [x for x, s in pairs if s is not None]
        return split(on_arrays, tuple(s for s in specs if s is not None))(*arrays)

    return call


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: Any = INFERRED,
    out_axes: Any,
    axis_name: Any,
) -> Any:
    """shard_map over one axis of the current mesh, with axes as vmap has them.

    f          a function of pytrees of arrays, given each device's part; None: a decorator is
               given.
    in_axes    for each argument the dimension that is split, or None: the same for all. By default
               that which types say, where the axis is explicit.
    out_axes   the same for the results.
    axis_name  the axis of the mesh, for collectives too.

    >>> mesh = lamina.make_mesh((1,), ('x',))
    >>> with lamina.set_mesh(mesh):
    ...     double = lamina.smap(lambda x: 2 * x, in_axes=0, out_axes=0, axis_name='x')
    ...     print(double(jnp.arange(3)))
    [0 2 4]
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    def spec(axis: Any) -> PartitionSpec:
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    def specs(in_tree: Any) -> Any:
        return tree.map(spec, in_tree, is_leaf=lambda x: x is None)

    names = {axis_name}
    in_specs = INFERRED if in_axes is INFERRED else specs(in_axes)
    return shard_map(f, in_specs=in_specs, out_specs=specs(out_axes), axis_names=names)


def _manual(mesh: Any, axis_names: Any, auto: Any, check: bool) -> Manual:
    outer = inside()
    if mesh is None:
        mesh = get_mesh() if outer is None else outer.mesh
    if (
        outer is not None
        and isinstance(mesh, AbstractMesh)
        and mesh.shape_tuple == outer.mesh.shape_tuple
    ):
        mesh = outer.mesh
    if isinstance(mesh, AbstractMesh):
        current = get_mesh()
        if current.empty:  # its devices are the arguments'
            pass
        elif current.shape_tuple == mesh.shape_tuple:
            mesh = current
        else:
            raise ValueError(
                f"The context mesh {current} should match the mesh passed to shard_map {mesh}: both have the same axes"
            )
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(
            f"shard_map requires a `{library}.sharding.Mesh` for its `mesh` argument, got {mesh!r}"
        )
    if mesh.empty:
        raise ValueError(
            "shard_map requires a non-empty mesh. The context mesh cannot be empty: give shard_map a mesh, or use one "
            f"as a context (`with mesh:` or `{library}.set_mesh(mesh)`)"
        )
    bound = set() if outer is None else {n for n, _ in axes.bound() if n in outer.mesh.axis_names}
    names = set(axis_names or set(mesh.axis_names) - (bound if axis_names is None else set()))
    names -= set(auto)
    unknown = names - set(mesh.axis_names)
    if unknown:
        raise ValueError(
            f"shard_map axis_names {unknown} must be a subset of the mesh axes {mesh.axis_names}"
        )
    if outer is not None and (mesh != outer.mesh or names & bound or not names):
        check_not_inside("shard_map", mesh)
    return Manual(mesh, tuple(n for n in mesh.axis_names if n in names), check)


def _is_spec(x: Any) -> bool:
    return isinstance(x, PartitionSpec) or x is None


def _spread_specs(what: str, specs: Any, value: Any) -> list[Any]:
    try:
        return tree.broadcast_prefix(specs, value, _is_spec)
    except ValueError as e:
        at = tree.where_no_prefix(specs, value, _is_spec)
        raise ValueError(
            f"shard_map {what}{at} specification must be a tree prefix of the corresponding value, got "
            f"specification {specs} for value tree {tree.structure(value)}: {e}"
        ) from None


def _specs(what: str, specs: Any, value: Any, on: Manual) -> list[PartitionSpec]:
    found = _spread_specs(what, specs, value)
    for spec in found:
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"shard_map {what} must be a pytree of PartitionSpecs, but it has {spec!r}"
            )
        _check_terms(what, spec, on)
        check_spec(on.mesh, spec)
        for name in spec.names():
            if name not in on.names:
                raise ValueError(
                    f"shard_map {what} argument must refer to an axis marked as manual "
                    f"({set(on.names)}), but:\n\n  {what} refers to {name!r}\n\nCheck the {what} "
                    "values passed to shard_map."
                )
    return found


def _check_terms(what: str, spec: PartitionSpec, on: Manual) -> None:
    for said in ("unreduced", "reduced"):
        if not getattr(spec, said):
            continue
        if len(on.names) < len(on.mesh.axis_names):
            raise NotImplementedError(
                f"{said} axes can only be passed to {what} when shard_map is in full manual mode, over all axes of "
                f"{on.mesh}. Got {spec}"
            )
        if on.mesh.auto_axes:
            raise ValueError(
                f"{said} axes can only be used when the mesh passed to shard_map contains axis names all of type "
                f"`Explicit`. Got {spec} over {on.mesh}"
            )


def _apply(
    f: Callable[..., Any],
    name: str,
    on: Manual,
    in_specs: Any,
    out_specs: Any,
    args: tuple[Any, ...],
) -> Any:
    mesh = on.mesh
    if isinstance(in_specs, list):
        in_specs = tuple(in_specs)
    if isinstance(in_specs, tuple) and not _is_spec(in_specs) and len(in_specs) != len(args):
        raise ValueError(
            f"shard_map in_specs has {len(in_specs)} entries for {len(args)} arguments of {name}"
        )
    leaves, in_tree = tree.flatten(args)
    if in_specs is INFERRED:
        specs = [_inferred(get_aval(x), on, path) for x, path in zip(leaves, tree.paths(args))]
    else:
        specs = _specs("in_specs", in_specs, args, on)
    _check_arguments(name, mesh, leaves, specs, tree.paths(args))
    blocks = [on.block_type(get_aval(x), s) for x, s in zip(leaves, specs, strict=True)]
    out: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        result = f(*tree.unflatten(in_tree, values))
        flat_out, out_tree = tree.flatten(result)
        check_outputs(flat_out, named_place(f))
        result_specs = _specs("out_specs", out_specs, result, on)
        out[:] = [out_tree, result_specs, tree.paths(result)]
        return [spread(x, s.names()) for x, s in zip(flat_out, result_specs, strict=True)]

    flat.__name__ = name
    closed, consts = on.trace(flat, blocks, "shard_map", body_values(on, specs, leaves))
    out_tree, result_specs, paths = out
    specs = [PartitionSpec()] * len(consts) + specs
    _check_ranks(name, closed.out_avals, result_specs, paths)
    if on.checked:
        _check_replicated(name, on, closed.out_avals, result_specs, paths)
    outs = shard_map_p.bind(
        *consts,
        *leaves,
        jaxpr=closed,
        on=on,
        in_specs=tuple(specs),
        out_specs=tuple(result_specs),
    )
    return tree.unflatten(out_tree, outs)


def _inferred(aval: ShapedArray, on: Manual, path: str) -> PartitionSpec:
    """How an argument is cut, as its type says."""
    unsaid = [n for n in on.names if n not in on.mesh.explicit_axes]
    if unsaid:
        raise TypeError(
            "shard_map's in_specs, or smap's in_axes was not specified: types say how arrays lie along explicit axes "
            f"of a mesh, and {unsaid} of {on.mesh} are of other kinds (args{path} is {aval.str_long()})"
        )
    if aval.placed is None:
        return PartitionSpec()
    of, here = aval.placed.sums, frozenset(on.names)
    terms = of.unreduced & here
    return PartitionSpec(
        *(tuple(n for n in names if n in here) for names in aval.placed.dims),
        unreduced=terms, reduced=of.reduced & here, unreduced_kind=of.kind if terms else None,
    )  # fmt: skip


def _check_arguments(
    name: str,
    mesh: Mesh,
    leaves: Sequence[Any],
    specs: Sequence[PartitionSpec],
    paths: Sequence[str],
) -> None:
    uneven = []
    for x, spec, path in zip(leaves, specs, paths, strict=True):
        shape = get_aval(x).shape
        if len(spec) > len(shape):
            raise ValueError(
                f"shard_map applied to the function '{name}' was given an in_specs entry which is "
                "too long to be compatible with the corresponding argument value from the "
                f"function:\n\n* args{path} has shape {shape}, which has rank {len(shape)}, but its in_specs "
                f"entry is {spec}, which has length {len(spec)}"
                + ("" if shape else ": for a number, consider using an in_specs entry of `P()`")
            )
        for dim, n in enumerate(shape):
            names = spec.names_of(dim)
            parts = 1
            for axis in names:
                parts *= mesh.shape[axis]
            if n % parts:
                shown = repr(names[0]) if len(names) == 1 else str(names)
                uneven.append(
                    f"* args{path} of shape {shape} corresponds to in_specs of value {spec}, which "
                    f"maps array axis {dim} (of size {n}) to mesh axis {shown} (of size {parts}), "
                    f"but {parts} does not evenly divide {n}"
                )
    if uneven:
        raise ValueError(
            f"shard_map applied to the function '{name}' was given argument arrays with axis sizes "
            "that are not evenly divisible by the corresponding mesh axis sizes:\n\n"
            f"The mesh given has shape {tuple(mesh.axis_sizes)}, corresponding to axis names "
            f"{mesh.axis_names}.\n\n" + "\n".join(uneven)
        )


def _check_ranks(
    name: str, avals: Sequence[Any], specs: Sequence[PartitionSpec], paths: Sequence[str]
) -> None:
    for aval, spec, path in zip(avals, specs, paths, strict=True):
        if len(spec) > aval.ndim:
            raise ValueError(
                f"shard_map applied to the function '{name}' was given an out_specs entry which is "
                "too long to be compatible with the corresponding output value from the function:"
                f"\n\n* out_specs{path} is {spec}, which has length {len(spec)}, but the "
                f"corresponding output has shape {aval.shape} of rank {aval.ndim}"
            )


def _listed(on: Manual, names: Collection[Any]) -> str:
    return f"{{{','.join(str(name) for name in on.mesh.axis_names if name in names)}}}"


def _check_replicated(
    name: str,
    on: Manual,
    avals: Sequence[Any],
    specs: Sequence[PartitionSpec],
    paths: Sequence[str],
) -> None:
    mesh = on.mesh
    for aval, spec, path in zip(avals, specs, paths, strict=True):
        have = aval.mat
        said = spec.unreduced, spec.reduced, spec.unreduced_kind
        if said != (have.unreduced, have.reduced, have.unreduced_kind):
            raise ValueError(
                f"out_specs passed to shard_map: {spec} of out_specs{path} and the type of the result, "
                f"{aval.str_short()}, should say the same of unreduced and reduced axes (lax.pcast casts)"
            )
    wrong = [
        f"* out_specs{path} is {spec} which implies that the corresponding output value is only varying across mesh "
        f"axes {_listed(on, spec.names())} and not {_listed(on, set(on.unnamed(spec)) & aval.vma)}, but it was "
        f"inferred to be possibly varying over {_listed(on, aval.vma)}"
        for aval, spec, path in zip(avals, specs, paths, strict=True)
        if aval.vma & {n for n in on.unnamed(spec) if mesh.shape[n] > 1}
    ]
    if wrong:
        raise ValueError(
            f"shard_map applied to the function '{name}' was given out_specs which require "
            "replication which can't be statically inferred given the mesh:\n\n"
            f"The mesh given has shape {tuple(mesh.axis_sizes)} with corresponding axis names "
            f"{mesh.axis_names}.\n\nout_specs implies that:\n" + "\n".join(wrong) + "\n\n"
            "Check if these output values are meant to be replicated over those mesh axes. If not, "
            "consider revising the corresponding out_specs entries. If so, consider disabling the "
            f"check by passing the check_vma=False argument to `{library}.shard_map`."
        )
