"""What drivers and libraries made of Python share: C's memory, and tables of calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

PTR, INT, UINT, WORD = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_uint64
GIVE_TEXT: set[str] = set()
"""The symbols of calls that give a text and no error's number."""
Calls = dict[str, tuple[tuple[Any, ...], Callable[..., int | None]]]
"""By symbol: the types of the parameters, and the function, which takes the driver before them."""


def register(calls: Calls, symbol: str, *kinds: Any) -> Callable[..., Any]:
    """Decorates the function that a symbol stands for."""

    def add(function: Callable[..., int | None]) -> Callable[..., int | None]:
        calls[symbol] = (kinds, function)
        return function

    return add


def pointer(array: int, index: int) -> int:
    """An entry of an array of pointers or words."""
    return ctypes.c_uint64.from_address(array + 8 * index).value


def set_word(out: int, value: int) -> None:
    ctypes.c_uint64.from_address(out).value = value


def set_int(out: int, value: int) -> None:
    ctypes.c_int.from_address(out).value = value


def set_text(out: int, text: bytes | None) -> None:
    set_word(out, ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value or 0)
