"""with_sharding_constraint: says where a value is to lie, and changes nothing of it."""

from __future__ import annotations

from typing import Any

from lamina.array import ArrayImpl
from lamina.core import LINEAR, Primitive, ShapedArray, get_aval, tree
from lamina.core.library import library
from lamina.core.placed import Placed
from lamina.core.trace import Tracer, is_evaluating
from lamina.shape_dtype import ShapeDtypeStruct


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """x; results of a program that come straight from it have these shardings. Where all axes of the current
    mesh are explicit, it is an assertion that x lies so: `reshard` moves.

    x          a tree of arrays.
    shardings  a pytree prefix of x: Shardings, or PartitionSpecs over the current mesh.

    Raises ValueError where a sharding does not fit an array or is None, RuntimeError for a PartitionSpec where
    there is no mesh, AssertionError where x is asserted to lie so and does not.

    >>> mesh = lamina.make_mesh((1,), ("x",), axis_types=(lamina.sharding.AxisType.Auto,))
    >>> sharding = lamina.NamedSharding(mesh, lamina.P("x"))
    >>> f = lamina.jit(lambda x: lamina.lax.with_sharding_constraint(x + 1, sharding))
    >>> print(f(jnp.arange(2)))
    [1 2]
    """
    from lamina.sharding.manual import manual_names
    from lamina.sharding.mesh import AbstractMesh, get_abstract_mesh
    from lamina.sharding.shardings import NamedSharding, Sharding, check_rank, over_current_mesh
    from lamina.sharding.spec import PartitionSpec

    def is_place(value: Any) -> bool:
        return value is None or isinstance(value, (Sharding, PartitionSpec))

    asserts = bool(get_abstract_mesh().axis_names) and get_abstract_mesh().are_all_axes_explicit
    leaves, treedef = tree.flatten(x)
    out = []
    for leaf, place in zip(leaves, tree.broadcast_prefix(shardings, x, is_place), strict=True):
        if isinstance(place, PartitionSpec):
            over = over_current_mesh(place)
            if over is None:
                raise RuntimeError(
                    "with_sharding_constraint requires a non-empty mesh in context if you are passing "
                    f"`PartitionSpec`s: pass a Sharding, or set a mesh by {library}.set_mesh"
                )
            place = over
        if isinstance(place, NamedSharding):
            if mapped := [name for name in place.spec.names() if name in manual_names()]:
                raise ValueError(
                    f"with_sharding_constraint to {place.spec} contains a manual axes {mapped} of mesh {place.mesh}: a "
                    "shard_map around maps over them"
                )
            check_rank(place, get_aval(leaf).shape, "One of with_sharding_constraint arguments")
            if isinstance(place.mesh, AbstractMesh) and is_evaluating() and not isinstance(leaf, Tracer):
                _check_eager(leaf, place)
        if place is None:
            raise ValueError(
                "One of with_sharding_constraint arguments got sharding None which is not allowed: give a "
                f"`{library}.sharding.Sharding`, or leave that array out"
            )
        if asserts and isinstance(place, NamedSharding):
            _assert_lies(get_aval(leaf), place)
            out.append(leaf)
        else:
            out.append(sharding_constraint_p.bind(leaf, sharding=place))
    return tree.unflatten(treedef, out)


def _check_eager(x: Any, place: Any) -> None:
    """Raises an error where an array does not say which devices a mesh without devices stands for."""
    from lamina.core.array_class import Array
    from lamina.sharding.shardings import NamedSharding

    if not isinstance(x, Array):
        raise ValueError(
            f"with_sharding_constraint under {place} requires the input passed should be a `{library}.Array`, which "
            f"says on which devices it is. Got {type(x).__name__}"
        )
    if not isinstance(x.sharding, NamedSharding):
        raise TypeError(
            "The sharding on the input must be a `NamedSharding` where that of with_sharding_constraint has an "
            f"AbstractMesh. Got {x.sharding} and {place}"
        )
    if x.sharding.mesh.shape_tuple != place.mesh.shape_tuple:
        raise ValueError(
            f"Mesh shape of the input {x.sharding.mesh.shape_tuple} does not match the mesh shape of the target "
            f"sharding {place.mesh.shape_tuple} in with_sharding_constraint"
        )


