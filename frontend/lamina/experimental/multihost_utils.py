"""What processes that work together tell each other, where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.core import tree
from lamina.devices import device_get, device_put
from lamina.sharding import NamedSharding

__all__ = [
    "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "host_local_array_to_global_array", "process_allgather", "reached_preemption_sync_point",
    "sync_global_devices",
]  # fmt: skip


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The arrays of the first process, as NumPy arrays."""
    return tree.map(np.asarray, device_get(in_tree))


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The arrays of all processes: concatenated where `tiled`, else stacked along a new first axis."""
    return tree.map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def sync_global_devices(name: str) -> None:
    """Waits for all processes: there is no other."""


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises where processes hold different values: there is no other."""


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether this process is to end soon: nobody tells it."""
    return False


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays of this process spread over a mesh."""
    specs = tree.broadcast_prefix(pspecs, local_inputs)
    leaves, structure = tree.flatten(local_inputs)
    put = [
        device_put(x, NamedSharding(global_mesh, spec))
        for x, spec in zip(leaves, specs, strict=True)
    ]
    return tree.unflatten(structure, put)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """What this process holds of arrays that are spread over a mesh: all of them."""
    return global_inputs
