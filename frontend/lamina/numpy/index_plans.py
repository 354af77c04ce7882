"""What x[...] means: an index expression becomes a plan, which is static, and index arrays.

A plan is a tuple of entries in the order of the expression. `NEW` adds an axis; every other entry
takes one axis of the array. Integers and slices known now are in the plan itself; traced ones, and
in eager mode all that move a window of fixed size, are arguments of the program, so that a loop
over x[i] compiles once.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lamina import errors
from lamina.core import dtypes
from lamina.core.library import library
from lamina.core.trace import Tracer, get_aval, is_array_like
from lamina.core.tree import leaves
from lamina.lax import full_like, select
from lamina.lax.checks import position_dtype
from lamina.numpy.creation import asarray
from lamina.numpy.slices import Slice
from lamina.records import Record


class Entry(NamedTuple):
    """One step of an index expression.

    kind    "new"; "slice" (start, size and step known); "int" (start known, in bounds);
            "window" (size known, start an argument, in bounds or moved there); "range" (the same,
            with all of it out of bounds where a part is, which updates drop); "moved" (an integer known to be in
            bounds, an argument); "scalar" and "array" (arguments that may be anything).
    """

    kind: str
    start: int = 0
    size: int = 1
    step: int = 1

    def is_whole(self, n: int) -> bool:
        """Whether a slice takes an axis of size n as it is."""
        return self.kind == "slice" and self.start == 0 and self.size == n and self.step == 1


# The kinds that take one element, or one for each of an index array.
INDEXED = ("moved", "scalar", "array")
ARGUMENTS = (*INDEXED, "window", "range")


class Plan(Record):
    """The static part of an index expression."""

    entries: tuple[Entry, ...]
    expanded: tuple[int, ...] = ()  # positions where the array first gets axes of size 1 (x[True])
    # NumPy's rule for index arrays: their axes stand where they are if they are neighbours, else in
    # front. An ellipsis separates, even one that stands for no axis.
    front: bool = False

    @property
    def has_arrays(self) -> bool:
        return any(e.kind == "array" for e in self.entries)


# Positions are passed as int32; an axis that is longer is indexed by constants.
_MOST_MOVABLE = 2**31 - 1


class OutOfBounds(Exception):
    """A static index lies outside its axis, and the mode has a meaning for that."""


def with_arrays(index: Any, *, reads: bool = True) -> Any:
    """An index expression with the lists in it as arrays. Where it `reads`, `ds` of what is known is
    a slice; an update of which a part is out of bounds is dropped.

    Raises TypeError for one that is a list.
    """
    if isinstance(index, Slice):
        return (index.static() if reads or index.stride != 1 else None) or index
    if isinstance(index, list):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use "
            "`arr[array(seq)]` instead of `arr[seq]`."
        )
    if not isinstance(index, tuple) or not any(isinstance(i, (list, tuple, Slice)) for i in index):
        return index
    items = (with_arrays(i, reads=reads) if isinstance(i, Slice) else i for i in index)
    return tuple(_array_of(i) if isinstance(i, (list, tuple)) else i for i in items)


def _array_of(items: Sequence[Any]) -> Any:
    traced = any(isinstance(leaf, Tracer) for leaf in leaves(items))
    values = asarray(items) if traced else np.asarray(items)
    return values.astype(np.int32) if not values.size and not traced else values


def make_plan(
    index: Any, shape: tuple[int, ...], *, clamp: bool, movable: bool, reads: bool = True
) -> tuple[Plan, list[Any]]:
    """The plan and index arrays for index on an array of this shape.

    clamp     static integers out of bounds move to the nearest in bounds; without it they raise
              OutOfBounds.
    movable   static integers and slices of step 1 become arguments.
    reads     an axis of size 0 has nothing for index arrays; updates leave it as it is.
    Raises IndexError or TypeError for index expressions that lamina has not.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    items, expanded = _expand_masks(items, shape)
    shape = _with_ones(shape, expanded)
    front = _separated(items)
    items = _expand_ellipsis(items, len(shape))
    entries: list[Entry] = []
    arrays: list[Any] = []
    axis = 0
    for position, item in enumerate(items):
        if item is None:
            entries.append(Entry("new"))
            continue
        entry, argument = _entry(item, shape[axis], axis, position, clamp, reads)
        moves = movable and shape[axis] <= _MOST_MOVABLE
        if moves and entry.kind == "int":
            entry, argument = Entry("moved"), np.int32(entry.start)
        elif moves and entry.kind == "slice" and entry.step == 1 and entry.size != shape[axis]:
            entry, argument = Entry("window", size=entry.size), np.int32(entry.start)
        entries.append(entry)
        if argument is not None:
            arrays.append(argument)
        axis += 1
    if any(e.kind == "array" for e in entries):
        # Among index arrays an integer is an index array too (NumPy's rule for where axes go).
        mixed, given = [], iter(arrays)
        arrays = []
        for e in entries:
            if e.kind == "int":
                arrays.append(position_dtype(e.start).type(e.start))
                e = Entry("moved")
            elif e.kind in ARGUMENTS:
                arrays.append(next(given))
            mixed.append(e)
        entries = mixed
    return Plan(tuple(entries), expanded, front), arrays


