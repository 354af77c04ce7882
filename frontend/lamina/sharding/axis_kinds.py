"""auto_axes and explicit_axes: a part of a program in which axes of the mesh are of another kind."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from lamina.core import LINEAR, Primitive, ShapedArray, tree
from lamina.core.placed import Placed, sums
from lamina.core.trace import get_aval, is_array_like
from lamina.sharding.arrays import reshard
from lamina.sharding.mesh import AbstractMesh, AxisType, Mesh, get_abstract_mesh, use_abstract_mesh
from lamina.sharding.shardings import NamedSharding


def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Any:
    """f, in which the partitioner spreads arrays over some axes of the mesh: types say nothing of those, so
    that operations whose result is left open by their operands are no error in it.

    f             a function of arrays; None: a decorator is given.
    axes          the name of an axis, or several; by default all. Where they are Auto already, f does as it would
                  by itself.
    out_sharding  shardings or PartitionSpecs, a pytree prefix of the results: how they lie. Here or in
                  the call.

    Raises TypeError where there is no out_sharding, ValueError for an axis that the mesh has not.

    >>> mesh = lamina.make_mesh((1,), ('x',))
    >>> with lamina.set_mesh(mesh):
    ...     f = lamina.sharding.auto_axes(lambda x: x + 1, out_sharding=lamina.P('x'))
    ...     print(f(jnp.arange(3)))
    [1 2 3]
    """

    def apply(f: Callable[..., Any], place: Any, args: Any, kwargs: Any) -> Any:
        outside = _mesh_of((args, kwargs), place)
        inside = outside.update_axis_types(_kinds(outside, axes, AxisType.Auto))
        if inside == outside:
            return f(*args, **kwargs)
        args, kwargs = _on(inside, (args, kwargs))
        with use_abstract_mesh(inside):
            out = f(*args, **kwargs)
        with use_abstract_mesh(outside):
            return reshard(_on(outside, out), place)

    return _with_place(f, "out_sharding", out_sharding, apply)


def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Any:
    """f, in which types say how arrays lie along some axes of the mesh, over which the partitioner spreads
    them elsewhere.

    f            a function of arrays; None: a decorator is given.
    axes         the name of an axis, or several; by default all. Where they are Explicit already, f does as it would
                 by itself.
    in_sharding  shardings or PartitionSpecs, a pytree prefix of the arguments: how these lie. Here or in
                 the call.

    Raises TypeError where there is no in_sharding, ValueError for an axis that the mesh has not.

    >>> mesh = lamina.make_mesh((1,), ('x',))
    >>> with lamina.set_mesh(mesh):
    ...     f = lamina.sharding.explicit_axes(lambda x: x + 1, in_sharding=lamina.P('x'))
    ...     print(f(jnp.arange(3)))
    [1 2 3]
    """

    def apply(f: Callable[..., Any], place: Any, args: Any, kwargs: Any) -> Any:
        outside = _mesh_of((args, kwargs), place)
        inside = outside.update_axis_types(_kinds(outside, axes, AxisType.Explicit))
        if inside == outside:
            return f(*args, **kwargs)
        with use_abstract_mesh(inside):
            args = reshard(_on(inside, args), place)
            out = f(*args, **_on(inside, kwargs))
        return _on(outside, out)

    return _with_place(f, "in_sharding", in_sharding, apply)


def _with_place(
    f: Callable[..., Any] | None, keyword: str, place: Any, apply: Callable[..., Any]
) -> Any:
    """A function that takes a sharding by keyword, or a decorator that makes one."""
    if f is None:
        return lambda f: _with_place(f, keyword, place, apply)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        to = kwargs.pop(keyword, place)
        if to is None:
            raise TypeError(f"Missing required keyword argument: {keyword!r}")
        return apply(f, to, args, kwargs)

    return call


def _mesh_of(values: Any, places: Any) -> AbstractMesh:
    """The axes of the current mesh, or of that of the shardings given, or of the mesh on which arrays lie."""
    mesh = get_abstract_mesh()
    if not mesh.empty:
        return mesh
    for place in tree.leaves(places):
        if isinstance(place, NamedSharding):
            return place.mesh.abstract_mesh
    for x in tree.leaves(values):
        placed = get_aval(x).placed if is_array_like(x) else None
        if placed is not None:
            found: AbstractMesh = placed.mesh
            return found
        place = getattr(x, "sharding", None)
        if isinstance(place, NamedSharding) and isinstance(place.mesh, Mesh):
            return place.mesh.abstract_mesh
    return mesh


def _kinds(mesh: AbstractMesh, axes: Any, kind: AxisType) -> Mapping[Any, AxisType]:
    names = mesh.axis_names if axes is None else axes if isinstance(axes, (tuple, set)) else (axes,)
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(f"there is no axis {name!r} in {mesh}")
    manual = mesh.manual_axes
    if axes is not None and (mapped := [n for n in names if n in manual]):
        raise NotImplementedError(
            f"Going from `Manual` axes to `Auto` or `Explicit` ones is not possible: axes {mapped} are mapped over by "
            f"hand here (shard_map), and stay so: {mesh}"
        )
    return {name: kind for name in names if name not in manual}


def _on(mesh: AbstractMesh, values: Any) -> Any:
    """Arrays with types that speak of these axes."""

    def cast(x: Any) -> Any:
        if not is_array_like(x) or mesh.empty:
            return x
        aval = get_aval(x)
        return x if _placed(aval, mesh) == aval.placed else mesh_cast_p.bind(x, mesh=mesh)

    return tree.map(cast, values)


def _placed(aval: ShapedArray, mesh: AbstractMesh) -> Placed | None:
    if aval.placed is None or AxisType.Explicit not in mesh.axis_types:
        return None
    names = set(mesh.explicit_axes)
    dims = tuple(tuple(n for n in at if n in names) for at in aval.placed.dims)
    of = aval.placed.sums
    return Placed(mesh, dims, sums(of.unreduced & names, of.reduced & names, of.kind))


def _transpose(ct: Any, x: Any, *, mesh: AbstractMesh) -> Any:
    before = x.aval.placed
    if before is None:
        before_mesh = mesh.update_axis_types(dict.fromkeys(mesh.explicit_axes, AxisType.Auto))
    else:
        before_mesh = before.mesh
    return [mesh_cast_p.bind(ct, mesh=before_mesh)]


def _impl(x: Any, *, mesh: AbstractMesh) -> Any:
    from lamina.placement import put
    from lamina.runtime import to_array

    array = to_array(x)
    place = array.sharding
    if not isinstance(place, NamedSharding) or not isinstance(place.mesh, Mesh):
        return array
    if place.mesh.axis_types == mesh.axis_types:
        return array
    return put(array, NamedSharding(place.mesh.update(axis_types=mesh.axis_types), place.spec))


mesh_cast_p: Primitive = Primitive(
    "mesh_cast",
    abstract_eval=lambda x, *, mesh: x.update(placed=_placed(x, mesh)),
    align=lambda args, params: (args, params),
    lowering=lambda ctx, x, *, mesh: x,
    jvp=LINEAR,
    transpose=_transpose,
    batching=lambda args, dims, *, mesh: (mesh_cast_p.bind(args[0], mesh=mesh), dims[0]),
    impl=_impl,
)
"""The same array with a type that speaks of axes of other kinds."""
