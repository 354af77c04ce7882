"""Control flow of kernels, and small arithmetic on sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina import debug, lax
from lamina.core.trace import Tracer


def when(condition: Any) -> Callable[[Callable[[], None]], None]:
    """A decorator that calls the function where the condition holds: by `if` where it is known, by
    lax.cond where it is traced."""

    def decorate(f: Callable[[], None]) -> None:
        if not isinstance(condition, Tracer):
            if condition:
                f()
        else:
            lax.cond(condition, f, lambda: None)

    return decorate


def loop(
    lower: Any, upper: Any, *, step: Any = 1, unroll: int | bool | None = None
) -> Callable[[Callable[[Any], None]], None]:
    """A decorator that calls the function with lower, lower + step, ... below upper.

    unroll  steps in one, as in lax.fori_loop; True for all.
    """

    def decorate(body: Callable[[Any], None]) -> None:
        def one(k: Any, carry: None) -> None:
            body(lower + k * step)

        lax.fori_loop(0, cdiv(upper - lower, step), one, None, unroll=unroll)

    return decorate


def cdiv(a: Any, b: Any) -> Any:
    """a / b rounded up, of integers a >= 0 and b > 0."""
    return (a + b - 1) // b


def next_power_of_2(x: int) -> int:
    """The least power of two that is not less than x. ValueError for a negative x."""
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def debug_print(fmt: str, *args: Any) -> None:
    """Prints when the kernel runs: a format with a {} for each value, or a text before them."""
    with_places = fmt if "{" in fmt else " ".join([fmt, *["{}"] * len(args)])
    debug.print(with_places, *args)