def _separated(items: list[Any]) -> bool:
    at = [
        k for k, i in enumerate(items)
        if not (i is None or i is Ellipsis or isinstance(i, (slice, Slice)))
    ]
    return bool(at) and at[-1] - at[0] + 1 != len(at)


def _with_ones(shape: tuple[int, ...], positions: tuple[int, ...]) -> tuple[int, ...]:
    out = list(shape)
    for p in positions:
        out.insert(p, 1)
    return tuple(out)


# ---- booleans and the ellipsis -----------------------------------------------------------------
def _is_boolean(item: Any) -> bool:
    if isinstance(item, (bool, np.bool_)):
        return True
    return hasattr(item, "dtype") and hasattr(item, "shape") and item.dtype == np.bool_


def axes_taken(item: Any) -> int:
    """How many axes of the array an item takes."""
    if item is None or item is Ellipsis:
        return 0
    return len(getattr(item, "shape", ())) if _is_boolean(item) else 1


def _expand_masks(items: list[Any], shape: tuple[int, ...]) -> tuple[list[Any], tuple[int, ...]]:
    """Boolean masks as the integer arrays of where they hold. A scalar mask takes no axis: the
    array gets one of size 1 for it, from which 1 or 0 elements are taken."""
    total = sum(map(axes_taken, items))
    if sum(i is Ellipsis for i in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if total > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {total} were indexed"
        )
    if not any(map(_is_boolean, items)):
        return items, ()
    out: list[Any] = []
    expanded: list[int] = []
    axis = 0
    for position, item in enumerate(items):
        if item is Ellipsis:
            axis += len(shape) - total
            out.append(item)
            continue
        if not _is_boolean(item):
            axis += axes_taken(item)
            out.append(item)
            continue
        mask = _concrete_mask(item)
        if mask.ndim == 0:
            expanded.append(axis + len(expanded))
            out.append(np.zeros(1 if mask else 0, np.int32))
            continue
        expected = shape[axis : axis + mask.ndim]
        if mask.shape != expected and any(
            m not in (n, 0) for m, n in zip(mask.shape, expected, strict=True)
        ):
            raise IndexError(
                f"boolean index did not match shape of indexed array in index {position}: got "
                f"{mask.shape}, expected {list(expected)}"
            )
        out += [i.astype(position_dtype(mask.size)) for i in mask.nonzero()]
        axis += mask.ndim
    return out, tuple(expanded)


def _concrete_mask(mask: Any) -> np.ndarray:
    if isinstance(mask, Tracer):
        value = mask.concrete()
        if value is None:
            raise errors.NonConcreteBooleanIndexError(mask)
        mask = value
    return np.asarray(mask)


def _expand_ellipsis(items: list[Any], ndim: int) -> list[Any]:
    missing = ndim - sum(i is not None and i is not Ellipsis for i in items)
    at = next((k for k, i in enumerate(items) if i is Ellipsis), None)
    if at is None:
        return [*items, *[slice(None)] * missing]
    return [*items[:at], *[slice(None)] * missing, *items[at + 1 :]]


