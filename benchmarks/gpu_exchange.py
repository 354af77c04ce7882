"""What of memory, streams and contexts that are shared with other libraries only a GPU can show.

`gpu_check.py exchange` runs it. Arrays are large, so that what is not ordered is read too early.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

import lamina
import lamina.numpy as jnp


def _work(x: Any) -> Any:
    """A program of many kernels, a graph from its second call on."""
    for _ in range(6):
        x = jnp.cumsum(jnp.sin(x)) / 1000 + 1
    return x


def _device() -> Any:
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    return device


def _input(elements: int) -> tuple[Any, Any, np.ndarray]:
    """The program, an array on the GPU, and what the program makes of it."""
    x = lamina.device_put(np.linspace(0, 1, elements, dtype=np.float32), lamina.devices("cuda")[0])
    program = lamina.jit(_work)
    return program, x, np.array(program(x))


def _copied(address: int, size: int, stream: Any) -> np.ndarray:
    """What cuda.core reads at an address in the order of a stream, which is waited for."""
    from cuda.core import Buffer

    target = _device().allocate(size, stream=stream)
    Buffer.from_handle(address, size).copy_to(target, stream=stream)
    stream.sync()
    return np.array(jnp.asarray(target)).view(np.float32)


def _devices(elements: int) -> None:
    from cuda.bindings import driver
    from cuda.core import Device

    _device()
    before = driver.cuCtxGetCurrent()
    found = lamina.devices("cuda")
    assert [gpu.device_kind for gpu in found] == [each.name for each in Device.get_all_devices()]
    held = jnp.ones(elements, device=found[0])
    stats = found[0].memory_stats()
    assert held.nbytes <= stats["bytes_in_use"] < stats["bytes_limit"]
    for gpu in found:
        jnp.ones(elements, device=gpu).block_until_ready()
    assert int(driver.cuCtxGetCurrent()[1]) == int(before[1])


def _to_dlpack(elements: int) -> None:
    from cuda.core.utils import StridedMemoryView

    program, x, wanted = _input(elements)
    stream = _device().create_stream()
    for _ in range(2):
        y = program(x)
        view = StridedMemoryView.from_dlpack(y, int(stream.handle))
        np.testing.assert_array_equal(_copied(view.ptr, y.nbytes, stream), wanted)


def _to_interface(elements: int) -> None:
    from cuda.core.utils import StridedMemoryView

    program, x, wanted = _input(elements)
    stream = _device().create_stream()
    y = program(x)
    view = StridedMemoryView.from_cuda_array_interface(y, int(stream.handle))
    np.testing.assert_array_equal(_copied(view.ptr, y.nbytes, stream), wanted)


def _from_interface(elements: int) -> None:
    """Also: the other's memory stays until nobody uses it."""

    class Filled:
        def __init__(self) -> None:
            self.memory = device.allocate(4 * elements, stream=stream)
            for value in range(20):
                self.memory.fill(value, stream=stream)
            self.__cuda_array_interface__ = {
                "shape": (elements,), "typestr": "<i4", "data": (int(self.memory.handle), False),
                "version": 3, "strides": None, "stream": int(stream.handle),
            }  # fmt: skip

    device = _device()
    stream = device.create_stream()
    made = Filled()
    gone = weakref.ref(made)
    x = jnp.asarray(made)
    assert x.unsafe_buffer_pointer() == int(made.memory.handle)
    y = lamina.jit(lambda x: x + 1)(x)
    del made, x
    np.testing.assert_array_equal(y, np.full(elements, 19 * 0x01010101 + 1))
    device.create_stream(lamina.cuda.current_stream()).sync()
    y.block_until_ready()
    gc.collect()
    assert gone() is None


def _streams(elements: int) -> None:
    program, x, wanted = _input(elements)
    for _ in range(2):
        stream = _device().create_stream()
        with lamina.cuda.stream(stream):
            y = program(x)
            np.testing.assert_array_equal(
                _copied(y.unsafe_buffer_pointer(), y.nbytes, stream), wanted
            )
        np.testing.assert_array_equal(program(x), wanted)
        stream.close()
        del y
    with lamina.cuda.stream(0):
        np.testing.assert_array_equal(program(x), wanted)


def _torch(elements: int) -> None:
    import torch

    program, x, wanted = _input(elements)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), lamina.cuda.stream(stream.cuda_stream):
        shared = torch.from_dlpack(program(x))
        doubled = shared * 2
        back = jnp.from_dlpack(doubled)
        np.testing.assert_array_equal(program(back), program(jnp.asarray(2 * wanted)))
    assert torch.cuda.current_device() == 0
    np.testing.assert_array_equal(doubled.cpu().numpy(), 2 * wanted)


CHECKS: dict[str, Callable[[int], None]] = {
    "devices and contexts": _devices,
    "dlpack to cuda.core": _to_dlpack,
    "__cuda_array_interface__ to cuda.core": _to_interface,
    "__cuda_array_interface__ from cuda.core": _from_interface,
    "streams": _streams,
    "torch": _torch,
}
"""By name: what is given a number of elements and raises where something is wrong."""


def checks(elements: int) -> dict[str, Callable[[], dict[str, Any]]]:
    """Each check, as a function that says that it passed; torch where it is installed."""
    from importlib.util import find_spec

    def checked(check: Callable[[int], None]) -> dict[str, Any]:
        check(elements)
        return {"passed": True}

    return {
        name: lambda check=check: checked(check)  # type: ignore[misc]
        for name, check in CHECKS.items()
        if name != "torch" or find_spec("torch")
    }
