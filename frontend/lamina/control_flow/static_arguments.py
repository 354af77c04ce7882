"""Arguments that are no arrays: which they are, and functions of the others alone."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lamina.core.wrapping import function_name


def split_static(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static_argnums: int | Sequence[int],
    static_argnames: str | Iterable[str] = (),
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """fun as a function of (dynamic positional arguments, dynamic keywords), and those two.

    Raises ValueError for positions that the call does not have.
    """
    nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
    for n in nums:
        if not -len(args) <= n < len(args):
            raise ValueError(
                f"static_argnums={nums} are out of range for a call with {len(args)} positional "
                f"arguments of {function_name(fun)}"
            )
    static = {n % len(args): args[n % len(args)] for n in nums}
    if names:
        try:
            positional = [
                p.name
                for p in inspect.signature(fun).parameters.values()
                if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            ]
        except (TypeError, ValueError):
            positional = []
        static |= {i: args[i] for i, p in enumerate(positional[: len(args)]) if p in names}
    static_kwargs = {k: v for k, v in kwargs.items() if k in names}
    dynamic = tuple(x for i, x in enumerate(args) if i not in static)
    dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in names}

    def call(values: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        given = iter(values)
        full = [static[i] if i in static else next(given) for i in range(len(args))]
        return fun(*full, **static_kwargs, **keywords)

    return call, (dynamic, dynamic_kwargs)


def resolve_keywords(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], decorator: str
) -> tuple[Any, ...]:
    """The call's arguments by position, defaults included. The decorator's name is for messages.

    Raises TypeError where the function does not take them, or where a keyword has no position.
    """
    why = f"The input arguments to the {decorator}-decorated function {function_name(fun)} do not fit it.\n"
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except TypeError as e:
        raise TypeError(f"{why}{e}") from None
    except ValueError:  # no signature to be had
        if kwargs:
            raise TypeError(f"{why}keyword arguments could not be resolved to positions") from None
        return args
    bound.apply_defaults()
    given = fun.keywords if isinstance(fun, functools.partial) else {}  # which it has, as it stands
    named = [name for name, value in bound.kwargs.items() if given.get(name, bound) is not value]
    if named:
        raise TypeError(
            f"{why}The following keyword arguments could not be resolved to positions: {', '.join(named)}, "
            "which can only be passed by keyword"
        )
    return bound.args