# ---- entries -----------------------------------------------------------------------------------
def _entry(item: Any, n: int, axis: int, position: int, clamp: bool,
           reads: bool) -> tuple[Entry, Any]:  # fmt: skip
    if isinstance(item, slice):
        return _slice_entry(item, n, position), None
    if isinstance(item, Slice):
        return _moving_entry(item, n, axis, clamp, reads)
    if isinstance(item, (int, np.integer)):
        return _int_entry(int(item), n, axis, clamp, reads)
    if isinstance(item, (str, bytes)):
        raise TypeError(f"{library.name} does not support string indexing; got idx={item!r}")
    if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
        return _int_entry(int(item), n, axis, clamp, reads)
    if not is_array_like(item):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean "
            f"arrays are valid indices. Got {item!r}"
        )
    aval = get_aval(item)
    if not dtypes.is_integer(aval.dtype):
        name = getattr(getattr(item, "dtype", None), "name", None) or np.asarray(item).dtype.name
        shown = "" if aval.shape else f": {item!r}"
        raise TypeError(
            f"Indexer must have integer or boolean type, got indexer with type {name} for axis {axis}"
            f"{shown}. Convert it by int() or .astype(int)."
        )
    if n == 0 and not aval.shape:
        raise IndexError(f"index is out of bounds for axis {axis} with size 0")
    if n == 0 and aval.size and reads:
        raise TypeError(
            f"an array of {aval.size} indices reads axis {axis} of size 0, which has no elements"
        )
    return Entry("array" if aval.shape else "scalar"), item


def _int_entry(i: int, n: int, axis: int, clamp: bool, reads: bool) -> tuple[Entry, Any]:
    if n == 0:
        raise IndexError(f"index is out of bounds for axis {axis} with size 0")
    wrapped = i + n if i < 0 else i
    if 0 <= wrapped < n:
        return Entry("int", wrapped), None
    if not clamp:
        raise OutOfBounds
    if reads:  # the operation moves it into bounds, where checkify looks at it
        return Entry("scalar"), np.int32(max(min(i, 2**31 - 1), -(2**31)))
    return Entry("int", 0 if wrapped < 0 else n - 1), None


def _moving_entry(
    s: Slice, n: int, axis: int, clamp: bool, reads: bool
) -> tuple[Entry, Any]:
    """A slice at a traced position; one that is written and may be dropped is a range."""
    start = asarray(s.start)
    if s.is_dynamic_size or start.shape or not dtypes.is_integer(start.dtype) or s.stride != 1:
        raise IndexError(
            f"ds at a traced position takes an integer, a static size and stride 1; got {s} for axis "
            f"{axis}. Give ds(start, size * stride)[::stride], or an index array, for other strides."
        )
    size = operator.index(s.size)
    if size > n:
        raise IndexError(f"ds of size {size} does not fit axis {axis} of size {n}")
    if reads or clamp:  # only what is read counts from the end where it is negative
        return Entry("window", size=size), start if reads else start.clip(0)
    fits = (start >= 0) & (start <= n - size)
    return Entry("range", size=size), select(fits, start, full_like(start, n))


def _slice_entry(s: slice, n: int, position: int) -> Entry:
    bounds: list[int | None] = []
    for part in (s.start, s.stop, s.step):
        if part is None:
            bounds.append(None)
            continue
        if isinstance(part, Tracer) and part.concrete() is not None:
            part = part.concrete()
        try:
            if isinstance(part, Tracer):
                raise TypeError
            bounds.append(operator.index(part))
        except TypeError:
            if not isinstance(part, Tracer):
                raise
            raise IndexError(
                f"Slice entries must be static integers. Got {s} at position {position}. To take a "
                f"slice of static size at a traced position, use {library}.lax.dynamic_slice."
                f"{errors.origin_of((part,))}"
            ) from None
    start, stop, step = slice(*bounds).indices(n)
    size = len(range(start, stop, step))
    return Entry("slice", start if size else 0, size, step if size > 1 else 1)
