"""shard_map under its older name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True
) -> Callable[..., Any]:
    """lamina.shard_map in JAX's older form.

    f                    a function of pytrees of arrays, given each device's part.
    mesh                 a Mesh.
    in_specs, out_specs  PartitionSpecs of arguments and results, pytree prefixes.
    check_rep            checks that what out_specs say is the same on all devices is; check_vma
                         there.

    >>> mesh = lamina.make_mesh((1,), ("x",))
    >>> shard_map = lamina.experimental.shard_map.shard_map
    >>> print(shard_map(lambda x: 2 * x, mesh, lamina.P("x"), lamina.P("x"))(jnp.arange(2)))
    [0 2]
    """
    from lamina.sharding.shard_map import shard_map as mapped

    return mapped(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
