"""`ArrayImpl`: an array in memory of the runtime, and its ways to and from NumPy and Python.

The attributes that need no Python (shape, dtype, block_until_ready, the buffer protocol, ...) come
from `ArrayBase` in C++. Operators, indexing and methods that compute are those of `Array`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from lamina import runtime
from lamina.core import dtypes
from lamina.core.array_class import Array
from lamina.core.library import library
from lamina.records import Record
from lamina.runtime.processes import current as current_processes

_DLPACK_CPU, _DLPACK_CUDA, _DLPACK_CUDA_MANAGED = 1, 2, 13


MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


def check_memory_kind(kind: str | None, device: Device) -> None:
    """Raises ValueError for a kind that no device has; None is the default's."""
    if kind is not None and kind not in MEMORY_KINDS:
        raise ValueError(
            f"Could not find memory addressable by device {device.platform}: it can address the following memory "
            f"kinds: {', '.join(MEMORY_KINDS)}. Got memory kind: {kind}"
        )


class Memory(Record):
    """A kind of memory of a device. There is one memory: kinds are names for it."""

    device: Device
    kind: str

    platform = property(lambda self: self.device.platform)
    process_index = property(lambda self: self.device.process_index)

    def addressable_by_devices(self) -> list[Device]:
        """The device that it is of."""
        return [self.device]

    def __str__(self) -> str:
        return f"{self.platform.upper()}_{self.device.id}({self.kind})"


class Device(Record):
    """Where arrays live and compiled code runs: part of the CPU, or a GPU ("cuda")."""

    platform: str
    id: int

    @property
    def process_index(self) -> int:
        """The process that it belongs to."""
        processes = current_processes()
        return processes.of_device(self.id) if self.platform == "cpu" else processes.of_gpu(self.id)

    host_id = process_index

    @property
    def local_hardware_id(self) -> int | None:
        """Its number among the devices of its process."""
        processes = current_processes()
        if self.platform != "cpu":
            return self.id - processes.first_gpu(self.process_index)
        return self.id - sum(processes.devices[: self.process_index])

    @property
    def gpu_number(self) -> int:
        """The driver's number of a GPU of this process. Raises ValueError for another process's."""
        return current_processes().number_of_gpu(self.id)

    def memory_stats(self) -> dict[str, int]:
        """Bytes in use and to be had. CPU devices share one memory: it is that of all together."""
        if self.platform == "cuda":
            from lamina.runtime.gpus import memory

            free, total = memory(self.gpu_number)
            return {"bytes_in_use": total - free, "bytes_limit": total}
        pool = runtime.pool_stats()
        return {"bytes_in_use": pool["live_bytes"], "bytes_reserved": pool["cached_bytes"]}

    def memory(self, kind: str) -> Memory:
        """Its memory of a kind; ValueError for a kind that it does not have."""
        check_memory_kind(kind, self)
        return Memory(self, kind)

    def default_memory(self) -> Memory:
        """Where arrays are that nothing else was said of."""
        return Memory(self, MEMORY_KINDS[0])

    def addressable_memories(self) -> list[Memory]:
        """A name for each kind that JAX has of it, all of one memory."""
        return [Memory(self, kind) for kind in MEMORY_KINDS]

    def __lt__(self, other: Device) -> bool:
        return (self.platform, self.id) < (other.platform, other.id)

    @property
    def device_kind(self) -> str:
        """What the hardware calls itself; the platform where that says enough."""
        if self.platform != "cuda":
            return self.platform
        from lamina.runtime.gpus import name

        return name(self.gpu_number)

    @property
    def client(self) -> Any:
        """The platform that it belongs to, with `devices()`, `platform`, `process_index()`."""
        from lamina.extend.backend import Backend

        return Backend(self.platform)

    @property
    def compute_capability(self) -> str:
        """Of a GPU, such as "9.0"."""
        if self.platform != "cuda":
            raise AttributeError(f"{self!r} has no compute_capability: it is no GPU")
        from lamina.runtime.gpus import capability

        major, minor = capability(self.gpu_number)
        return f"{major}.{minor}"

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"


CPU = Device("cpu", 0)


def first_cpu() -> Device:
    """Where this process makes arrays that nobody placed: its first device."""
    first = current_processes().first_device()
    return CPU if first == 0 else Device("cpu", first)


