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

import numpy as np

from lamina.callbacks.batched import unrolled
from lamina.callbacks.host import HostFunction, evaluate, key_dtypes, lower_call, words_of
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

    callback      a function; None: callback(ordered=True)(function, *args, **kwargs) calls it, so that no name of its
                  arguments is one of an option.
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
        _check_options("callback", args, kwargs)
        return lambda fun, *args, **kwargs: _bind(fun, args, kwargs, ordered, partitioned)
    _bind(callback, args, kwargs, ordered, partitioned)
    return None


def _bind(
    fun: Callable[..., None], args: Any, kwargs: dict[str, Any], ordered: bool, partitioned: bool
) -> None:
    if not callable(fun):
        raise TypeError(
            f"first argument to {library}.debug.callback must be callable, but got an object of type "
            f"{type(fun)}"
        )
    leaves, in_tree = tree.flatten((args, kwargs))
    static = {i: x for i, x in enumerate(leaves) if not is_array_like(x)}
    debug_callback_p.bind(
        *[words_of(x) for i, x in enumerate(leaves) if i not in static],
        callback=HostFunction(fun, in_tree, static, key_dtypes(leaves)),
        ordered=bool(ordered),
        partitioned=bool(partitioned),
    )


def _check_options(what: str, args: Any, kwargs: Any) -> None:
    """Raises TypeError where a call that only takes options was given something else."""
    if args or kwargs:
        raise TypeError(
            f"debug_{what} received unexpected arguments in the two-call form, whose first call takes only "
            f"options: {args=} {kwargs=}"
        )


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
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Prints fmt.format(*args, **kwargs) with the values that arrays have while the program runs.

    fmt                a format string with {} or {name} for each argument; None: print(ordered=True)(fmt, *args,
                       **kwargs) prints, so that no name of an argument is one of an option.
    args, kwargs       pytrees. Arrays look as NumPy's options for printing (np.printoptions) say in the call.
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
    done = functools.partial(_formatted, _write, skip_format_check, ordered, partitioned)
    return _done_or_asked("print", done, fmt, args, kwargs)


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
    done = functools.partial(_formatted, _log_line, skip_format_check, ordered, partitioned)
    return _done_or_asked("log", done, fmt, args, kwargs)


def _done_or_asked(
    what: str, done: Callable[..., None], fmt: str | None, args: Any, kwargs: Any
) -> Callable[..., None] | None:
    """Does it with a format string; without one, what does it is for the caller to be given one."""
    if fmt is None:
        _check_options(what, args, kwargs)
        return done
    done(fmt, *args, **kwargs)
    return None


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")


def _log_line(text: str) -> None:
    _log.info("%s", text)


def _formatted(
    write: Callable[[str], None],
    skip_format_check: bool,
    ordered: bool,
    partitioned: bool,
    fmt: str,
    /,
    *args: Any,
    **kwargs: Any,
) -> None:
    """Has the program write fmt.format(*args, **kwargs)."""
    if not skip_format_check:
        _FormatCheck().format(fmt, *args, **kwargs)
    options = np.get_printoptions()

    def write_values(*values: Any, **named: Any) -> None:
        with np.printoptions(**options):
            text = fmt.format(*values, **named)
        write(text)

    _bind(write_values, args, kwargs, ordered, partitioned)


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
