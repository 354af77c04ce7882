"""Boxes: parts of an array by where they begin and end along each dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina.sharding.shardings import Index

Box = tuple[tuple[int, int], ...]


def box_of(index: Index, shape: Sequence[int]) -> Box:
    """The box that slices take of an array of this shape."""
    return tuple(s.indices(n)[:2] for s, n in zip(index, shape, strict=True))


def shape_of(box: Box) -> tuple[int, ...]:
    """The shape of a box."""
    return tuple(hi - lo for lo, hi in box)


def size_of(box: Box) -> int:
    """How many elements a box has."""
    return math.prod(shape_of(box))


def common(a: Box, b: Box) -> Box | None:
    """What two boxes of an array share; None where that is nothing."""
    both = tuple((max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True))
    return both if all(lo < hi for lo, hi in both) else None


def cut(x: np.ndarray, box: Box, part: Box) -> np.ndarray:
    """A view of a part of x, where x is what a box holds."""
    at: list[Any] = [slice(lo - b, hi - b) for (lo, hi), (b, _) in zip(part, box, strict=True)]
    return x[(*at, ...)]  # a view of no dimensions, too
