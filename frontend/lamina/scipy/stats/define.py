"""What distributions share: standardisation by loc and scale, and functions derived from others."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from lamina import lax
from lamina import numpy as jnp
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, literal, promote_args_inexact

Distribution = Callable[..., Array]
ArrayLike = Any  # what users give for an array, of which compiled_on_floats makes one


def compiled_on_floats(fun: Distribution) -> Distribution:
    """fun, one program when called outside transformations, on arguments promoted to floats."""
    names = list(inspect.signature(fun).parameters)
    name = f"{fun.__module__.rpartition('.')[2]}.{fun.__name__}"

    def promoted(*args: Any) -> Array:
        # No NumPy scalars: beside Python floats those of bfloat16 become float32.
        return fun(*map(jnp.asarray, promote_args_inexact(name, *args)))

    promoted.__name__ = fun.__name__
    program = compiled(promoted)

    def call(*args: Any, **kwargs: Any) -> Array:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return program(*(bound.arguments[n] for n in names))

    signature = inspect.signature(fun)
    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__, call.__module__ = fun.__doc__, fun.__module__
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def exponential_of(log: Distribution, name: str, doc: str) -> Distribution:
    """The function exp(log(...)) of the same arguments."""

    def exponentiated(*args: Any, **kwargs: Any) -> Array:
        return lax.exp(log(*args, **kwargs))

    exponentiated.__name__ = exponentiated.__qualname__ = name
    exponentiated.__doc__, exponentiated.__module__ = doc, log.__module__
    exponentiated.__signature__ = inspect.signature(log)  # type: ignore[attr-defined]
    return exponentiated


def density(log: Distribution) -> Distribution:
    """pdf from logpdf."""
    return exponential_of(log, "pdf", "The probability density at x.")


def mass(log: Distribution) -> Distribution:
    """pmf from logpmf."""
    return exponential_of(log, "pmf", "The probability of k.")


def outside(which: Any, value: Any, there: float = -math.inf) -> Array:
    """value, but where `which` holds a constant. NaN is never outside."""
    return jnp.where(which, literal(value, there), value)
