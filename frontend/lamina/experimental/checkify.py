"""checkify: functions that give back, beside their result, the first error that happened in them.

    error, out = checkify(f, errors=float_checks | user_checks)(x)
    error.throw()

A checkified function is traced and its equations are applied again, those that can go wrong each with
a check behind it. A check is a flag (it failed, and none did before) and the numbers that its message
tells; loops carry those of their bodies. Everything is an array, so that checkified functions can be
jitted, mapped and differentiated, and errors be results of compiled programs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lamina.core import tree
from lamina.core.trace import get_aval, is_array_like
from lamina.core.wrapping import function_name
from lamina.experimental.check_primitive import check_p

__all__ = [
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "Site",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]


class JaxRuntimeError(ValueError):
    """An error that a checkified function found."""


class NaNError(JaxRuntimeError):
    """An operation gave NaN."""


class DivisionByZeroError(JaxRuntimeError):
    """A division by zero."""


class OOBError(JaxRuntimeError):
    """An index out of bounds."""


class FailedCheckError(JaxRuntimeError):
    """A check of the user's."""


ErrorCategory = type[JaxRuntimeError]
user_checks: frozenset[ErrorCategory] = frozenset({FailedCheckError})
nan_checks: frozenset[ErrorCategory] = frozenset({NaNError})
index_checks: frozenset[ErrorCategory] = frozenset({OOBError})
div_checks: frozenset[ErrorCategory] = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


@dataclasses.dataclass(frozen=True)
class Site:
    """A place where a check stands: the class of its error, and how its message is made from the
    numbers told."""

    kind: ErrorCategory
    text: str
    told: Any = None  # the structure of the message's (args, kwargs)

    def message(self, numbers: list[np.ndarray]) -> str:
        if self.told is None:
            return self.text.format(*(int(n) for n in numbers))
        args, kwargs = tree.unflatten(self.told, numbers)
        return self.text.format(*args, **kwargs) + " (`check` failed)"


class Error:
    """What the checks of a function found: a pytree of their flags and numbers."""

    def __init__(self, sites: tuple[Site, ...], flags: Any, numbers: Any) -> None:
        self._sites, self._flags, self._numbers = sites, flags, numbers

    def get(self) -> str | None:
        """The message of the first error, or None; of a batch, one line for each mapped index."""
        found = self._found()
        if not found or () in found:
            return str(found[()]) if found else None
        return "\n".join(
            f"at mapped index {', '.join(map(str, at))}: {error}" for at, error in found.items()
        )

    def get_exception(self) -> JaxRuntimeError | None:
        """The first error, or None."""
        return next(iter(self._found().values()), None)

    def throw(self) -> None:
        """Raises the first error, if there is one."""
        message = self.get()
        if message is not None:
            raise type(self.get_exception())(message)  # type: ignore[misc]

    def _found(self) -> dict[tuple[int, ...], JaxRuntimeError]:
        found = {}
        for site, flag, numbers in zip(self._sites, self._flags, self._numbers, strict=True):
            for at in np.argwhere(np.asarray(flag)):
                where = tuple(map(int, at))
                here = [np.asarray(n)[where] for n in numbers]
                found[where] = site.kind(site.message(here))
        return dict(sorted(found.items()))

    def __repr__(self) -> str:
        return f"Error({self.get()})"


tree.register_node(
    Error,
    lambda e: ((e._flags, e._numbers), e._sites),
    lambda sites, children: Error(sites, *children),
)
init_error = Error((), [], [])


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Says that pred holds; else msg is the error of the checkified function.

    pred                  a boolean scalar.
    msg                   a format string,
    fmt_args, fmt_kwargs  formatted with these arrays.
    debug                 leaves the check out where no checkify is around.

    The function that it stands in is to be checkified before it is compiled. Outside of traced
    functions it raises JaxRuntimeError at once.

    >>> checkify = lamina.experimental.checkify
    >>> def root(x):
    ...     checkify.check(x >= 0, "{x} is negative", x=x)
    ...     return jnp.sqrt(x)
    >>> error, value = checkify.checkify(root)(jnp.float32(-1))
    >>> print(error.get())
    -1.0 is negative (`check` failed)
    """
    if not is_array_like(pred) or get_aval(pred).shape or get_aval(pred).dtype != np.bool_:
        name = "debug_check" if debug else "check"
        raise TypeError(f"checkify.{name} takes a scalar pred of type bool, got {pred}.")
    leaves, told = tree.flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not hasattr(x, "dtype") or not is_array_like(x):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{x!r} of type {type(x)}."
            )
    check_p.bind(pred, *leaves, site=Site(FailedCheckError, msg, told), lanes=0, debug=debug)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """check, which does nothing where no checkify is around.

    pred                  a boolean scalar.
    msg                   a format string,
    fmt_args, fmt_kwargs  formatted with these arrays.

    >>> @lamina.jit
    ... def root(x):
    ...     lamina.experimental.checkify.debug_check(x >= 0, "negative")
    ...     return jnp.sqrt(x)
    >>> print(root(4.0))
    2.0
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises an error, or, within a function that is to be checkified, hands it on.

    error  what a checkified function gave.

    Raises JaxRuntimeError where an error is there; nothing otherwise.

    >>> checkify = lamina.experimental.checkify
    >>> error, value = checkify.checkify(jnp.log, checkify.nan_checks)(1.0)
    >>> checkify.check_error(error)
    """
    if not isinstance(error, Error):
        raise ValueError(f"check_error takes an Error, got {type(error).__name__}")
    for site, flag, numbers in zip(error._sites, error._flags, error._numbers, strict=True):
        check_p.bind(np.logical_not(flag) if isinstance(flag, np.ndarray) else ~flag, *numbers,
                     site=site, lanes=0, debug=False)  # fmt: skip


def checkify(
    f: Callable[..., Any], errors: Iterable[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, Any]]:
    """A function that gives (error, f's result): the first error of some categories. It raises
    nothing; where an operation goes wrong, it gives what it gives without the check.

    f       a function of pytrees of arrays; other values, too, and f may branch on values that are known.
    errors  user_checks (those of check), nan_checks, div_checks, index_checks, or unions of these:
            float_checks, automatic_checks, all_checks.

    >>> checkify = lamina.experimental.checkify
    >>> error, value = checkify.checkify(lambda x: 1 / x, checkify.div_checks)(jnp.float32(0))
    >>> print("division by zero" in error.get(), value)
    True inf
    """
    from lamina.experimental.functionalize import run

    kinds = frozenset(errors)

    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        out, sites = run(f, args, kwargs, kinds)
        found = [s for s, _, _ in sites]
        return Error(tuple(found), [f for _, f, _ in sites], [n for _, _, n in sites]), out

    checked.__name__ = function_name(f)
    checked.__wrapped__ = f  # type: ignore[attr-defined]
    return checked
