"""What handlers ask of the call that they run in: its device, and the data that came with it.

There are no streams: who asks is given null and no error, since jaxlib, where a Python function asks for
`ctx.stream`, takes an error for one of XLA's own objects.
"""

from __future__ import annotations

import ctypes

from lamina.ffi.errors import HEAD, Function, failed

_DEVICE = 0
"""As DLPack numbers the memory of CPUs, which all devices share."""


class _DeviceOrdinal(ctypes.Structure):
    _fields_ = [*HEAD, ("context", ctypes.c_void_p), ("ordinal", ctypes.c_int32)]


class _Stream(ctypes.Structure):
    _fields_ = [*HEAD, ("context", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


class _UserData(ctypes.Structure):
    _fields_ = [*HEAD, ("context", ctypes.c_void_p), ("type", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p)]  # fmt: skip


@Function
def _device_ordinal(address: int) -> None:
    _DeviceOrdinal.from_address(address).ordinal = _DEVICE


@Function
def _stream(address: int) -> None:
    _Stream.from_address(address).stream = None


@Function
def _user_data(address: int) -> int | None:
    from lamina.runtime import _runtime

    args = _UserData.from_address(address)
    found = _runtime.running_user_data(args.type[0])
    if not found:
        return failed("NOT_FOUND", f"no data of the type {args.type[0]} came with this call")
    args.data = found
    return None


FUNCTIONS = {
    "DeviceOrdinal_Get": _device_ordinal,
    "InvokeContext_Get": _user_data,
    "Stream_Get": _stream,
}
"""By their names in the table."""
