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
    """The arrays of the first process, as NumPy arrays.

    in_tree    a tree of arrays.
    is_source  whether this process is the first; without effect.

    >>> lamina.experimental.multihost_utils.broadcast_one_to_all(jnp.arange(3))
    array([0, 1, 2], dtype=int32)
    """
    return tree.map(np.asarray, device_get(in_tree))


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The arrays of all processes.

    in_tree  a tree of arrays.
    tiled    whether they are concatenated; else stacked along a new first axis.

    >>> lamina.experimental.multihost_utils.process_allgather(jnp.arange(3)).shape
    (1, 3)
    """
    return tree.map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def sync_global_devices(name: str) -> None:
    """Waits for all processes: there is no other.

    name  of the barrier, without effect.

    >>> lamina.experimental.multihost_utils.sync_global_devices("start")
    """


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises where processes hold different values: there is no other process.

    in_tree       a tree of arrays.
    fail_message  what the error would say.

    >>> lamina.experimental.multihost_utils.assert_equal(jnp.arange(3), "seeds differ")
    """


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether this process is to end soon: nobody tells it.

    step_id  the number of the step, without effect.

    >>> lamina.experimental.multihost_utils.reached_preemption_sync_point(3)
    False
    """
    return False


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays of this process spread over a mesh.

    local_inputs  a tree of arrays.
    global_mesh   a Mesh.
    pspecs        a PartitionSpec for each, or one for all.

    >>> mesh, utils = lamina.make_mesh((1,), ("x",)), lamina.experimental.multihost_utils
    >>> utils.host_local_array_to_global_array(jnp.arange(2), mesh, lamina.P("x")).sharding.spec
    PartitionSpec('x',)
    """
    specs = tree.broadcast_prefix(pspecs, local_inputs)
    leaves, structure = tree.flatten(local_inputs)
    put = [
        device_put(x, NamedSharding(global_mesh, spec))
        for x, spec in zip(leaves, specs, strict=True)
    ]
    return tree.unflatten(structure, put)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """What this process holds of arrays that are spread over a mesh: all of them.

    global_inputs  a tree of arrays.
    global_mesh    a Mesh.
    pspecs         a PartitionSpec for each, or one for all.

    >>> mesh, utils = lamina.make_mesh((1,), ("x",)), lamina.experimental.multihost_utils
    >>> print(utils.global_array_to_host_local_array(jnp.arange(2), mesh, lamina.P("x")))
    [0 1]
    """
    return global_inputs
