"""CUDA streams: those that programs on GPUs run on, to share with other libraries.

Streams are exchanged by the protocol `__cuda_stream__`, which those of cuda.core and CuPy have: a method
that returns the protocol's version, 0, and the handle as an int.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lamina import runtime
from lamina.array import Device
from lamina.core.library import library

_LEGACY, _PER_THREAD = 1, 2
"""The driver's handles for the default stream, and for the one of each thread."""


@dataclass(frozen=True)
class Stream:
    """A stream of a GPU: work on it is done in the order in which it was issued.

    device  the GPU
    handle  the driver's handle (CUstream) as an int
    """

    device: Device
    handle: int
    owner: Any = field(default=None, repr=False, compare=False)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of the protocol, and the handle."""
        return 0, self.handle


def current_stream(device: Device | None = None) -> Stream:
    """The stream that programs of this thread run on.

    device  a GPU; by default the default device, or the first GPU.

    What another library issues on it comes after all that this thread has called, and before all that
    it calls next. Raises RuntimeError where there are no GPUs, ValueError for a device of the CPU.

    >>> stream = cuda.core.Stream.from_handle(lamina.cuda.current_stream().handle)  # doctest: +SKIP
    """
    gpu = _gpu(device)
    return Stream(gpu, runtime.cuda_stream(gpu.gpu_number))


@contextlib.contextmanager
def stream(stream: Any, device: Device | None = None) -> Iterator[Stream]:
    """A context in which programs of this thread run on a stream of the user's.

    stream  what has `__cuda_stream__` (a stream of cuda.core or CuPy), or a handle as an int, such as
            PyTorch's `torch.cuda.current_stream().cuda_stream`.
    device  the GPU that it is of; by default the default device, or the first GPU.

    Programs still run one after the other: the stream waits for those called before. Afterwards nothing
    more is issued on it. It must be of the GPU's primary context, and there until the context ends.
    Contexts nest, one a device. Raises TypeError for what is no stream, ValueError for the default stream
    of each thread (handle 2) and for a device of the CPU, RuntimeError where there are no GPUs.

    >>> with lamina.cuda.stream(cuda.core.Device().create_stream()):  # doctest: +SKIP
    ...     y = lamina.jit(f)(x)
    """
    gpu = _gpu(device)
    handle = _handle(stream)
    runtime.cuda_enter_stream(gpu.gpu_number, handle)
    try:
        yield Stream(gpu, handle, stream)
    finally:
        runtime.cuda_leave_stream(gpu.gpu_number)


_set: dict[int, Stream] = {}
"""By the number of the device, so that they stay."""


def set_stream(stream: Any, device: Device | None = None) -> None:
    """Lets programs of all threads run on a stream of the user's, but in contexts of `stream`.

    stream  as for `stream`; None: the stream that was there at first.
    device  the GPU that it is of; by default the default device, or the first GPU.

    Call it while no other thread calls programs on the device. The stream must be there until another
    one is set. Raises as `stream` does.

    >>> lamina.cuda.set_stream(cuda.core.Device().create_stream())  # doctest: +SKIP
    """
    gpu = _gpu(device)
    handle = 0 if stream is None else _handle(stream)
    runtime.cuda_set_stream(gpu.gpu_number, handle)
    _set.pop(gpu.gpu_number, None)
    if stream is not None:
        _set[gpu.gpu_number] = Stream(gpu, handle, stream)


def _gpu(device: Device | None) -> Device:
    from lamina.devices import default_device, devices

    if device is None:
        return default_device() or devices("cuda")[0]
    if not isinstance(device, Device):
        raise TypeError(f"device must be a GPU of {library}.devices('cuda'), got {device!r}")
    if device.platform != "cuda":
        raise ValueError(f"{device!r} is no GPU and has no streams")
    return device


def _handle(stream: Any) -> int:
    """The handle of a stream."""
    if hasattr(stream, "__cuda_stream__"):
        answer = stream.__cuda_stream__()
        try:
            version, handle = map(operator.index, answer)
        except (TypeError, ValueError):
            raise TypeError(
                f"__cuda_stream__ of {stream!r} must return (version, handle) as ints, got {answer!r}"
            ) from None
        if version != 0:
            raise ValueError(f"{stream!r} has version {version} of __cuda_stream__; 0 is known here")
    elif isinstance(stream, int) and not isinstance(stream, bool):
        handle = stream
    else:
        raise TypeError(
            f"expected a stream, which has __cuda_stream__, or its handle as an int; got {stream!r}"
        )
    if handle < 0 or handle >= 1 << 64:
        raise ValueError(f"{handle} is no handle of a stream")
    if handle == _PER_THREAD:
        raise ValueError(
            "the per-thread default stream is another one in each thread, so memory can't be freed on "
            "it: create a stream"
        )
    return handle or _LEGACY
