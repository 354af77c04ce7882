"""Choice between arrays: where with three arguments, select, choose, piecewise choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from lamina import lax
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import get_aval
from lamina.numpy._eager import compiled
from lamina.numpy.logic import truth
from lamina.numpy.promotion import (
    Array,
    ArrayLike,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    concrete_or_error,
    convert,
    pick,
    promote_dtypes,
    refuse_out,
    shape_of,
)  # fmt: skip


@overload
def where(condition: Any, x: None = None, y: None = None, /, *, size: int | None = None,
          fill_value: Any = None) -> tuple[Array, ...]: ...
@overload
def where(condition: Any, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None,
          fill_value: Any = None) -> Array: ...
def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None,
          fill_value: Any = None) -> Any:  # fmt: skip
    """x where condition holds, else y, all broadcast together; gradients flow to both.

    condition   an array, of which being nonzero counts
    x, y        arrays or numbers that broadcast with it
    size        how many results there are; needed where the values are traced
    fill_value  what fills the results up to size

    With condition alone: the indices at which it holds, as `nonzero` gives them.

    >>> jnp.where(jnp.array([True, False]), jnp.array([1, 2]), 0).tolist()
    [1, 0]
    """
    if x is None and y is None:
        from lamina.numpy.searching import nonzero

        (condition,) = check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("Either both or neither of the x and y arguments should be provided to "
                         f"{library}.numpy.where.")  # fmt: skip
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in the three-term where.")
    condition, x, y = check_arraylike("where", condition, x, y)
    return _where(condition, x, y)


@compiled
def _where(condition: Any, x: Any, y: Any) -> Array:
    x, y = promote_dtypes(x, y)
    return pick(convert(truth(condition), np.dtype(bool)), x, y)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
           ) -> Array:  # fmt: skip
    """The choice of the first condition that holds; default where none does.

    condlist    arrays of booleans
    choicelist  as many arrays
    default     a number

    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x > 2], [-x - 1, x * 10]).tolist()
    [-1, 0, 0, 30]
    """
    condlist, choicelist = list(condlist), list(choicelist)
    if len(condlist) != len(choicelist):
        raise ValueError("condlist must have length equal to choicelist "
                         f"({len(condlist)} vs {len(choicelist)})")  # fmt: skip
    if not condlist:
        raise ValueError("condlist must be non-empty")
    arrays = check_arraylike("select", *condlist, *choicelist, default)
    condlist = arrays[: len(condlist)]
    *choices, out = promote_dtypes(*arrays[len(condlist) :])
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        out = pick(truth(condition), choice, out)
    return out


def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """For each element of the integer array a, that of the choice with this number.

    a        integers
    choices  arrays that broadcast with a
    out      must be None: arrays cannot be written to
    mode     "raise", "clip" or "wrap"

    Numbers out of range raise ValueError (a must then be concrete), or are clipped or wrapped with
    mode="clip" or "wrap".

    >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([3, 4])]).tolist()
    [3, 2]
    """
    refuse_out("choose", out)
    a, *values = check_arraylike("choose", a, *choices)
    values = promote_dtypes(*values)
    count = len(values)
    if not (dtypes.is_integer(have := get_aval(a).dtype) or have == np.bool_):
        raise ValueError(f"choose: a must be integers, the numbers of choices, got {have}: .astype(int)")
    index = convert(a, np.dtype(np.int32))
    if mode == "raise":
        known = concrete_or_error(index, "The index must be known for choose with mode='raise'.")
        if known.size and (known.min() < 0 or known.max() >= count):
            raise ValueError("invalid entry in choice array")
    elif mode == "wrap":
        from lamina.numpy.arithmetic import remainder

        index = remainder(index, np.int32(count))
    elif mode == "clip":
        index = lax.clamp(np.int32(0), index, np.int32(count - 1))
    else:
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap' or 'clip'")
    shape = broadcast_shapes(shape_of(index), *map(shape_of, values))
    return lax.select_n(
        broadcast_to_shape(index, shape), *(broadcast_to_shape(v, shape) for v in values)
    )
