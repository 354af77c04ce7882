"""How a sample of a distribution is drawn: its parameters checked and converted, its program made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina.core.trace import get_aval
from lamina.core.type_promotion import promote_types
from lamina.errors import TypePromotionError
from lamina.numpy._eager import compiled
from lamina.numpy.creation import as_shape
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    check_arraylike,
    convert,
    type_of,
)  # fmt: skip
from lamina.random.keys import Key, single_key
from lamina.random.sampling import (
    at_least_f32,
    float_dtype,
    sample_shape,
)

Sampler = Callable[..., Array]


# Distributions whose parameters are converted to the sample's dtype, whatever they are.
_CASTING = frozenset(
    """gamma loggamma truncated_normal triangular weibull_min double_sided_maxwell
    generalized_normal""".split()
)


def draw(name: str, sampler: Sampler, key: Key, shape: Any, dtype: DTypeLike | None,
          parameters: tuple[ArrayLike, ...] = (), wide: bool = False) -> Array:  # fmt: skip
    """A sample of a distribution whose sampler takes (words, shape, dtype, *parameters): these of
    the sample's dtype, or of float32 where that is narrower and they are to be wide."""
    words = single_key(name, key)
    to = float_dtype(name, dtype)
    check_arraylike(name, *parameters)
    if name not in _CASTING:
        for p in parameters:
            if promote_types((to, False), type_of(p))[0] != to:
                raise TypePromotionError(
                    f"In arguments to {name}, cannot safely cast argument of type "
                    f"{get_aval(p).dtype.name} to {to.name}"
                )
    dims = sample_shape(name, None if shape is None else as_shape(shape), *parameters)
    given = [convert(p, at_least_f32(to) if wide else to) for p in parameters]
    return _program(words, given, sampler=sampler, shape=dims, dtype=to)


@compiled(static=("sampler", "shape", "dtype"))
def _program(words: Any, parameters: list[Any], *, sampler: Sampler, shape: tuple[int, ...],
             dtype: np.dtype) -> Array:  # fmt: skip
    return sampler(words, shape, dtype, *(broadcast_to_shape(p, shape) for p in parameters))


def number(dtype: np.dtype, value: float) -> Any:
    return np.asarray(value).astype(dtype)[()]
