"""What distributions share: standardisation by loc and scale, and functions derived from others."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable
from typing import Any

from lamina import lax
from lamina import numpy as jnp
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import Array, literal, promote_args_inexact

Distribution = Callable[..., Array]
ArrayLike = Any  # what users give for an array, of which compiled_on_floats makes one

_SHARED = {
    "x": "real numbers, of any shape.",
    "k": "integers, of any shape.",
    "q": "probabilities, of any shape.",
    "p": "probabilities, of any shape.",
    "loc": "what is added to the distribution's numbers.",
    "scale": "what they are multiplied by before, positive.",
}
"""What arguments mean, unless a distribution's module says otherwise."""


def _documented(fun: Distribution, names: list[str]) -> str:
    """The docstring of a distribution's function: what it gives, of which distribution, its arguments,
    and its example. The module's docstring begins with the distribution and ends with its parameters."""
    module = inspect.getdoc(sys.modules[fun.__module__]) or ""
    distribution, _, listed = module.partition("\n\n")
    own = {
        name: meaning
        for line in listed.splitlines()
        for given, _, meaning in [line.partition("  ")]
        for name in given.split(", ")
    }
    if fun.__name__ in ("ppf", "isf"):
        own.setdefault("x", _SHARED["q"])
    width = max(map(len, names)) + 2
    arguments = [f"{n:{width}}{(own.get(n) or _SHARED.get(n, '')).strip()}" for n in names]
    what, _, example = (inspect.getdoc(fun) or "").partition("\n\n>>> ")
    return "\n\n".join(
        [what, distribution, "\n".join(arguments), "All broadcast.", f">>> {example}"]
    )


_CALL = re.compile(r"(?:logpdf|logpmf|logcdf|logsf|of)\((.*)\)\.round")


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
    call.__doc__, call.__module__ = _documented(fun, names), fun.__module__
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def exponential_of(log: Distribution, name: str, doc: str) -> Distribution:
    """The function exp(log(...)) of the same arguments."""

    def exponentiated(*args: Any, **kwargs: Any) -> Array:
        return lax.exp(log(*args, **kwargs))

    exponentiated.__name__ = exponentiated.__qualname__ = name
    exponentiated.__doc__, exponentiated.__module__ = _with_summary(log, name, doc), log.__module__
    exponentiated.__signature__ = inspect.signature(log)  # type: ignore[attr-defined]
    return exponentiated


def _with_summary(log: Distribution, name: str, summary: str) -> str:
    """log's docstring for exp(log(...)): its example compares the two."""
    text = inspect.getdoc(log) or ""
    described, _, example = text.partition("\n\n>>> ")
    call = _CALL.search(example)
    if call is None:
        return summary
    module = log.__module__.rpartition(".")[2]
    return "\n\n".join([
        described.replace(described.partition("\n\n")[0], summary, 1),
        f">>> of, given = lamina.scipy.stats.{module}, ({call.group(1)},)\n"
        f">>> print(jnp.allclose(of.{name}(*given), jnp.exp(of.{log.__name__}(*given))))\nTrue",
    ])  # fmt: skip


def density(log: Distribution) -> Distribution:
    """pdf from logpdf."""
    return exponential_of(log, "pdf", "The probability density at x.")


def mass(log: Distribution) -> Distribution:
    """pmf from logpmf."""
    return exponential_of(log, "pmf", "The probability of k.")


def outside(which: Any, value: Any, there: float = -math.inf) -> Array:
    """value, but where `which` holds a constant. NaN is never outside."""
    return jnp.where(which, literal(value, there), value)
