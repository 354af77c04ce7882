"""Errors that handlers make and give."""

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
HEAD: list[Any] = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p)]
"""The fields that each structure of the interface begins with."""
Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
"""What the table that handlers are given holds: a structure's address to an error, or none."""


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


@Function
def _create(address: int) -> int:
    args = _Create.from_address(address)
    return _new_error(args.code, args.message or b"")


@Function
def _details(address: int) -> None:
    args = _Details.from_address(address)
    code, args.message = _errors[args.error]
    if args.struct_size > _Details.code.offset:  # not in handlers built for versions before 0.5
        args.code = code


@Function
def _destroy(address: int) -> None:
    _errors.pop(_Destroy.from_address(address).error, None)


def failed(code: str, message: str) -> int:
    """What a function of the table gives where it fails, with a status's code such as "NOT_FOUND"."""
    return _new_error(_CODES.index(code), message.encode())


def not_there(name: str) -> Any:
    """A function of the table that gives an error: what it does is not here."""
    return Function(lambda _: failed("UNIMPLEMENTED", f"lamina has no {name} for FFI handlers"))


FUNCTIONS = (_create, _details, _destroy)
"""Error_Create, Error_GetMessage and Error_Destroy, which the table begins with."""


def take_error(number: int | None) -> None:
    """Raises what a handler gave, if it gave an error: JaxRuntimeError with its code and message."""
    if number:
        code, message = _errors.pop(number)
        raise JaxRuntimeError(f"{_CODES[code]}: {message.decode(errors='replace')}")
