"""debug.callback and debug.print: Python functions that look at values and give nothing back.

Transformations leave them out of the mathematics: under grad they see the primal values.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import string
import sys
from collections.abc import Callable, Sequence
from typing import Any

from lamina.callbacks.batched import unrolled
from lamina.callbacks.host import HostFunction, evaluate, lower_call
from lamina.core import tree
from lamina.core.effects import Effect
from lamina.core.library import library
from lamina.core.primitive import Primitive
from lamina.core.trace import is_array_like
from lamina.interpreters.batching import batched_size

_log = logging.getLogger("lamina.debug")


@dataclasses.dataclass(frozen=True, repr=False)
class DebugEffect(Effect):
    """Of callbacks that may run in any order."""

    name: str = "Debug"


@dataclasses.dataclass(frozen=True, repr=False)
class OrderedDebugEffect(Effect):
    """Of callbacks that run in the order of the program."""

    name: str = "OrderedDebug"
    ordered: bool = True


DEBUG = DebugEffect()
ORDERED_DEBUG = OrderedDebugEffect()


def callback(
    callback: Callable[..., None] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """callback(*args, **kwargs) of read-only NumPy arrays, whenever the program gets there. What it
    gives is ignored.

    callback      a function; None: callback is a decorator that takes the other arguments.
    args, kwargs  pytrees; what is no array in them (strings, functions) is passed on as it is.
    ordered       it happens in program order.
    partitioned   without effect.

    Calls of the program raise JaxRuntimeError, with the callback's exception as its cause.

    >>> seen = []
    >>> @lamina.jit
    ... def f(x):
    ...     lamina.debug.callback(seen.append, x)
    ...     return x + 1
    >>> y = f(1.0)
    >>> lamina.effects_barrier()
    >>> print(seen)
    [array(1., dtype=float32)]
    """
    if callback is None:
        return lambda fun: _decorated(fun, ordered, partitioned)
    if not callable(callback):
        raise TypeError(
            f"first argument to {library}.debug.callback must be callable, but got an object of type "
            f"{type(callback)}"
        )
    leaves, in_tree = tree.flatten((args, kwargs))
    static = {i: x for i, x in enumerate(leaves) if not is_array_like(x)}
    debug_callback_p.bind(
        *[x for i, x in enumerate(leaves) if i not in static],
        callback=HostFunction(callback, in_tree, static),
        ordered=bool(ordered),
        partitioned=bool(partitioned),
    )
    return None


def _decorated(fun: Callable[..., None], ordered: bool, partitioned: bool) -> Callable[..., None]:
    def call(*args: Any, **kwargs: Any) -> None:
        callback(fun, *args, ordered=ordered, partitioned=partitioned, **kwargs)

    return call


class _FormatCheck(string.Formatter):
    """Finds out whether a format string fits its arguments, without formatting them."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Any) -> Any:
        first = field_name.split(".")[0].split("[")[0]
        key: int | str = int(first) if first.isdigit() else first
        return self.get_value(key, args, kwargs), key

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value

    def check_unused_args(self, used: Any, args: Sequence[Any], kwargs: Any) -> None:
        positional = [x for i, x in enumerate(args) if i not in used]
        if positional:
            raise ValueError(f"Unused positional arguments to `{library}.debug.print`: {positional}")
        named = [k for k in kwargs if k not in used]
        if named:
            raise ValueError(
                f"Unused keyword arguments to `{library}.debug.print`: {named}. You may be passing an "
                f'f-string (i.e, `f"{{x}}"`) into `{library}.debug.print` and instead should pass in a '
                "regular string."
            )


def print(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> None:
    """Prints fmt.format(*args, **kwargs) with the values that arrays have while the program runs.

    fmt                a format string with {} or {name} for each argument.
    args, kwargs       pytrees.
    ordered            prints come in program order.
    partitioned        without effect.
    skip_format_check  takes a format string that does not name every argument.

    Raises ValueError for arguments that fmt does not use, IndexError or KeyError for missing ones.

    >>> @lamina.jit
    ... def f(x):
    ...     lamina.debug.print("x is {}", x)
    ...     return x + 1
    >>> y = f(1.0)
    x is 1.0
    """
    if not skip_format_check:
        _FormatCheck().format(fmt, *args, **kwargs)

    def print_values(*values: Any, **named: Any) -> None:
        sys.stdout.write(fmt.format(*values, **named) + "\n")

    callback(print_values, *args, ordered=ordered, partitioned=partitioned, **kwargs)


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """print, into Python's log: a record of level INFO of the logger "lamina.debug".

    fmt                a format string; None: the function that takes one is given, with the other
                       arguments as they are.
    args, kwargs       pytrees of arrays, which it formats.
    ordered            records come in program order.
    partitioned        without effect.
    skip_format_check  takes a format string that does not name every argument.

    >>> lamina.debug.log("x is {}", jnp.ones(2))
    """
    if fmt is None:
        return functools.partial(  # type: ignore[return-value]
            log, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check
        )
    if not skip_format_check:
        _FormatCheck().format(fmt, *args, **kwargs)

    def log_values(*values: Any, **named: Any) -> None:
        _log.info("%s", fmt.format(*values, **named))

    callback(log_values, *args, ordered=ordered, partitioned=partitioned, **kwargs)
    return None


def _nothing(callback: HostFunction) -> Callable[..., tuple[()]]:
    def call(*arrays: Any) -> tuple[()]:
        callback(*arrays)
        return ()

    return call


def _impl(*args: Any, callback: HostFunction, **_: Any) -> list[Any]:
    return evaluate(_nothing(callback), "debug_callback", args)


def _lowering(ctx: Any, *args: Any, callback: HostFunction, **_: Any) -> Any:
    return lower_call(ctx, _nothing(callback), args, has_effect=True)


def _jvp(primals: list[Any], tangents: list[Any], **params: Any) -> Any:
    debug_callback_p.bind(*primals, **params)
    return [], []


def _batching(args: list[Any], dims: list[Any], **params: Any) -> Any:
    size = batched_size(args, dims)
    return unrolled(lambda *lane: debug_callback_p.bind(*lane, **params), args, dims, size)


debug_callback_p = Primitive(
    "debug_callback",
    multiple_results=True,
    abstract_eval=lambda *_, **__: [],
    lowering=_lowering,
    jvp=_jvp,
    transpose=lambda cts, *args, **_: [None] * len(args),
    batching=_batching,
    impl=_impl,
    shown=lambda params: {k: params[k] for k in ("callback", "ordered", "partitioned")},
    effects=lambda params: frozenset((ORDERED_DEBUG if params["ordered"] else DEBUG,)),
)
