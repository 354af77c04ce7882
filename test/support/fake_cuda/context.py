"""The contexts of the driver made of Python: a primary one for each GPU, and which one a thread has."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from support.fake_cuda import c_calls as fake_c
from support.fake_cuda.c_calls import INT, PTR, set_int, set_word

if TYPE_CHECKING:
    from support.fake_cuda.driver import FakeDriver

CALLS: fake_c.Calls = {}
_call = functools.partial(fake_c.register, CALLS)
_INVALID_CONTEXT = 201
_FIRST = 0x1000

NEED_NONE = ("cuInit", "cuDriverGetVersion", "cuGetError", "cuDevice", "cuCtx", "cuEventDestroy",
             "cuPointerGet", "cublasLt", "nccl")  # fmt: skip
"""How the calls begin that need no context."""


def primary(device: int) -> int:
    return _FIRST * (device + 1)


def device_of(context: int) -> int:
    return context // _FIRST - 1


_call("cuDevicePrimaryCtxRetain", PTR, INT)(lambda self, out, device: set_word(out, primary(device)))
_call("cuDevicePrimaryCtxRelease_v2", INT)(lambda self, device: 0)


@_call("cuCtxPushCurrent_v2", PTR)
def _push(self: FakeDriver, context: int) -> None:
    self.contexts.append(context)


@_call("cuCtxPopCurrent_v2", PTR)
def _pop(self: FakeDriver, out: int) -> int | None:
    if not self.contexts:
        return _INVALID_CONTEXT
    set_word(out, self.contexts.pop())
    return None


@_call("cuCtxSetCurrent", PTR)
def _set_current(self: FakeDriver, context: int | None) -> None:
    del self.contexts[-1:]
    if context:
        self.contexts.append(context)


@_call("cuCtxGetCurrent", PTR)
def _get_current(self: FakeDriver, out: int) -> None:
    set_word(out, self.contexts[-1] if self.contexts else 0)


@_call("cuCtxGetDevice", PTR)
def _get_device(self: FakeDriver, out: int) -> int | None:
    if not self.contexts:
        return _INVALID_CONTEXT
    set_int(out, device_of(self.contexts[-1]))
    return None


@_call("cuCtxGetDevice_v2", PTR, PTR)
def _device_of(self: FakeDriver, out: int, context: int | None) -> int | None:
    if context is None:
        return _get_device(self, out)
    set_int(out, device_of(context))
    return None
