"""JAX's questions how an array lies (`jax.debug.inspect_array_sharding`), answered while a program is compiled.

A question is a custom call whose configuration is a function in C and what it is given, as bytes of this
process's memory:

    struct { void (*call)(void *data, arguments *); void *data; }
    arguments: { char *sharding; size_t size; const char *error; void *scratch; void (*free_error)(arguments *); }
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from lamina.jax_plugin.failures import PluginError
from lamina.jax_plugin.op_shardings import MANUAL, op_sharding
from lamina.partitioning import Sharding

_TARGET = b"InspectSharding"


class _Arguments(ctypes.Structure):
    pass


_Free = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Arguments))
_Call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Arguments))
_Arguments._fields_ = [
    ("sharding", ctypes.c_char_p),
    ("size", ctypes.c_size_t),
    ("error", ctypes.c_char_p),
    ("scratch", ctypes.c_void_p),
    ("free_error", ctypes.c_void_p),
]


class _Question(ctypes.Structure):
    _fields_ = [("call", ctypes.c_void_p), ("data", ctypes.c_void_p)]


def asks_for_shardings(code: bytes) -> bool:
    """Whether a program may ask how arrays lie."""
    return _TARGET in code


def tell(inspected: Iterable[tuple[bytes, Sharding | None]]) -> None:
    """Tells who asked. Raises PluginError with what a caller's function raises."""
    for key, sharding in inspected:
        question = _Question.from_buffer_copy(key)
        message = MANUAL if sharding is None else op_sharding(sharding)
        given = _Arguments(message, len(message))
        _Call(question.call)(question.data, ctypes.byref(given))
        if given.error is not None:
            said = given.error.decode(errors="replace")
            _Free(given.free_error)(ctypes.byref(given))
            raise PluginError("INTERNAL", said)
