"""The devices: N virtual ones on this machine's CPU, those of the processes that work with this one,
and this machine's GPUs ("cuda").

The CPU's share one memory; each is a thread where programs run on several. Their number is the
setting num_cpu_devices (LAMINA_NUM_CPU_DEVICES); where processes work together (lamina.distributed),
what it is when they meet. Which platforms are used, and which is the
default, says the setting platforms (LAMINA_PLATFORMS).
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar, overload

import numpy as np

from lamina import config
from lamina.array import ArrayImpl, Device, first_gpu
from lamina.core import dtypes, tree
from lamina.core.array_class import Array
from lamina.core.array_likes import ArrayLike
from lamina.core.library import library
from lamina.runtime import processes

T = TypeVar("T")


@functools.cache
def _device(index: int) -> Device:
    return Device("cpu", index)


@functools.cache
def _gpu(index: int) -> Device:
    return Device("cuda", index)


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a backend.

    backend  "cpu" or "cuda"; by default the default one. Raises RuntimeError where it is not there.

    >>> lamina.devices("cpu")[0].platform
    'cpu'
    """
    if _checked_backend(backend) == "cuda":
        count = _gpu_count(backend)
        of_all = processes.current().gpus
        return [_gpu(i) for i in range(sum(map(len, of_all)) if of_all else count)]
    together = processes.current()
    if together is not processes.ALONE:
        return [_device(i) for i in range(sum(together.devices))]
    return [_device(i) for i in range(max(1, config.num_cpu_devices.value))]


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of one process.

    process_index  the number of a process; None: this one.
    backend        "cpu" or "cuda"; by default that of default_backend().
    host_id        an older name of process_index.

    Raises ValueError where there is no such process.

    >>> lamina.local_devices() == lamina.devices()
    True
    """
    together = processes.current()
    index = host_id if process_index is None else process_index
    if index is None:
        index = together.rank
    if not 0 <= index < together.size:
        raise ValueError(f"Unknown process_index {index}")
    return [d for d in devices(backend) if d.process_index == index]


def device_count(backend: str | None = None) -> int:
    """The number of devices of all processes.

    backend  "cpu" or "cuda"; by default that of default_backend(). Raises RuntimeError for others.

    >>> lamina.device_count() == len(lamina.devices())
    True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process.

    backend  "cpu" or "cuda"; by default that of default_backend().

    >>> lamina.local_device_count() == len(lamina.local_devices())
    True
    """
    return len(local_devices(backend=backend))


def process_count(backend: str | None = None) -> int:
    """The number of processes that work together (lamina.distributed).

    backend  a platform's name, not looked at.

    >>> lamina.process_count()
    1
    """
    _checked_backend(backend)
    return processes.current().size


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that work together, from 0.

    backend  a platform's name, not looked at.

    >>> lamina.process_index()
    0
    """
    _checked_backend(backend)
    return processes.current().rank


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of the processes that work together.

    backend  a platform's name, not looked at.

    >>> lamina.process_indices()
    [0]
    """
    return list(range(process_count(backend)))


def default_backend() -> str:
    """The platform of the first device: "cpu" or "cuda".

    >>> lamina.default_backend() in ("cpu", "cuda")
    True
    """
    return config.platforms.value[0]


def default_device() -> Device | None:
    """The GPU that new arrays and programs without arguments on a device go to; None for the CPU."""
    device = config.default_device.value
    if isinstance(device, str):
        device = devices(device)[0]
    if device is None and config.platforms.value[0] == "cuda":
        device = first_gpu()
    return device if device is not None and device.platform == "cuda" else None


def _checked_backend(backend: str | None) -> str:
    """The platform of this name; RuntimeError where it is not one that may be used."""
    platforms = config.platforms.value
    name = {None: platforms[0], "gpu": "cuda"}.get(backend, backend)
    if name not in platforms:
        excluded = name in ("cpu", "cuda")
        why = f" ({library.variable('platforms')} leaves {name} out)" if excluded else ""
        raise _absent(backend, why)
    return str(name)


def _gpu_count(backend: str | None) -> int:
    from lamina.runtime.cuda import missing
    from lamina.runtime.gpus import device_count

    why = missing()
    if why:
        raise _absent(
            backend or "cuda",
            f". For CUDA, {why}. Programs can be compiled for GPUs ahead of time: "
            "jit(f).lower(*args).compile(target='cuda:sm_90a')",
        )
    return device_count()


def _absent(backend: str | None, why: str) -> RuntimeError:
    return RuntimeError(
        f"Unknown backend: {backend!r} requested, but no platforms that are instances of "
        f"{backend} are present. Platforms present are: cpu{why}"
    )


@overload
def device_put(
    x: ArrayLike,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool | Any = False,
    may_alias: bool | Any = None,
) -> Array: ...
@overload
def device_put(
    x: T,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool | Any = False,
    may_alias: bool | Any = None,
) -> T: ...
def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool | Any = False,
    may_alias: bool | Any = None,
) -> Any:
    """A pytree of arrays, placed.

    x          a pytree of arrays and numbers.
    device     a Device, a Sharding or a pytree prefix of such; None: the default device.
    src        where x is, as JAX has it: not needed.
    donate     x may not be used afterwards.
    may_alias  False asks for memory of its own.

    Raises TypeError for leaves that are no arrays, ValueError where a sharding does not fit.

    >>> x = lamina.device_put(np.arange(3), lamina.devices()[0])
    >>> x.device == lamina.devices()[0]
    True
    """
    from lamina import placement

    return placement.device_put(x, device, donate=donate, may_alias=may_alias)


def device_put_replicated(x: Any, devices: Any) -> Any:
    """x on each of the devices, stacked in a new leading dimension.

    x        a pytree of arrays.
    devices  a sequence of devices.

    >>> lamina.device_put_replicated(jnp.ones(3), lamina.devices()[:1]).shape
    (1, 3)
    """
    return device_put_sharded([x] * len(devices), devices)


def device_put_sharded(shards: Any, devices: Any) -> Any:
    """One tree for each device, stacked in a new leading dimension that is split over them.

    shards   a sequence of pytrees of arrays, of the same structure and shapes.
    devices  a sequence of as many devices.

    >>> lamina.device_put_sharded([jnp.ones(3)], lamina.devices()[:1]).shape
    (1, 3)
    """
    from lamina.sharding import Mesh, NamedSharding, PartitionSpec

    if len(shards) != len(devices):
        raise ValueError(f"got {len(shards)} shards for {len(devices)} devices")
    sharding = NamedSharding(
        Mesh(np.array(devices, dtype=object), ("_device",)), PartitionSpec("_device")
    )
    from lamina.numpy import stack

    def stacked(*xs: Any) -> Any:
        of_keys = hasattr(xs[0], "dtype") and dtypes.is_key(xs[0].dtype)
        return stack(xs) if of_keys else np.stack([np.asarray(x) for x in xs])

    return tree.map(lambda *xs: device_put(stacked(*xs), sharding), *shards)


def device_get(x: Any) -> Any:
    """A pytree with each array as a NumPy array (waits until it is there).

    x  a pytree; leaves that are no arrays stay as they are.

    >>> lamina.device_get({"a": jnp.arange(3)})
    {'a': array([0, 1, 2], dtype=int32)}
    """
    return tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, ArrayImpl) else leaf, x)


def copy_to_host_async(x: T) -> T:
    """Begins the copies to the host of a pytree's arrays on GPUs, so that `device_get` need not wait
    as long, and those that arrays of other libraries have under this name. Gives x.

    x  a pytree of arrays.

    >>> lamina.copy_to_host_async(jnp.arange(3)).tolist()
    [0, 1, 2]
    """
    for leaf in tree.leaves(x):
        copy = getattr(leaf, "copy_to_host_async", None)
        if copy is not None:
            copy()
    return x


def block_until_ready(x: T) -> T:
    """Waits for every array in a pytree; gives the pytree. Errors of the computation surface here.

    x  a pytree; leaves that are no arrays are passed over.

    >>> lamina.block_until_ready(jnp.arange(3)).tolist()
    [0, 1, 2]
    """
    for leaf in tree.leaves(x):
        if isinstance(leaf, ArrayImpl):
            leaf.block_until_ready()
    return x