def _assert_lies(aval: ShapedArray, sharding: Any) -> None:
    from lamina.sharding.explicit import placed_by

    asserted = placed_by(sharding, aval.ndim)
    for dim in range(aval.ndim):
        is_open = dim < len(sharding.spec) and sharding.spec[dim] is sharding.spec.UNCONSTRAINED
        have, said = ((p.dims[dim] if p is not None else ()) for p in (aval.placed, asserted))
        if not is_open and have != said:
            raise AssertionError(
                "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array "
                f"of type {aval.str_short()} lies under {aval.sharding.spec}, and the sharding given is "
                f"{sharding.spec}: {library}.reshard moves it there"
            )


def place_like(a: Any, shape: tuple[int, ...]) -> Any:
    """Where an array of this shape lies that is made like `a`: where `a` or its type was placed, if it has this shape
    or is on one device; None elsewhere.

    a      an array, or its type.
    shape  of the other.

    >>> lamina.lax.place_like(jnp.ones(2), (2,)) is None
    True
    """
    place = None
    if type(a) is ArrayImpl:
        place = a.sharding if a.committed else None
    elif isinstance(a, ShapeDtypeStruct):
        place = a.sharding
    elif isinstance(a, Tracer):
        place = None if a.aval.placed is None else a.aval.sharding
    if place is None:
        return None
    from lamina.sharding.explicit import on_devices
    from lamina.sharding.manual import inside
    from lamina.sharding.shardings import NamedSharding

    if not isinstance(place, NamedSharding):
        return place
    if shape != a.shape or inside() is not None or not place.spec.is_plain:
        return None
    return on_devices(place) if is_evaluating() else place


def laid(x: Any, sharding: Any) -> Any:
    """An array that was made to lie so: put there by a Sharding, under a PartitionSpec as `under` has it.

    x         the array.
    sharding  where it is to lie.

    >>> lamina.lax.laid(jnp.ones(2), lamina.sharding.SingleDeviceSharding(lamina.devices()[0])).committed
    True
    """
    from lamina.sharding.shardings import Sharding

    if not isinstance(sharding, Sharding):
        return under(x, sharding, "sharding")
    from lamina.devices import device_put

    return device_put(x, sharding)


def under(x: Any, out_sharding: Any, function: str = "out_sharding", combined: str = "sum") -> Any:
    """A result under the sharding that a function's `out_sharding` asks for.

    x             an array of any shape and dtype.
    out_sharding  a NamedSharding or a PartitionSpec over the current mesh; anything else raises TypeError. None,
                  and what the type of an array that nobody placed says, ask for nothing.

    function      what it was given to, for messages.
    combined      what terms of the result are combined by: "sum", "max" or "min".

    Raises ValueError for a PartitionSpec where no mesh is current, for axes of which types say nothing, and for terms
    that are combined otherwise.

    >>> lamina.lax.under(jnp.arange(3), None)
    Array([0, 1, 2], dtype=int32)
    """
    if out_sharding is None or getattr(getattr(out_sharding, "mesh", None), "empty", False):
        return x
    from lamina.sharding.explicit import in_types
    from lamina.sharding.shardings import check_rank

    sharding = in_types(out_sharding, function)
    if len(sharding.spec) > get_aval(x).ndim:  # what leaves all whole fits any rank
        sharding = sharding.update(spec=sharding.spec.trimmed())
    check_rank(sharding, get_aval(x).shape, "A result with an out_sharding")
    kind = sharding.spec.unreduced_kind
    if kind is not None and kind.name != combined:
        raise ValueError(
            f"`out_sharding` passed to `{function}` asks for terms of a {kind.name}: what devices have of its result "
            f"is combined by {combined}. Got {sharding.spec}"
        )
    return sharding_constraint_p.bind(x, sharding=sharding)


def spread_batch(x: Any, dim: int, names: tuple[Any, ...]) -> Any:
    """A batch of one value repeated along `dim`, spread over these axes of the current mesh as the other operands
    of a vmap are, where types speak of them.

    x      an array of any shape and dtype.
    dim    a dimension.
    names  axes; none that x has along another dimension.

    >>> lamina.lax.spread_batch(jnp.arange(3), 0, ())
    Array([0, 1, 2], dtype=int32)
    """
    from lamina.sharding.mesh import get_abstract_mesh
    from lamina.sharding.spec import PartitionSpec

    if not names or not set(names) <= set(get_abstract_mesh().explicit_axes):
        return x
    placed = get_aval(x).placed
    dims = [()] * get_aval(x).ndim if placed is None else list(placed.dims)
    if any(name in names for of in dims for name in of):
        return x
    dims[dim] = names
    return under(x, PartitionSpec(*dims), "vmap")


