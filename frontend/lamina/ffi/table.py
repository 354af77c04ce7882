"""The table of functions that handlers are given."""

from __future__ import annotations

import ctypes

from lamina.ffi import context, errors, futures
from lamina.ffi.errors import HEAD, Function, not_there

_NAMES = (
    "Handler_Register", "Stream_Get", "Type_Register", "InvokeContext_Get", "State_Set", "State_Get",
    "DeviceMemory_Allocate", "DeviceMemory_Free", "ThreadPool_Schedule", "ThreadPool_NumThreads",
    "Future_Create", "Future_SetAvailable", "Future_SetError", "RunId_Get", "DeviceOrdinal_Get",
    "InvokeContext_FindExtension", "CustomOptions_Get",
)  # fmt: skip
"""Functions of the table after those about errors, in its order."""
_VERSION = (0, 5)


class _Version(ctypes.Structure):
    _fields_ = [*HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int)]


class _Api(ctypes.Structure):
    _fields_ = [*HEAD, ("version", _Version), ("internal", ctypes.c_void_p),
                ("functions", Function * (len(errors.FUNCTIONS) + len(_NAMES)))]  # fmt: skip


def _table() -> _Api:
    here = futures.FUNCTIONS | context.FUNCTIONS
    functions = (*errors.FUNCTIONS, *(here.get(name) or not_there(name) for name in _NAMES))
    api = _Api(struct_size=ctypes.sizeof(_Api), functions=(Function * len(functions))(*functions))
    api.version = _Version(ctypes.sizeof(_Version), None, *_VERSION)
    return api


API = _table()
