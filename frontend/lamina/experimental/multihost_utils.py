"""What processes that work together (lamina.distributed) tell each other. Where this one is alone, it
talks to itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.array import ArrayImpl
from lamina.core import tree
from lamina.devices import device_put
from lamina.runtime import processes
from lamina.sharding import NamedSharding, PartitionSpec
from lamina.sharding.arrays import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from lamina.sharding.moves import whole_of

__all__ = [
    "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "host_local_array_to_global_array", "process_allgather", "reached_preemption_sync_point",
    "sync_global_devices",
]  # fmt: skip


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The arrays of one process, as NumPy arrays.

    in_tree    a tree of arrays, of the same structure in every process.
    is_source  whether this process is the one; None: it is the first. Exactly one process says True.

    All processes call it; RuntimeError where one never comes, or not exactly one is the source.

    >>> lamina.experimental.multihost_utils.broadcast_one_to_all(jnp.arange(3))
    array([0, 1, 2], dtype=int32)
    """
    mine = processes.current().rank == 0 if is_source is None else bool(is_source)
    leaves, structure = tree.flatten(in_tree)
    held = [np.asarray(x) for x in leaves] if mine else None
    told = [each for each in processes.tell_all("broadcast_one_to_all", held) if each is not None]
    if len(told) != 1:
        raise RuntimeError(f"broadcast_one_to_all: {len(told)} processes say that they are the source")
    return tree.unflatten(structure, told[0])


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The arrays of all processes, as NumPy arrays.

    in_tree  a tree of arrays.
    tiled    whether they are concatenated; else stacked along a new first axis. An array that spans
             processes is given whole, once, either way.

    All processes call it; RuntimeError where one never comes.

    >>> lamina.experimental.multihost_utils.process_allgather(jnp.arange(3)).shape
    (1, 3)
    """

    def one(x: Any) -> np.ndarray:
        if isinstance(x, ArrayImpl) and not x.is_fully_addressable:
            return np.asarray(x) if x.shards is None or x.is_fully_replicated else whole_of(x)
        parts = processes.tell_all("process_allgather", np.asarray(x))
        return np.concatenate(parts) if tiled and np.ndim(x) else np.stack(parts)

    return tree.map(one, in_tree)


def sync_global_devices(name: str) -> None:
    """Waits for all processes to come here.

    name  of this place in the program. AssertionError where other processes are at another one.

    >>> lamina.experimental.multihost_utils.sync_global_devices("start")
    """
    names = processes.tell_all(f"sync_global_devices({name!r})", name)
    if any(other != name for other in names):
        raise AssertionError(f"sync_global_devices name mismatch ({name!r}): processes are at {names}")


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises AssertionError where processes hold different values.

    in_tree       a tree of arrays.
    fail_message  what the error says.

    >>> lamina.experimental.multihost_utils.assert_equal(jnp.arange(3), "seeds differ")
    """
    leaves, structure = tree.flatten(in_tree)
    told = processes.tell_all("assert_equal", ([np.asarray(x) for x in leaves], str(structure)))
    first = told[0]
    for process, other in enumerate(told):
        if other[1] != first[1] or not all(map(_same, first[0], other[0])):
            raise AssertionError(f"{fail_message}: process {process} differs from process 0")


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether this process is to end soon: nobody tells it.

    step_id  the number of the step, without effect.

    >>> lamina.experimental.multihost_utils.reached_preemption_sync_point(3)
    False
    """
    return False


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays of which each process has its part, as arrays over a mesh.

    local_inputs  a tree of arrays.
    global_mesh   a Mesh.
    pspecs        a PartitionSpec for each, or one for all.

    >>> mesh, utils = lamina.make_mesh((1,), ("x",)), lamina.experimental.multihost_utils
    >>> utils.host_local_array_to_global_array(jnp.arange(2), mesh, lamina.P("x")).sharding.spec
    P('x',)
    """
    specs = tree.broadcast_prefix(pspecs, local_inputs, lambda x: isinstance(x, PartitionSpec))
    leaves, structure = tree.flatten(local_inputs)
    put = [
        make_array_from_process_local_data(NamedSharding(global_mesh, spec), x)
        for x, spec in zip(leaves, specs, strict=True)
    ]
    return tree.unflatten(structure, put)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """What this process holds of arrays that are spread over a mesh.

    global_inputs  a tree of arrays.
    global_mesh    a Mesh. ValueError where this process's devices are no grid in it.
    pspecs         a PartitionSpec for each, or one for all.

    >>> mesh, utils = lamina.make_mesh((1,), ("x",)), lamina.experimental.multihost_utils
    >>> print(utils.global_array_to_host_local_array(jnp.arange(2), mesh, lamina.P("x")))
    [0 1]
    """
    specs = tree.broadcast_prefix(pspecs, global_inputs, lambda x: isinstance(x, PartitionSpec))
    leaves, structure = tree.flatten(global_inputs)
    held = []
    for x, spec in zip(leaves, specs, strict=True):
        placed = device_put(x, NamedSharding(global_mesh, spec))
        if placed.is_fully_addressable:
            held.append(placed)
            continue
        shards = [shard.data for shard in placed.addressable_shards]
        local = NamedSharding(global_mesh.local_mesh, spec)
        shape = tuple(n * local.parts(dim) for dim, n in enumerate(shards[0].shape))
        held.append(make_array_from_single_device_arrays(shape, local, shards))
    return tree.unflatten(structure, held)
