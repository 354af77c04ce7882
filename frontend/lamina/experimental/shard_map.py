"""shard_map under its older name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True
) -> Callable[..., Any]:
    """lamina.shard_map; `check_rep` is called check_vma there."""
    from lamina.sharding.shard_map import shard_map as mapped

    return mapped(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