def first_gpu() -> Device:
    """The first GPU of this process."""
    processes = current_processes()
    return Device("cuda", processes.first_gpu(processes.rank))


def gpu_here(number: int) -> Device:
    """The GPU that the driver of this process has under this number."""
    return Device("cuda", current_processes().gpu_of_number(number))


class Shard(Record):
    """A device's part of an array."""

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Any


def _from_pickle(values: np.ndarray, weak_type: bool) -> Any:
    """An array of the dtype that arrays have where it is read: of 32 bits where x64 is off."""
    return from_numpy(values.astype(dtypes.canonicalize(values.dtype), copy=False), weak_type)


class ArrayImpl(runtime.ArrayBase, Array):
    """An immutable n-dimensional array whose elements are in memory of the runtime.

    Results of compiled functions are futures: shape and dtype are known at once, anything that
    reads elements waits. `numpy.asarray(x)` shares the memory, read-only, where that is the
    host's, and has a copy of what a GPU holds.
    """

    __slots__ = ()

    # --- NumPy and other libraries ---------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A read-only view without a copy, or a copy where dtype or `copy` ask for one."""
        view = self.numpy_view()
        if dtype is not None and np.dtype(dtype) != view.dtype:
            if copy is False:
                raise ValueError(f"an array of {self.dtype} becomes {np.dtype(dtype)} only by copy")
            return view.astype(dtype)
        return view.copy() if copy else view

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule on the array's memory (or on a copy, where `copy` is true).

        stream       for an array on a GPU, the consumer's: its handle, where 1 is the legacy default
                     stream and 2 the per-thread one; None: the legacy default one. It waits for the
                     array's content; -1: no stream waits
        max_version  of DLPack, that the consumer knows
        dl_device    where the consumer wants the memory: its own device, or (1, 0), the host
        copy         True for a copy, False for an error where one is needed
        """
        mine = self.__dlpack_device__()
        wanted = mine if dl_device is None else tuple(dl_device)
        if stream is not None and mine[0] == _DLPACK_CPU:
            raise BufferError("[__dlpack__] an array on the CPU has no stream")
        array = self.copy() if copy else self
        if wanted == mine:
            if mine[0] == _DLPACK_CUDA:
                from lamina.cuda_exchange import order_consumer

                order_consumer(array, stream)
        else:
            if wanted != (_DLPACK_CPU, 0) or copy is False:
                where = "the CPU" if mine[0] == _DLPACK_CPU else str(self.device)
                raise BufferError(f"[__dlpack__] an array on {where} cannot go to device {wanted}")
            array = runtime.to_host(self)
        return runtime.to_dlpack(array, versioned=max_version is not None and max_version[0] >= 1)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of an array on a GPU as other libraries' arrays are given it, read-only; `stream` is
        this thread's. Arrays on the CPU, and of types that NumPy does not have, lack it."""
        from lamina.cuda_exchange import cuda_array_interface

        return cuda_array_interface(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        number = self.device_number
        return (_DLPACK_CPU, 0) if number is None else (_DLPACK_CUDA, number)

    def __reduce__(self) -> tuple[Any, ...]:  # on the default device, as JAX's
        return _from_pickle, (np.array(self.numpy_view()), self.weak_type)

    def copy(self) -> ArrayImpl:
        """An array with equal content in memory of its own, on the same devices."""
        if self.shards:
            return self._of_shards([shard.copy() for shard in self.shards])
        on_gpu = self.device_number is not None
        copied = runtime.copy_on_device(self) if on_gpu else from_numpy(self.numpy_view(), self.weak_type)
        return copied if self.placement is None else runtime.place_array(copied, self.placement)

    def alias(self) -> ArrayImpl:
        """Another array on the same memory. To delete or donate either leaves the other as it is."""
        if self.shards:
            return self._of_shards([shard.alias() for shard in self.shards])
        return runtime.place_array(self, self.placement)

    def _of_shards(self, shards: list[ArrayImpl]) -> ArrayImpl:
        return runtime.sharded_array(self.placement, shards, self.dtype, self.shape, self.weak_type)

    def __copy__(self) -> ArrayImpl:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> ArrayImpl:
        return self.copy()

    def tobytes(self, order: str = "C") -> bytes:
        """The elements as bytes, as `numpy.ndarray.tobytes`."""
        return self.numpy_view().tobytes(order)  # type: ignore[arg-type]

    # --- Python scalars and sequences ------------------------------------------------------------

    def item(self, *index: int) -> Any:
        """One element as a Python scalar: the only one, or the one at `index`."""
        return self.numpy_view().item(*index)

    def tolist(self) -> Any:
        """Nested lists of Python scalars."""
        return self.numpy_view().tolist()

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[ArrayImpl]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        view, weak, number = self.numpy_view(), self.weak_type, self.device_number
        rows = (from_numpy(view[i, ...], weak) for i in range(len(view)))
        if self.placement is None:
            return rows
        place = self.placement.of_rows()
        if number is not None:
            rows = (runtime.to_device(x, number) for x in rows)
        return (runtime.place_array(x, place) for x in rows)

    def __bool__(self) -> bool:
        if self.size == 0:
            raise ValueError(
                "The truth value of an empty array is ambiguous. "
                "Use `array.size > 0` to check that an array is not empty."
            )
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
            )
        return bool(self.numpy_view())

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        if self.ndim != 0 or not np.issubdtype(self.dtype, np.integer):
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        return int(self.item())

    def _scalar(self) -> Any:
        if self.ndim != 0:
            raise TypeError(
                f"Only scalar arrays can be converted to Python scalars; got arr.ndim={self.ndim}"
            )
        return self.item()

    __hash__ = None  # type: ignore[assignment]

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            f"{library.name} arrays are immutable and do not support in-place item assignment. "
            "Instead of x[idx] = y, use x = x.at[idx].set(y) or another .at[] method."
        )

    # --- Text ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"<deleted array with shape={self.dtype.name}{list(self.shape)}>"
        if self.placement is not None and not self.placement.is_readable_here:
            return f"Array(shape={self.shape}, dtype={self.dtype.name})"
        prefix, width = "Array(", np.get_printoptions()["linewidth"]
        kind = f"dtype={self.dtype.name}" + (", weak_type=True" if self.weak_type else "")
        if self.size == 0:
            content = f"[], shape={self.shape}"
        else:
            content = np.array2string(
                self.numpy_view(), prefix=prefix, suffix=",", separator=", ", max_line_width=width
            )
        last_line = len(content) - content.rfind("\n") + 1
        fits = last_line + len(kind) + 1 <= width
        return f"{prefix}{content},{' ' if fits else chr(10) + ' ' * len(prefix)}{kind})"

    def __str__(self) -> str:
        return repr(self) if self.is_deleted() else str(self.numpy_view())

    def __format__(self, spec: str) -> str:
        view = self.numpy_view()
        return format(view[()] if self.ndim == 0 else view, spec)

    # --- Placement -------------------------------------------------------------------------------

    @property
    def sharding(self) -> Any:
        """Where the array lies: a Sharding."""
        placement = self.placement
        if placement is None:
            from lamina.sharding import SingleDeviceSharding

            return SingleDeviceSharding(self._home)
        return getattr(placement, "of_uncommitted", placement)

    @property
    def format(self) -> Any:
        """How the array lies: its layout, which is row-major, and its sharding."""
        from lamina.sharding.formats import format_of

        return format_of(self.shape, self.sharding)

    @property
    def _home(self) -> Device:
        number = self.device_number
        return first_cpu() if number is None else gpu_here(number)

    @property
    def device(self) -> Any:
        """The device that holds the array; its sharding where there are several."""
        sharding = self.sharding
        return sharding if sharding.num_devices > 1 else sharding.device_list[0]

    def devices(self) -> set[Device]:
        """The devices that hold a part of the array."""
        return {self._home} if self.placement is None else self.sharding.device_set

    @property
    def committed(self) -> bool:
        """Whether the user placed the array on a device."""
        placement = self.placement
        return placement is not None and not hasattr(placement, "of_uncommitted")

    _committed = committed

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of the array's devices belong to this process."""
        return self.placement is None or self.placement.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device that holds a part holds all."""
        return self.placement is None or self.sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts on devices of this process."""
        return [s for s in self.global_shards if s.data is not None]

    @property
    def global_shards(self) -> list[Shard]:
        """The parts, one for each device; those on devices of other processes have data None."""
        from lamina.placement import shards_of
        from lamina.sharding import SingleDeviceSharding

        sharding = self.sharding
        seen: dict[Any, int] = {}
        shards = []
        data = dict(zip(sharding.here, shards_of(self, sharding), strict=True))
        parts = zip(sharding.device_list, sharding.indices(self.shape), strict=True)
        for position, (device, index) in enumerate(parts):
            key = tuple((s.start, s.stop) for s in index)
            replica = seen[key] = seen.get(key, -1) + 1
            mine = data.get(position)
            if mine is not None:
                mine = runtime.place_array(mine, SingleDeviceSharding(device) if self.committed else self.placement)
            shards.append(Shard(device, index, replica, mine))
        return shards

    def addressable_data(self, index: int) -> ArrayImpl:
        """The part on this process's device of this index."""
        return self.addressable_shards[index].data

    def copy_to_host_async(self) -> None:
        """Begins the copy that `numpy.asarray` waits for; nothing where the memory is the host's."""
        runtime.begin_host_copy(self)

    def on_device_size_in_bytes(self) -> int:
        """Bytes of the array's memory."""
        return self.nbytes


