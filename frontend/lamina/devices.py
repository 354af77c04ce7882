"""The devices: N virtual ones on this machine's CPU. Each is a thread where programs run on several.

Their number is the setting num_cpu_devices (LAMINA_NUM_CPU_DEVICES). All share one memory.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lamina import config
from lamina.array import Array, Device
from lamina.core import tree


@functools.cache
def _device(index: int) -> Device:
    return Device("cpu", index)


def devices(backend: str | None = None) -> list[Device]:
    """All devices. Raises RuntimeError for a backend that is not there."""
    _check_backend(backend)
    return [_device(i) for i in range(max(1, config.num_cpu_devices.value))]


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process: all of them."""
    if process_index not in (None, 0):
        raise ValueError(f"Unknown process_index {process_index}")
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """The number of devices."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process."""
    return len(devices(backend))


def process_count(backend: str | None = None) -> int:
    """The number of processes that work together: 1."""
    _check_backend(backend)
    return 1


def process_index(backend: str | None = None) -> int:
    """The number of this process: 0."""
    _check_backend(backend)
    return 0


def default_backend() -> str:
    """The platform of the first device."""
    return "cpu"


def _check_backend(backend: str | None) -> None:
    if backend not in (None, "cpu"):
        raise RuntimeError(
            f"Unknown backend: {backend!r} requested, but no platforms that are instances of "
            f"{backend} are present. Platforms present are: cpu{_about(backend)}"
        )


def _about(backend: str | None) -> str:
    if backend not in ("cuda", "gpu"):
        return ""
    from lamina.runtime.cuda import missing

    return (
        f". For CUDA, {missing()}. Programs can be compiled for GPUs ahead of time: "
        "jit(f).lower(*args).compile(target='cuda:sm_90a')"
    )


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool | Any = False,
    may_alias: bool | Any = None,
) -> Any:
    """A pytree of arrays, placed. `device` is a Device, a Sharding or a pytree prefix of such.

    donate      x may not be used afterwards.
    may_alias   False asks for memory of its own.
    Raises TypeError for leaves that are no arrays, ValueError where a sharding does not fit.
    """
    from lamina import placement

    return placement.device_put(x, device, donate=donate, may_alias=may_alias)


def device_put_replicated(x: Any, devices: Any) -> Any:
    """x on each of the devices, stacked in a new leading dimension."""
    return device_put_sharded([x] * len(devices), devices)


def device_put_sharded(shards: Any, devices: Any) -> Any:
    """One tree for each device, stacked in a new leading dimension that is split over them."""
    from lamina.sharding import Mesh, NamedSharding, PartitionSpec

    if len(shards) != len(devices):
        raise ValueError(f"got {len(shards)} shards for {len(devices)} devices")
    sharding = NamedSharding(
        Mesh(np.array(devices, dtype=object), ("_device",)), PartitionSpec("_device")
    )
    return tree.map(
        lambda *xs: device_put(np.stack([np.asarray(x) for x in xs]), sharding), *shards
    )


def device_get(x: Any) -> Any:
    """A pytree with each Array as a NumPy array (waits until it is there)."""
    return tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf, x)


def copy_to_host_async(x: Any) -> Any:
    """Does nothing: the memory is the host's. Gives x."""
    return x


def block_until_ready(x: Any) -> Any:
    """Waits for every Array in a pytree; gives the pytree. Errors of the computation surface here."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x
