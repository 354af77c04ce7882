"""Arrays on GPUs for other libraries, and theirs for us: whose stream waits for what."""

from __future__ import annotations

import operator
from typing import Any

from lamina import runtime

CUDA, CUDA_MANAGED = ON_GPU = 2, 13
"""DLPack's kinds of devices whose memory GPUs use."""
_NO_ORDER, _LEGACY = -1, 1


def order_consumer(array: Any, stream: Any) -> None:
    """Lets the stream that a consumer gave to `__dlpack__` wait for the content of an array on a GPU.

    stream  as the array API says it for CUDA. Raises BufferError for what it does not allow.
    """
    if stream is None:
        stream = _LEGACY
    try:
        handle = operator.index(stream)
    except TypeError:
        handle = 0
    if isinstance(stream, bool) or handle == 0 or handle < _NO_ORDER or handle >= 1 << 64:
        raise BufferError(
            "[__dlpack__] stream must be None, -1 (no order), 1 (the legacy default stream), 2 (the "
            f"per-thread one) or the handle of a CUDA stream; got {stream!r}"
        )
    if handle != _NO_ORDER:
        runtime.cuda_order_consumer(array, handle)


def cuda_array_interface(array: Any) -> dict[str, Any]:
    """Version 3 of `__cuda_array_interface__`. Raises AttributeError where an array has none."""
    if array.is_deleted():
        array.unsafe_buffer_pointer()  # raises
    number = array.device_number
    if number is None:
        raise AttributeError("an array on the CPU has no __cuda_array_interface__")
    if array.dtype.kind not in "biufc":
        raise AttributeError(
            f"arrays of {array.dtype} have no __cuda_array_interface__, which takes NumPy's types: use DLPack"
        )
    stream = runtime.cuda_stream(number)
    runtime.cuda_order_consumer(array, stream)
    return {
        "shape": array.shape,
        "typestr": array.dtype.str,
        "data": (array.unsafe_buffer_pointer() if array.size else 0, True),
        "strides": None,
        "version": 3,
        "stream": stream,
    }


def is_on_gpu(x: Any) -> bool:
    """Whether this is an array of another library in the memory of a GPU."""
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        return x.__dlpack_device__()[0] in ON_GPU
    return hasattr(x, "__cuda_array_interface__")


def as_memory_view(x: Any) -> Any:
    """What has `__cuda_array_interface__` as a view of cuda.core, which has `__dlpack__`. This thread's
    stream waits for its content."""
    from lamina.runtime import gpus

    gpus.device_count()  # or says what is missing
    from cuda.core.utils import StridedMemoryView

    number = StridedMemoryView.from_cuda_array_interface(x, stream_ptr=-1).device_id
    with gpus.in_context(number):
        return StridedMemoryView.from_cuda_array_interface(x, runtime.cuda_stream(number))
