"""Which window reductions are scans: each element combined with all before it, or all after it.

    reduce_window %x, window [n] along an axis of n, padding [n - 1, 0]    each with those before it
    reduce_window %x, window [n] along an axis of n, padding [0, n - 1]    each with those after it

with a combiner of one associative op and its identity as the initial value.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from lamina.dialects.constants import array_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.facts import CONSTANT, made_by

_COMBINERS = ("add", "multiply", "maximum", "minimum")
_ELEMENTS = frozenset("f16 bf16 f32 f64 i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64".split())
_LEAST_LENGTH = 32  # below, a window reduction is as good


@dataclass(frozen=True)
class Scan:
    """A scan of rows: element j of row (o, i) lies at (o * length + j) * inner + i.

    `combiner` is the StableHLO op's short name, `element` the element type as MLIR writes it.
    """

    outer: int
    length: int
    inner: int
    combiner: str
    element: str
    reverse: bool

    @classmethod
    def of(cls, op: ir.Operation, *, in_kernel: bool = False) -> Scan | None:
        """What a `stablehlo.reduce_window` scans; None if it is no scan, or a short one.

        `in_kernel`: it was found to be one, and its initial value is now an argument.
        """
        if op.name != "stablehlo.reduce_window" or len(op.results) != 1:
            return None
        type_ = op.operands[0].type
        if not type_.has_static_shape or str(type_.element_type) not in _ELEMENTS:
            return None
        shape, attributes = list(type_.shape), op.attributes
        window = list(ir.DenseI64ArrayAttr(attributes["window_dimensions"]))
        axes = [d for d, size in enumerate(window) if size != 1]
        if len(axes) != 1 or 0 in shape or window[axes[0]] != shape[axes[0]]:
            return None
        (axis,) = axes
        length = shape[axis]
        if length < _LEAST_LENGTH or not _is_dense(attributes):
            return None
        if "padding" not in attributes:
            return None
        padding = np.array(ir.DenseIntElementsAttr(attributes["padding"])).reshape(-1, 2).tolist()
        combiner = _combiner(op, in_kernel)
        low, high = padding.pop(axis)
        if combiner is None or any(map(any, padding)):
            return None
        if (low, high) not in ((length - 1, 0), (0, length - 1)):
            return None
        element = str(type_.element_type)
        return cls(
            prod(shape[:axis]), length, prod(shape[axis + 1 :]), combiner, element, low == 0
        )


def _is_dense(attributes: ir.OpAttributeMap) -> bool:
    names = ("window_strides", "base_dilations", "window_dilations")
    return all(
        set(ir.DenseI64ArrayAttr(attributes[name])) <= {1} for name in names if name in attributes
    )


def _combiner(op: ir.Operation, in_kernel: bool) -> str | None:
    """The one op of the region, if the initial value changes nothing under it."""
    block = op.regions[0].blocks[0]
    operations = [inner.operation for inner in block.operations]
    if len(operations) != 2 or set(operations[0].operands) != set(block.arguments):
        return None
    short = operations[0].name.removeprefix("stablehlo.")
    if short not in _COMBINERS or operations[1].operands[0] != operations[0].results[0]:
        return None
    constant = made_by(op.operands[1], CONSTANT)
    if in_kernel:
        return short
    if constant is None:
        return None
    value = array_of(constant)
    return short if value == identity(short, value.dtype) else None


def identity(combiner: str, dtype: np.dtype) -> np.ndarray:
    """What a combiner leaves other values as they are with."""
    if combiner in ("add", "multiply"):
        return np.array(0 if combiner == "add" else 1, dtype)
    is_max = combiner == "maximum"
    if dtype.kind == "b":
        return np.array(not is_max)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array(limits.min if is_max else limits.max, dtype)
    return np.array(-np.inf if is_max else np.inf, dtype)