def placed_of(x: Any) -> Placed | None:
    """How the type of an array, or a type by itself, says that it lies; None where it says nothing.

    x  an array, or a ShapeDtypeStruct.

    >>> lamina.lax.placed_of(jnp.arange(3)) is None
    True
    """
    from lamina.sharding.explicit import placed_by

    return placed_by(x.sharding, x.ndim) if isinstance(x, ShapeDtypeStruct) else get_aval(x).placed


def as_typed(x: Any, aval: ShapedArray) -> Any:
    """A value that is to lie as a type says, where it says that.

    x     an array of any shape and dtype.
    aval  the type, such as lamina.typeof gives it.

    >>> x = jnp.arange(3)
    >>> lamina.lax.as_typed(x, lamina.typeof(x))
    Array([0, 1, 2], dtype=int32)
    """
    placed = aval.placed
    if placed is None or get_aval(x).placed == placed or get_aval(x).ndim != aval.ndim:
        return x
    if placed.mesh.manual_axes and not placed.mesh.explicit_axes:
        from lamina.lax.terms import as_sums

        return as_sums(x, placed)
    from lamina.sharding.explicit import sharding_of

    return sharding_constraint_p.bind(x, sharding=sharding_of(aval))


def _abstract_eval(x: ShapedArray, *, sharding: Any) -> ShapedArray:
    from lamina.sharding.explicit import placed_by
    from lamina.sharding.shardings import check_divides

    placed = placed_by(sharding, x.ndim)
    if placed is not None:
        check_divides(sharding, x.shape, "A value")
    return x if placed == x.placed else x.update(placed=placed)


def _impl(x: Any, *, sharding: Any) -> Any:
    from lamina.placement import put_value
    from lamina.sharding.explicit import on_devices
    from lamina.sharding.shardings import NamedSharding

    place = getattr(x, "sharding", None)  # of an array
    if isinstance(sharding, NamedSharding):
        sharding = on_devices(sharding, [getattr(place, "mesh", None)])
        there = () if place is None else place.device_list
        if len(there) > 1 and there != sharding.device_list:
            raise ValueError(
                "Received incompatible devices for jitted computation. An array on devices "
                f"{[d.id for d in there]} can't be constrained to lie on {[d.id for d in sharding.device_list]}: "
                "device_put moves it there"
            )
    return put_value(x, sharding)


def _lowering(ctx: Any, x: Any, *, sharding: Any) -> Any:
    annotations = ctx.module.annotations
    return x if annotations is None else annotations.constrain(ctx.module, x, sharding)


def _batching(args: Any, dims: Any, *, sharding: Any) -> Any:
    from lamina.core import axes
    from lamina.sharding.shardings import NamedSharding
    from lamina.sharding.spec import PartitionSpec, check_not_spread

    spmd = axes.batching().spmd_name
    if spmd and not isinstance(sharding, NamedSharding):
        raise ValueError(
            f"If you are using spmd_axis_name parameter of {library}.vmap, please make sure to run your jitted "
            "function inside the mesh context manager, and to constrain values by NamedShardings. Got the sharding "
            f"of type {type(sharding).__name__} in with_sharding_constraint, and spmd_axis_name {spmd}"
        )
    if isinstance(sharding, NamedSharding):
        check_not_spread(spmd, sharding.spec, "with_sharding_constraint's sharding")
        entries = list(sharding.spec)
        entries += [None] * (get_aval(args[0]).ndim - 1 - len(entries))
        entries.insert(dims[0], spmd or (PartitionSpec.UNCONSTRAINED if sharding.mesh.auto_axes else None))
        sharding = NamedSharding(sharding.mesh, sharding.spec.with_entries(entries))
    return sharding_constraint_p.bind(args[0], sharding=sharding), dims[0]


def _transpose(ct: Any, x: Any, *, sharding: Any) -> list[Any]:
    """Cotangents lie as those of the operand do; where types do not say, as the result does."""
    if x.aval.placed is not None:  # the transposition sees to it
        return [ct]
    from lamina.sharding.shardings import NamedSharding

    if isinstance(sharding, NamedSharding) and not sharding.spec.is_plain:
        sharding = sharding.update(spec=sharding.spec.of_cotangent())
    return [sharding_constraint_p.bind(ct, sharding=sharding)]


sharding_constraint_p: Primitive = Primitive(
    "sharding_constraint",
    abstract_eval=_abstract_eval,
    align=lambda args, params: (args, params),
    lowering=_lowering,
    jvp=LINEAR,
    transpose=_transpose,
    batching=_batching,
    impl=_impl,
)
