"""Taylor mode: derivatives of all orders along a curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from lamina.autodiff import jvp
from lamina.core import tree

__all__ = ["fact", "jet", "zero_series"]


class _ZeroSeries:
    """Stands for derivatives that are all zero, however many the others have."""

    def __repr__(self) -> str:
        return "zero_series"


zero_series = _ZeroSeries()


def fact(n: Any) -> Any:
    """n!, by which the coefficients of a Taylor series differ from derivatives.

    n  a whole number, or an array of them: the result is a float, gamma(n + 1) where it is traced.

    >>> float(lamina.experimental.jet.fact(3))
    6.0
    """
    if isinstance(n, int):
        return float(math.factorial(n))
    from lamina import lax

    return lax.exp(lax.lgamma(n + 1.0))


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any] | _ZeroSeries],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """A function's value and derivatives along a curve: (fun(*primals), [derivatives]).

    fun               a function of arrays.
    primals           where the curve is at t = 0: a value for each argument,
    series            and for each the derivatives d^k x / dt^k there, k = 1, 2, ..., or zero_series.
    factorial_scaled  False: Taylor coefficients, derivatives divided by k!, both in and out.

    The result's series has for each leaf of fun's result the list of derivatives. They come from
    jvps of jvps along t, so that all that can be differentiated has them; work grows as 2**order.
    Raises ValueError where terms differ in number or an argument is no array.

    >>> value, derivatives = lamina.experimental.jet.jet(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),))
    >>> print(value, [float(d) for d in derivatives])
    1.0 [1.0, 1.0, 1.0]
    """
    orders = {len(terms) for terms in series if not isinstance(terms, _ZeroSeries)}
    if len(orders) > 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    for i, x in enumerate(primals):
        if not tree.structure(x).is_leaf():
            raise ValueError(f"primal value at position {i} is not an array")
    order = orders.pop() if orders else 0

    def curve(t: Any) -> Any:
        """fun on the polynomial with these derivatives at 0."""

        def at(x: Any, terms: Sequence[Any] | _ZeroSeries) -> Any:
            if isinstance(terms, _ZeroSeries):
                return x
            for k, term in enumerate(terms, 1):
                x = x + term * t**k / (math.factorial(k) if factorial_scaled else 1)
            return x

        return fun(*(at(x, terms) for x, terms in zip(primals, series, strict=True)))

    values: list[Any] = []
    derivative: Callable[[Any], Any] = curve
    for k in range(order + 1):
        scale = 1 if factorial_scaled else math.factorial(k)
        found = derivative(0.0)
        values.append(found if scale == 1 else tree.map(lambda v, by=scale: v / by, found))
        derivative = _along(derivative)
    out, *terms = values
    if not terms:
        return out, tree.map(lambda _: [], out)
    return out, tree.map(lambda *each: list(each), *terms)


def _along(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda t: jvp(f, (t,), (1.0,))[1]
