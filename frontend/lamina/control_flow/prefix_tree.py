"""All prefixes of arrays along an axis by a tree: O(log n) steps on whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def prefixes_by_tree(
    combine: Callable[..., list[Any]], leaves: Sequence[Any], axis: int
) -> list[Any]:
    """The combination of the elements up to each. Blelloch, "Prefix sums and their applications" (1990)."""
    from lamina import lax

    def part(xs: Sequence[Any], start: int, stop: int | None, stride: int = 1) -> list[Any]:
        return [
            lax.slice_in_dim(x, start, x.shape[axis] if stop is None else stop, stride, axis)
            for x in xs
        ]

    def run(xs: list[Any]) -> list[Any]:
        n = xs[0].shape[axis]
        if n < 2:
            return xs
        pairs = combine(part(xs, 0, n - 1, 2), part(xs, 1, None, 2))
        odd = run(pairs)
        left = odd if n % 2 else part(odd, 0, odd[0].shape[axis] - 1)
        if n > 2:
            even = combine(left, part(xs, 2, None, 2))
            first = part(xs, 0, 1)
            even = [lax.concatenate([a, b], axis) for a, b in zip(first, even, strict=True)]
        else:
            even = part(xs, 0, 1)
        return [_interleave(a, b, axis) for a, b in zip(even, odd, strict=True)]

    return run(list(leaves))


def _interleave(a: Any, b: Any, axis: int) -> Any:
    """a[0], b[0], a[1], b[1], ...; a may be one longer."""
    from lamina import lax

    zero = np.zeros((), a.dtype)[()]
    none = [(0, 0, 0)] * a.ndim
    total = a.shape[axis] + b.shape[axis]

    def spread(x: Any, offset: int) -> Any:
        config_ = list(none)
        used = offset + 2 * x.shape[axis] - 1
        config_[axis] = (offset, total - used, 1)
        return lax.pad(x, zero, config_)

    if a.dtype == np.bool_:
        return lax.bitwise_or(spread(a, 0), spread(b, 1))
    return lax.add(spread(a, 0), spread(b, 1))