runtime.set_array_type(ArrayImpl)


def distinct(x: Any, operand: Any) -> Any:
    """x, or another array on its memory where it is the operand itself: results of functions that make
    new arrays live on when the operand is deleted or donated."""
    return x.alias() if x is operand and isinstance(x, ArrayImpl) else x


def from_numpy(array: np.ndarray, weak_type: bool = False) -> ArrayImpl:
    """A copy of an ndarray of any layout, with its dtype.

    Raises:
        TypeError: the dtype is none that arrays can have (object, str, structured, ...).
        MemoryError: there is no memory for it.
    """
    return runtime.array_from_numpy(array, weak_type)


def from_dlpack(x: Any, /, *, device: Device | None = None, copy: bool | None = None) -> ArrayImpl:
    """An array on the memory of another library's array, through DLPack.

    x       an array of another library, with __dlpack__ and __dlpack_device__; else TypeError
    device  where the array must be, a Device; None: where it is
    copy    True to copy, False to raise where a copy is needed; None: only where it is needed

    Shares the memory where that is dense and row-major, unless `copy` is true; a later write by
    the other library then changes the array. Raises BufferError for memory that is neither the
    CPU's nor a GPU's, for types that arrays do not have, and where `copy=False` cannot be.

    >>> jnp.from_dlpack(np.arange(3, dtype="int32"))
    Array([0, 1, 2], dtype=int32)
    """
    if hasattr(x, "__cuda_array_interface__") and not hasattr(x, "__dlpack__"):
        from lamina.cuda_exchange import as_memory_view

        x = as_memory_view(x)
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError(
            f"[from_dlpack] expected an array with __dlpack__ and __dlpack_device__, got {x!r}"
        )
    kind, number = x.__dlpack_device__()
    if kind not in (_DLPACK_CPU, _DLPACK_CUDA, _DLPACK_CUDA_MANAGED):
        raise BufferError(
            f"[from_dlpack] the array is on DLPack device type {kind}, neither the CPU nor a GPU"
        )
    there = CPU if kind == _DLPACK_CPU else gpu_here(number)
    if device is not None and (device.platform != there.platform or device.id != there.id != 0):
        raise BufferError(f"[from_dlpack] the array is on {there}, not on {device}")
    on = {} if kind == _DLPACK_CPU else {"stream": runtime.cuda_stream(number)}
    try:
        capsule = x.__dlpack__(max_version=(1, 0), **on)
    except TypeError:  # a producer from before DLPack 1.0
        capsule = x.__dlpack__(**on)
    array = runtime.from_dlpack(capsule)
    shared = not array.buffer.owned
    if copy is False and not shared:
        raise BufferError("[from_dlpack] the memory is not dense: copy=False cannot be had")
    narrow = dtypes.canonicalize(array.dtype)
    if narrow != array.dtype:  # 64 bits, while x64 is off
        return from_numpy(np.asarray(array).astype(narrow))
    return array.copy() if copy and shared else array
