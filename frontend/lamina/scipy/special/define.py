"""Makes a special function of a program in double precision: an elementwise primitive of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from lamina.core.primitive import OWED, Primitive
from lamina.lax.checks import FLOAT
from lamina.lax.elementwise_rules import Derivative, elementwise
from lamina.lax.special.program import program
from lamina.numpy.promotion import promote_args_inexact, promote_strong


def in_double(name: str, fun: Callable[..., Any], arity: int,
              derivatives: Sequence[Derivative | None] | None, *, stable: bool = False,
              weak: bool = False) -> Callable[..., Any]:  # fmt: skip
    """The function name(*args) that promotes its arguments to a common float dtype and broadcasts
    them; fun computes it, given float64 arrays of one shape, whatever that dtype.

    stable       fun loses no digits: of narrower floats it is given float32 arrays.
    weak         of Python numbers the result has a weak type, too, where JAX's has.
    derivatives  as those of an elementwise primitive: d(g, ans, *args) for each argument. None for
                 one argument: constant in it. None for all: derivatives are owed.
    """
    lowering = program(fun, stable=stable)
    if derivatives is None:
        primitive: Primitive = elementwise(name, lowering, *[FLOAT] * arity, jvp=OWED)
    else:
        primitive = elementwise(name, lowering, *[FLOAT] * arity, derivatives=derivatives)

    signature = inspect.signature(fun)
    promote = promote_args_inexact if weak else promote_strong

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != arity:
            args = signature.bind(*args, **kwargs).args
        return primitive.bind(*promote(name, *args))

    call.__name__ = name
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call
