"""The GPUs of this machine, as cuda-python sees them: how many, of which kind, with how much memory.

Contexts are the primary ones, which other libraries use, too. What a call of a program needs of the
driver (memory, copies, launches, events) the native runtime does itself, in the same contexts.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from lamina.runtime import _runtime

INSTALL = "pip install 'lamina[cuda]'"


class CudaUnavailable(RuntimeError):
    """Something that CUDA needs is not on this machine; the text says what, and what to do."""


@functools.cache
def cuda_core() -> Any:
    """The module cuda.core. Raises CudaUnavailable where it is not installed."""
    try:
        import cuda.core
    except ImportError as error:
        raise CudaUnavailable(
            f"using GPUs needs cuda-python, which is not installed here: {INSTALL} ({error})"
        ) from None
    return cuda.core


def device_count() -> int:
    """How many GPUs there are.

    Raises RuntimeError where there can be none: the text says what is missing and what to install.
    """
    core = cuda_core()
    _runtime.open_cuda_driver()
    return len(_asked(core.Device.get_all_devices))


def name(number: int) -> str:
    """What a GPU calls itself."""
    return str(_asked(lambda: _device(number).name))


def capability(number: int) -> tuple[int, int]:
    """A GPU's compute capability, such as (9, 0)."""
    found = _asked(lambda: _device(number).compute_capability)
    return found.major, found.minor


def memory(number: int) -> tuple[int, int]:
    """The bytes of a GPU's memory that nobody has, and of all of it."""
    from cuda.bindings import driver

    with in_context(number):
        free, total = _result(driver.cuMemGetInfo())
    return free, total


@contextlib.contextmanager
def in_context(number: int) -> Iterator[None]:
    """A context in which a GPU's primary context is the thread's; afterwards it is what it was."""
    from cuda.bindings import driver

    device = _asked(lambda: _device(number))
    before = _result(driver.cuCtxGetCurrent())
    _asked(device.set_current)
    try:
        yield
    finally:
        _result(driver.cuCtxSetCurrent(before))


def _device(number: int) -> Any:
    core = cuda_core()
    _runtime.open_cuda_driver()
    return core.Device(number)


def _result(returned: tuple[Any, ...]) -> Any:
    """What a call of cuda.bindings returned beside its error code. Raises RuntimeError for one."""
    code, *values = returned
    if code != 0:
        raise RuntimeError(f"a call of the NVIDIA driver failed: {code.name}")
    return values[0] if len(values) == 1 else tuple(values)


def _asked(work: Callable[[], Any]) -> Any:
    """What cuda.core answers; its own kind of error, which has no public name, as RuntimeError."""
    try:
        return work()
    except (RuntimeError, ValueError):
        raise
    except Exception as error:
        raise RuntimeError(f"a call of the NVIDIA driver failed: {error}") from error
