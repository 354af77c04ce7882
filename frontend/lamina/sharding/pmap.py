"""pmap: the lanes of a vmap, each on a device of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from lamina.control_flow.tracing import check_callable
from lamina.core import tree
from lamina.core.library import library
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import function_name, update_wrapper
from lamina.devices import devices as all_devices
from lamina.jit.function import jit
from lamina.sharding.manual import Manual, check_not_inside
from lamina.sharding.mesh import Mesh
from lamina.sharding.on_mesh import shard_map_p
from lamina.sharding.spec import PartitionSpec
from lamina.stages import Wrapped
from lamina.vmap import mapped_sizes, names_of_leaves

P = ParamSpec("P")
R = TypeVar("R")


class _Unnamed:
    def __repr__(self) -> str:
        return "<pmap axis>"


_UNNAMED = _Unnamed()


def _is_none(x: Any) -> bool:
    return x is None


@api_boundary
def pmap(
    fun: Callable[P, R],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    global_arg_shapes: Any = None,
) -> Wrapped[P, R]:
    """fun over a dimension of its arguments, position i on device i. Results are arrays whose
    shards are what each device made. jit with shardings, or shard_map, is the newer way.

    fun                         a function of pytrees of arrays.
    axis_name                   a name for the axis, for collectives such as lax.psum.
    in_axes, out_axes           the dimension of each argument and result, as vmap has them; None:
                                the same for all.
    static_broadcasted_argnums  positions of arguments that are no arrays, as jit's static_argnums.
    devices                     the devices to use; None: the first of all.
    backend                     the platform whose devices these are.
    axis_size                   the size of the dimension, where no argument tells it.
    donate_argnums              arguments whose memory results may take.
    global_arg_shapes           None.

    Raises ValueError where sizes differ (listing each), where there are too few devices, and where
    an argument that is mapped has no dimension.

    >>> print(lamina.pmap(lambda x: x * lamina.lax.psum(x, 'i'), axis_name='i')(jnp.array([3.0])))
    [9.]
    """
    check_callable(fun)
    if global_arg_shapes is not None:
        raise NotImplementedError("pmap: global_arg_shapes are for several processes")
    if devices is not None and len(devices) == 0:
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    name = _UNNAMED if axis_name is None else axis_name
    static = (
        (static_broadcasted_argnums,)
        if isinstance(static_broadcasted_argnums, int)
        else tuple(static_broadcasted_argnums)
    )

    @api_boundary
    def pmapped(*args: Any, **kwargs: Any) -> Any:
        at = {i % len(args) for i in static}
        dynamic = [x for i, x in enumerate(args) if i not in at]
        axes: Any = in_axes
        if isinstance(in_axes, tuple):
            if len(in_axes) != len(args):
                raise ValueError(
                    "pmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                    f"positional arguments passed to the function, but got {len(in_axes)=}, "
                    f"{len(args)=}"
                )
            axes = tuple(a for i, a in enumerate(in_axes) if i not in at)

        def with_static(*given: Any, **kw: Any) -> Any:
            rest = iter(given)
            return fun(*[x if i in at else next(rest) for i, x in enumerate(args)], **kw)

        names = list if at else functools.partial(names_of_leaves, fun, args, kwargs)
        return _apply(
            with_static, fun, tuple(dynamic), kwargs, axes, out_axes, name, axis_size,
            _mesh_devices(devices, backend), names,
        )  # fmt: skip

    update_wrapper(pmapped, fun)
    wrapped: Any = jit(pmapped, static_argnums=static or None, donate_argnums=donate_argnums)
    wrapped.__wrapped__ = fun
    return wrapped


def _mesh_devices(devices: Sequence[Any] | None, backend: str | None) -> list[Any]:
    return all_devices(backend) if devices is None else list(devices)


def _apply(
    fun: Callable[..., Any],
    named: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    in_axes: Any,
    out_axes: Any,
    name: Any,
    axis_size: int | None,
    devices: list[Any],
    names: Callable[[], Sequence[str]],
) -> Any:
    from lamina import lax

    leaves, in_tree = tree.flatten((args, kwargs))
    dims, size = mapped_sizes("pmap", leaves, _axes_of(args, kwargs, in_axes), names, axis_size)
    _check_devices(size, len(devices))
    mesh = Mesh(np.array(devices[:size], dtype=object), (name,))
    check_not_inside("pmap", mesh)
    on = Manual(mesh, (name,), False)
    out_dims: list[Any] = []
    out: list[Any] = []

    def on_device(*blocks: Any) -> list[Any]:
        lanes = [
            x if d is None else lax.squeeze(x, (d,)) for x, d in zip(blocks, dims, strict=True)
        ]
        a, k = tree.unflatten(in_tree, lanes)
        result = fun(*a, **k)
        outs, out_tree = tree.flatten(result)
        wanted = tree.broadcast_prefix(out_axes, result, _is_none)
        out_dims[:] = [
            d if d is None else d % (get_aval(x).ndim + 1)
            for d, x in zip(wanted, outs, strict=True)
        ]
        out[:] = [out_tree]
        return [
            x if d is None else lax.expand_dims(x, (d,))
            for x, d in zip(outs, out_dims, strict=True)
        ]

    def spec(dim: Any) -> PartitionSpec:
        return PartitionSpec() if dim is None else PartitionSpec(*[None] * dim, name)

    blocks = [
        get_aval(x) if d is None else on.block_type(get_aval(x), spec(d))
        for x, d in zip(leaves, dims, strict=True)
    ]
    on_device.__name__ = function_name(named)
    closed, consts = on.trace(on_device, blocks, "pmap")
    results = shard_map_p.bind(
        *consts,
        *leaves,
        jaxpr=closed,
        on=on,
        in_specs=(PartitionSpec(),) * len(consts) + tuple(map(spec, dims)),
        out_specs=tuple(map(spec, out_dims)),
    )
    return tree.unflatten(out[0], results)


def _axes_of(args: tuple[Any, ...], kwargs: dict[str, Any], in_axes: Any) -> list[Any]:
    """The axis of each leaf of the arguments that devices share; by name all come with axis 0."""
    try:
        return tree.broadcast_prefix((in_axes, 0), (args, kwargs), _is_none)
    except ValueError as e:
        raise ValueError(
            f"pmap in_axes{tree.where_no_prefix(in_axes, args, _is_none)} specification must be a tree prefix of the "
            "corresponding value, got "
            f"specification {in_axes} for value tree {tree.structure(args)}: {e}"
        ) from None


def _check_devices(needed: int, there: int) -> None:
    if needed > there:
        raise ValueError(
            f"compiling computation that requires {needed} logical devices, but only {there} "
            f"devices are available (num_replicas={needed}); "
            f"{library.variable('num_cpu_devices')}={needed} makes as many"
        )
