"""Values of the user's own that jit has to tell programs apart by."""

from __future__ import annotations

import itertools
from typing import Any

from lamina.core.option import Option

_numbers = itertools.count()


def make_user_context(default_value: Any = None) -> Option[Any]:
    """A context whose value is part of the key that jit finds its traces by.

    default_value  its value outside any `with` block; hashable.

    Called with a value it gives a context manager; the attribute `value` is what holds now. For a
    value it has not seen, jit traces a function again. TypeError for a value that is not hashable.

    >>> scale = lamina.make_user_context(1.0)
    >>> f = lamina.jit(lambda x: x * scale.value)
    >>> with scale(3.0):
    ...     float(f(2.0))
    6.0
    >>> float(f(2.0))
    2.0
    """
    _check_hashable(default_value)
    return Option(
        f"user_context_{next(_numbers)}",
        default_value,
        "A value of the user's own.",
        parse=str,
        check=_check_hashable,
        affects_trace=True,
        is_setting=False,
    )


def _check_hashable(value: Any) -> None:
    hash(value)
