"""What gather and scatter share: dimension numbers, modes for indices out of bounds."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lamina.core import ShapedArray, dtypes
from lamina.lax import hlo
from lamina.lax.batching_rules import past


class GatherDimensionNumbers(NamedTuple):
    """Which axis of a gather means what.

    offset_dims               axes of the result that run within a slice.
    collapsed_slice_dims      operand axes whose slices have size 1 and are dropped.
    start_index_map           the operand axis that each component of an index is for.
    operand_batching_dims     operand axes that go along with
    start_indices_batching_dims   these axes of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which axis of a scatter means what; the mirror of GatherDimensionNumbers.

    update_window_dims            axes of the updates that run within a window.
    inserted_window_dims          operand axes that windows lack, having size 1 there.
    scatter_dims_to_operand_dims  the operand axis that each component of an index is for.
    operand_batching_dims         operand axes that go along with
    scatter_indices_batching_dims these axes of the indices.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class GatherScatterMode(enum.Enum):
    """What happens to indices out of bounds.

    CLIP                moved to the nearest index in bounds.
    FILL_OR_DROP        gathers give a fill value, scatters leave the operand.
    PROMISE_IN_BOUNDS   the caller knows that there are none.
    ONE_HOT             gathers give zeros, as products with one-hot vectors do; scatters leave the
                        operand.
    """

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2
    ONE_HOT = 3

    def __repr__(self) -> str:
        return f"GatherScatterMode.{self.name}"

    __str__ = __repr__

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode that a user named; None is FILL_OR_DROP."""
        if isinstance(mode, GatherScatterMode):
            return mode
        found = _MODES.get(mode)
        if found is None:
            raise ValueError(
                f"Unknown gather mode {mode!r}: expected clip, fill, drop, promise_in_bounds or one_hot"
            )
        return found


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP, "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP, "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}  # fmt: skip


def canonical_numbers(numbers: Any) -> Any:
    """Dimension numbers with tuples of ints in every field."""
    return type(numbers)(*(tuple(int(d) for d in field) for field in numbers))


def check_numbers(name: str, numbers: Any, operand: ShapedArray, indices: ShapedArray) -> None:
    """Checks what gather and scatter demand alike of their dimension numbers and indices."""
    _, dropped, index_map, batching, index_batching = numbers
    rank = len(operand.shape)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"[{name}] indices must be integers, got {indices.str_short()}")
    if not indices.shape:
        raise TypeError(
            f"[{name}] indices need a last axis that holds the components of each index"
        )
    if indices.shape[-1] != len(index_map):
        raise TypeError(
            f"[{name}] the last axis of indices {indices.str_short()} must be as long as "
            f"{numbers._fields[2]}={index_map}"
        )
    for field, value in zip(numbers._fields[1:4], (dropped, index_map, batching)):
        if len(set(value)) != len(value) or any(not 0 <= d < rank for d in value):
            raise TypeError(f"[{name}] {field}={value} are not distinct axes of "
                            f"{operand.str_short()}")  # fmt: skip
    for field, value in ((numbers._fields[1], dropped), (numbers._fields[3], batching)):
        if list(value) != sorted(value):
            raise TypeError(f"[{name}] {field}={value} must be sorted")
    if set(batching) & (set(dropped) | set(index_map)):
        raise TypeError(
            f"[{name}] operand_batching_dims={batching} must be apart from "
            f"{numbers._fields[1]}={dropped} and {numbers._fields[2]}={index_map}"
        )
    sizes = [operand.shape[d] for d in batching]
    if len(batching) != len(index_batching) or sizes != [indices.shape[d] for d in index_batching]:
        raise TypeError(
            f"[{name}] operand_batching_dims={batching} of {operand.str_short()} and "
            f"{numbers._fields[4]}={index_batching} of {indices.str_short()} must agree in size"
        )


def index_limits(operand: Sequence[int], window: Sequence[int], index_map: Sequence[int],
                 dtype: np.dtype) -> np.ndarray:  # fmt: skip
    """The greatest index in bounds for each component, as far as the index dtype reaches."""
    greatest = int(dtypes.iinfo(dtype).max)
    return np.array([min(operand[d] - window[d], greatest) for d in index_map], dtype)


def spread_limits(limits: np.ndarray, shape: Sequence[int]) -> Any:
    """The limits as an IR value of the indices' shape."""
    return hlo.broadcast_in_dim(hlo.constant(limits), shape, [len(shape) - 1])


def batch_operand(numbers: Any) -> Any:
    """Dimension numbers where operand (and window) have a further leading axis, taken whole."""
    windows, dropped, index_map, batching, index_batching = numbers
    return type(numbers)(
        (0, *past(0, windows)), past(0, dropped), past(0, index_map), past(0, batching),
        index_batching,
    )  # fmt: skip


def batch_indices(numbers: Any) -> Any:
    """Dimension numbers where the indices have a further leading axis, the operand has not."""
    return numbers._replace(
        **{numbers._fields[0]: past(0, numbers[0]), numbers._fields[4]: past(0, numbers[4])}
    )


def batch_both(numbers: Any) -> Any:
    """Dimension numbers where operand and indices go together along a further leading axis."""
    windows, dropped, index_map, batching, index_batching = (past(0, field) for field in numbers)
    return type(numbers)(windows, dropped, index_map, (0, *batching), (0, *index_batching))
