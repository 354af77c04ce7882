"""The structures of XLA's foreign function interface, and what a handler is called with.

Layouts are those of version 0.x of the interface in C: each structure begins with its size, so that
fields can be added at the end.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lamina.ffi.errors import HEAD, take_error
from lamina.ffi.futures import wait_for
from lamina.ffi.table import API

_EXECUTE = 3  # the stage
_ARRAY, _DICTIONARY, _SCALAR, _STRING = 1, 2, 3, 4
_CODES = {
    "bool": 1, "int4": 21, "int8": 2, "int16": 3, "int32": 4, "int64": 5,
    "uint4": 22, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12, "bfloat16": 16, "complex64": 15, "complex128": 18,
    "float8_e5m2": 19, "float8_e3m4": 29, "float8_e4m3": 28, "float8_e4m3fn": 20,
    "float8_e4m3b11fnuz": 23, "float8_e5m2fnuz": 24, "float8_e4m3fnuz": 25, "float8_e8m0fnu": 33,
}  # fmt: skip


class _Buffer(ctypes.Structure):
    _fields_ = [*HEAD, ("dtype", ctypes.c_int), ("data", ctypes.c_void_p),
                ("rank", ctypes.c_int64), ("dims", ctypes.c_void_p)]  # fmt: skip


class _List(ctypes.Structure):
    """Arguments or results: kinds and pointers."""

    _fields_ = [*HEAD, ("size", ctypes.c_int64), ("types", ctypes.c_void_p),
                ("values", ctypes.c_void_p)]  # fmt: skip


class _Attributes(ctypes.Structure):
    _fields_ = [*HEAD, ("size", ctypes.c_int64), ("types", ctypes.c_void_p),
                ("names", ctypes.c_void_p), ("values", ctypes.c_void_p)]  # fmt: skip


class _Span(ctypes.Structure):
    _fields_ = [("start", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class _Scalar(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("value", ctypes.c_void_p)]


class _Array(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("size", ctypes.c_size_t), ("data", ctypes.c_void_p)]


class _Frame(ctypes.Structure):
    _fields_ = [*HEAD, ("api", ctypes.c_void_p), ("context", ctypes.c_void_p), ("stage", ctypes.c_int),
                ("arguments", _List), ("results", _List), ("attributes", _Attributes),
                ("future", ctypes.c_void_p)]  # fmt: skip


_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))


class _Memory:
    """What a frame points to, alive as long as this is."""

    def __init__(self) -> None:
        self._held: list[Any] = []

    def at(self, value: Any) -> int:
        """The address of a ctypes value."""
        self._held.append(value)
        return ctypes.addressof(value)

    def of(self, array: np.ndarray) -> int:
        """The address of an array's data."""
        self._held.append(array)
        return array.ctypes.data

    def pointers(self, addresses: Sequence[int]) -> int:
        return self.at((ctypes.c_void_p * max(1, len(addresses)))(*addresses))

    def kinds(self, kinds: Sequence[int]) -> int:
        return self.at((ctypes.c_int * max(1, len(kinds)))(*kinds))


def call_handler(
    address: int,
    arguments: Sequence[tuple[np.ndarray, tuple[int, ...]]],
    results: Sequence[tuple[np.ndarray, tuple[int, ...]]],
    attributes: Mapping[str, Any],
) -> None:
    """Calls a compiled handler.

    address    of the handler.
    arguments, results  dense arrays, and the shapes that the handler is told.
    attributes  numbers, strings, arrays and dicts of such, by name.

    Raises TypeError for an attribute that has no counterpart, JaxRuntimeError for what the handler
    gives as an error.
    """
    memory = _Memory()
    frame = _Frame(
        struct_size=_Frame.future.offset,
        api=ctypes.addressof(API),
        stage=_EXECUTE,
        arguments=_buffers(memory, arguments),
        results=_buffers(memory, results),
        attributes=_attributes(memory, attributes),
    )
    take_error(_Handler(address)(ctypes.byref(frame)))
    if frame.future:
        wait_for(frame.future)


def _buffers(memory: _Memory, arrays: Sequence[tuple[np.ndarray, tuple[int, ...]]]) -> _List:
    addresses = []
    for array, shape in arrays:
        dims = np.asarray(shape, np.int64)
        buffer = _Buffer(ctypes.sizeof(_Buffer), None, code_of(array.dtype), memory.of(array),
                         len(shape), memory.of(dims))  # fmt: skip
        addresses.append(memory.at(buffer))
    kinds = memory.kinds([1] * len(arrays))  # buffers, all of them
    return _List(ctypes.sizeof(_List), None, len(arrays), kinds, memory.pointers(addresses))


def _attributes(memory: _Memory, given: Mapping[str, Any]) -> _Attributes:
    kinds, names, values = [], [], []
    for name in sorted(given):  # handlers look names up in this order
        kind, address = _attribute(memory, name, given[name])
        kinds.append(kind)
        names.append(memory.at(_span(name)))
        values.append(address)
    return _Attributes(ctypes.sizeof(_Attributes), None, len(kinds), memory.kinds(kinds),
                       memory.pointers(names), memory.pointers(values))  # fmt: skip


def _attribute(memory: _Memory, name: str, value: Any) -> tuple[int, int]:
    if isinstance(value, str):
        return _STRING, memory.at(_span(value))
    if isinstance(value, Mapping):
        return _DICTIONARY, memory.at(_attributes(memory, value))
    array = np.ascontiguousarray(value)
    try:
        code = code_of(array.dtype)
    except TypeError as e:
        raise TypeError(
            f"attribute {name!r} of an FFI call is {value!r}: a number, a string, an array or a dict "
            f"of such is needed ({e})"
        ) from None
    if np.ndim(value) == 0:
        return _SCALAR, memory.at(_Scalar(code, memory.of(array)))
    return _ARRAY, memory.at(_Array(code, array.size, memory.of(array)))


def _span(text: str) -> _Span:
    data = text.encode()
    return _Span(data, len(data))


def code_of(dtype: np.dtype) -> int:
    """The number that a dtype has in the interface; TypeError where it has none."""
    code = _CODES.get(dtype.name)
    if code is None:
        raise TypeError(f"XLA's foreign function interface has no arrays of dtype {dtype.name}")
    return code
