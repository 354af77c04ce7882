"""Where in its grid a kernel is."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class _Places(threading.local):
    def __init__(self) -> None:
        self.stack: list[tuple[Sequence[Any], Sequence[Any]]] = []


_places = _Places()


@contextmanager
def at(place: Sequence[Any], grid: Sequence[Any]) -> Iterator[None]:
    """A block in which a kernel is traced for a place of a grid."""
    _places.stack.append((place, grid))
    try:
        yield
    finally:
        _places.stack.pop()


def _current(name: str, axis: int) -> tuple[Sequence[Any], Sequence[Any]]:
    if not _places.stack:
        raise ValueError(f"{name} can only be called in a kernel of pallas_call")
    place, grid = _places.stack[-1]
    if not 0 <= axis < len(grid):
        raise ValueError(f"{name}(axis={axis}): the grid has {len(grid)} axes")
    return place, grid


def program_id(axis: int) -> Any:
    """The kernel's place along an axis of the grid, an int32.

    axis  from 0 to the number of the grid's axes - 1.

    Raises ValueError outside of a kernel.

    >>> pallas = lamina.experimental.pallas
    >>> def number(out_ref):
    ...     out_ref[pallas.program_id(0)] = pallas.program_id(0)
    >>> print(pallas.pallas_call(number, lamina.ShapeDtypeStruct((3,), "int32"), grid=3)())
    [0 1 2]
    """
    return _current("program_id", axis)[0][axis]


def num_programs(axis: int) -> Any:
    """The grid's size along an axis.

    axis  from 0 to the number of the grid's axes - 1.

    Raises ValueError outside of a kernel.

    >>> pallas = lamina.experimental.pallas
    >>> def size(out_ref):
    ...     out_ref[...] = pallas.num_programs(0)
    >>> print(pallas.pallas_call(size, lamina.ShapeDtypeStruct((), "int32"), grid=3)())
    3
    """
    return _current("num_programs", axis)[1][axis]
