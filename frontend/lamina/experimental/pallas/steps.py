"""Control flow of kernels, and small arithmetic on sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina import debug, lax
from lamina.core.trace import Tracer


def when(condition: Any) -> Callable[[Callable[[], None]], None]:
    """A decorator that calls the function at once where a condition holds: by `if` where it is
    known, by lax.cond where it is traced.

    condition  a boolean scalar.

    >>> pallas = lamina.experimental.pallas
    >>> def kernel(x_ref, out_ref):
    ...     @pallas.when(pallas.program_id(0) == 0)
    ...     def _():
    ...         out_ref[...] = jnp.zeros(2)
    ...     out_ref[...] += x_ref[...]
    >>> print(pallas.pallas_call(kernel, jnp.ones(2), grid=3)(jnp.ones(2)))
    [3. 3.]
    """

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

    lower, upper  integer scalars.
    step          another.
    unroll        how many steps are written out in one, as in lax.fori_loop; True for all.

    >>> pallas = lamina.experimental.pallas
    >>> def kernel(out_ref):
    ...     @pallas.loop(0, 4)
    ...     def _(i):
    ...         out_ref[i] = i * i
    >>> print(pallas.pallas_call(kernel, lamina.ShapeDtypeStruct((4,), "int32"))())
    [0 1 4 9]
    """

    def decorate(body: Callable[[Any], None]) -> None:
        def one(k: Any, carry: None) -> None:
            body(lower + k * step)

        lax.fori_loop(0, cdiv(upper - lower, step), one, None, unroll=unroll)

    return decorate


def cdiv(a: Any, b: Any) -> Any:
    """a / b rounded up: the number of blocks of b that hold a things.

    a  an integer >= 0.
    b  an integer > 0.

    >>> lamina.experimental.pallas.cdiv(10, 4)
    3
    """
    return (a + b - 1) // b


def next_power_of_2(x: int) -> int:
    """The least power of two that is not less than x.

    x  a Python int, 0 or more; ValueError for others.

    >>> lamina.experimental.pallas.next_power_of_2(5)
    8
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def debug_print(fmt: str, *args: Any) -> None:
    """Prints when the kernel runs.

    fmt   a format with a {} for each value, or a text before them.
    args  arrays.

    >>> pallas = lamina.experimental.pallas
    >>> def kernel(x_ref, out_ref):
    ...     pallas.debug_print("x is {}", x_ref[0])
    ...     out_ref[...] = x_ref[...]
    >>> y = pallas.pallas_call(kernel, jnp.ones(1))(jnp.array([3.0]))
    x is 3.0
    """
    with_places = fmt if "{" in fmt else " ".join([fmt, *["{}"] * len(args)])
    debug.print(with_places, *args)
