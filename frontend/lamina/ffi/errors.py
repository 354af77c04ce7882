"""The table of functions that handlers are given: errors; all else is not implemented."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

from lamina.errors import JaxRuntimeError

_CODES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
    "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
_UNIMPLEMENTED = _CODES.index("UNIMPLEMENTED")
_MISSING = (
    "Handler_Register", "Stream_Get", "Type_Register", "InvokeContext_Get", "State_Set", "State_Get",
    "DeviceMemory_Allocate", "DeviceMemory_Free", "ThreadPool_Schedule", "ThreadPool_NumThreads",
    "Future_Create", "Future_SetAvailable", "Future_SetError", "RunId_Get", "DeviceOrdinal_Get",
    "InvokeContext_FindExtension", "CustomOptions_Get",
)  # fmt: skip
"""Functions of the table after those about errors, in its order."""

HEAD: list[Any] = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p)]
"""The fields that each structure of the interface begins with."""
_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _Version(ctypes.Structure):
    _fields_ = [*HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int)]


class _Api(ctypes.Structure):
    _fields_ = [*HEAD, ("version", _Version), ("internal", ctypes.c_void_p),
                ("functions", _Function * (3 + len(_MISSING)))]  # fmt: skip


class _Create(ctypes.Structure):
    _fields_ = [*HEAD, ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class _Details(ctypes.Structure):
    _fields_ = [*HEAD, ("error", ctypes.c_void_p), ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class _Destroy(ctypes.Structure):
    _fields_ = [*HEAD, ("error", ctypes.c_void_p)]


_numbers = itertools.count(1)
_errors: dict[int, tuple[int, bytes]] = {}  # what a handler holds is the number of an error


def _new_error(code: int, message: bytes) -> int:
    number = next(_numbers)
    _errors[number] = (code, message)
    return number


@_Function
def _create(address: int) -> int:
    args = _Create.from_address(address)
    return _new_error(args.code, args.message or b"")


@_Function
def _details(address: int) -> None:
    args = _Details.from_address(address)
    args.code, args.message = _errors[args.error]


@_Function
def _destroy(address: int) -> None:
    _errors.pop(_Destroy.from_address(address).error, None)


def _missing(name: str) -> ctypes._CFunctionType:  # type: ignore[name-defined]
    message = f"lamina has no {name} for FFI handlers".encode()
    return _Function(lambda _: _new_error(_UNIMPLEMENTED, message))


def _table() -> _Api:
    functions = (_create, _details, _destroy, *map(_missing, _MISSING))
    api = _Api(struct_size=ctypes.sizeof(_Api), functions=(_Function * len(functions))(*functions))
    api.version = _Version(ctypes.sizeof(_Version), None, 0, 5)
    return api


API = _table()


def take_error(number: int | None) -> None:
    """Raises what a handler gave, if it gave an error: JaxRuntimeError with its code and message."""
    if number:
        code, message = _errors.pop(number)
        raise JaxRuntimeError(f"{_CODES[code]}: {message.decode(errors='replace')}")
