"""What the body of a reduction of values with their positions picks, asked by trying it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Body = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], Sequence[Any] | None]
"""(a value, its position, another, its position) -> the value and the position that are picked, None where the body
does more than compare and select."""

FLOATS = (-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf, np.nan)


def picks(body: Body, numbers: Sequence[Any], largest: bool) -> bool:
    """Whether a body, of any two elements at different positions, picks the larger, or the smaller, and of equal ones
    the first; a number that is none wins, and of two either may. It compares and selects only, so that it can tell no
    more of two elements than what `numbers` show: which is less, equal or no number."""
    pairs = np.array([(a, b, i) for a in numbers for b in numbers for i in (0, 1)], np.float64)
    left, right, at = pairs.T
    with np.errstate(invalid="ignore"):
        found = body(left, at, right, 1 - at)
        if found is None:
            return False
        value, position = found
        most = (np.maximum if largest else np.minimum)(left, right)
        first = np.where(left == right, np.minimum(at, 1 - at), 1 - at)
        expected = np.where((left != right) & ((left == most) | np.isnan(left)), at, first)
    either = np.isnan(left) & np.isnan(right)
    return np.array_equal(value, most, equal_nan=True) and bool(np.all((position == expected) | either))
