"""Functions around a user's: what they are called. Users' callables may be instances, partials, or
have a `__name__` that is no string."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any, TypeVar

Wrapper = TypeVar("Wrapper")


def innermost(fun: Any) -> Any:
    """What a callable was made of, by wrapping and by functools.partial."""
    with suppress(Exception):  # of classes that answer for each attribute
        fun = inspect.unwrap(fun)
    while isinstance(fun, functools.partial):
        fun = fun.func
    return fun


def function_name(fun: Any) -> str:
    """What messages and programs call a callable: its `__name__`, that of the function that a partial
    is made of, or its class's."""
    fun = innermost(fun)
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) and name else type(fun).__name__


def location_of(fun: Any) -> str:
    """FILE:LINE of the function that a callable was made of; "" where it has no source."""
    code = getattr(innermost(fun), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def named_place(fun: Any) -> str:
    """How messages call a callable: f at FILE:LINE."""
    location = location_of(fun)
    return f"{function_name(fun)} at {location}" if location else function_name(fun)


def renamed(fun: Wrapper, name: str) -> Wrapper:
    """The function once more, which says that it is called so: an alias that has a name of its own."""
    assert isinstance(fun, FunctionType)
    made = FunctionType(fun.__code__, fun.__globals__, name, fun.__defaults__, fun.__closure__)
    made.__kwdefaults__ = fun.__kwdefaults__
    update_wrapper(made, fun)
    made.__name__ = made.__qualname__ = name
    del made.__wrapped__  # type: ignore[attr-defined]
    return made  # type: ignore[return-value]


def update_wrapper(wrapper: Wrapper, fun: Any, attributes: bool = True) -> Wrapper:
    """As functools.update_wrapper, for every callable: what `wrapper` can't take over is left out.

    attributes  whether it gets the attributes that were set on `fun`, too.
    """
    for name in functools.WRAPPER_ASSIGNMENTS:
        value = getattr(fun, name, None)
        if value is None or name in ("__name__", "__qualname__") and not isinstance(value, str):
            continue
        with suppress(AttributeError, TypeError):
            setattr(wrapper, name, value)
    if attributes:
        vars(wrapper).update(getattr(fun, "__dict__", {}))
    wrapper.__wrapped__ = fun  # type: ignore[attr-defined]
    return wrapper


def wraps(fun: Any, attributes: bool = True) -> Callable[[Wrapper], Wrapper]:
    """As functools.wraps, by update_wrapper."""
    return lambda wrapper: update_wrapper(wrapper, fun, attributes)
