"""The argument `out_sharding` of functions that make arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from lamina.core.placed import undecided

F = TypeVar("F", bound=Callable[..., Any])


def takes_out_sharding(fun: F) -> F:
    """fun, whose result lies under `out_sharding` where that is given."""

    @functools.wraps(fun)
    def call(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        with undecided(out_sharding is not None):
            out = fun(*args, **kwargs)
        if out_sharding is None:
            return out
        from lamina.sharding.constraint import under

        return under(out, out_sharding)

    return call  # type: ignore[return-value]
