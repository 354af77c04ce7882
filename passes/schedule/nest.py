"""A loop nest of several statements as plain data: what a scheduler knows of the generics of one block.

A statement runs once for each position of its iteration space, which is a box. What it reads and writes is known by
the distance in elements that one step along each of its dimensions goes in a buffer.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

DIMENSIONS = "ijklmnopqrstuvwxyzabcdefgh"
"""What dimensions are called in a schedule's text, in order."""


class Access(NamedTuple):
    """One operand of a statement that is memory."""

    buffer: int
    """Which view it is read or written by."""
    root: int
    """The memory that the view looks at: of views of one root nobody knows whether they overlap."""
    strides: tuple[int, ...]
    """Elements between accesses that follow each other along each dimension."""
    places: tuple[int, ...]
    """For each index of the buffer the dimension that it is, or -1 for another expression."""
    width: int
    """Bytes of an element."""
    bits: int
    """Of an element that is a number; 0 for others."""
    writes: bool
    computed: bool = False
    """Whether an index is computed by the statement."""

    def indices_of(self, dimension: int) -> frozenset[int]:
        """Which indices of the buffer are just this dimension."""
        return _indices_of(self.places, dimension)


class Tile(NamedTuple):
    """A kernel of vectors that does a block of a statement, which is its two innermost loops."""

    outer: int
    inner: int
    blocks: tuple[tuple[int, int], ...]
    """The loops over blocks that suit it: dimensions and steps."""


class Statement(NamedTuple):
    """What is done at each position of a box, and what that takes."""

    extents: tuple[int, ...]
    reductions: tuple[bool, ...]
    accesses: tuple[Access, ...]
    cost: float
    """Nanoseconds of the whole box on one core with vectors, roughly."""
    ops: int = 1
    """Operations at a position."""
    elementary: int = 0
    """Of them, elementary functions, each of many instructions."""
    vectorizes: bool = True
    """Whether each operation is one that vectors have for certain."""
    associative: bool = True
    """Whether what it reduces may be combined in any order."""
    scalar_ops: bool = False
    """Whether an operation, such as a division of integers, takes much longer than others."""
    writes_along_reduction: bool = False
    """Whether an output has an element for each step of a reduction that is done beside it."""
    is_simple: bool = True
    """Whether each operation is one instruction."""
    tile: Tile | None = None

    @property
    def positions(self) -> int:
        return math.prod(self.extents)

    @property
    def parallel(self) -> tuple[int, ...]:
        return tuple(d for d, reduced in enumerate(self.reductions) if not reduced)

    @property
    def reduced(self) -> tuple[int, ...]:
        return tuple(d for d, reduced in enumerate(self.reductions) if reduced)


class Nest(NamedTuple):
    """Statements that follow each other in a block."""

    statements: tuple[Statement, ...]
    barriers: frozenset[int] = frozenset()
    """Numbers of statements before which something else touches memory."""


@functools.lru_cache(1024)
def _indices_of(places: tuple[int, ...], dimension: int) -> frozenset[int]:
    return frozenset(place for place, found in enumerate(places) if found == dimension)
