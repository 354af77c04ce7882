"""Which window reductions are scans: each element combined with all before it, or all after it.

    reduce_window %x, window [n] along an axis of n, padding [n - 1, 0]    each with those before it
    reduce_window %x, window [n] along an axis of n, padding [0, n - 1]    each with those after it

with a combiner of one associative op and its identity as the initial value. One of two operands,

    reduce_window %a, %b, combiner (a0, b0), (a1, b1) -> a0 a1, a1 b0 + b1, initial values 1, 0

whose first result is not read, is the recurrence h[i] = a[i] h[i - 1] + b[i].
"""

from __future__ import annotations

from math import prod

import numpy as np

from lamina.dialects.constants import array_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import CONSTANT, made_by
from lamina.records import Record

_COMBINERS = ("add", "multiply", "maximum", "minimum")
_RECURRENT = frozenset("f16 bf16 f32 f64 complex<f32> complex<f64>".split())
_ELEMENTS = frozenset("f16 bf16 f32 f64 i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64".split())
_LEAST_LENGTH = 32  # rounding: below, a window reduction is as good
RECURRENCE = "recurrence"


class Scan(Record):
    """A scan of rows: element j of row (o, i) lies at (o * length + j) * inner + i.

    `combiner` is the StableHLO op's short name, or RECURRENCE, whose rows are pairs of two operands'
    elements; `element` the element type as MLIR writes it.
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
        combiner = _combiner(op, in_kernel)
        return None if combiner is None else cls._of_window(op, combiner, _ELEMENTS, _LEAST_LENGTH)

    @classmethod
    def recurrence_of(cls, op: ir.Operation, *, in_kernel: bool = False) -> Scan | None:
        """The same of one of two operands, which is a recurrence."""
        if op.name != "stablehlo.reduce_window" or len(op.results) != 2:
            return None
        if any(True for _ in op.results[0].uses) or not _is_recurrence(op, in_kernel):
            return None
        return cls._of_window(op, RECURRENCE, _RECURRENT, 2)

    @classmethod
    def any_of(cls, op: ir.Operation, *, in_kernel: bool = False) -> Scan | None:
        """What a `stablehlo.reduce_window` scans, by one op or as a recurrence."""
        return cls.of(op, in_kernel=in_kernel) or cls.recurrence_of(op, in_kernel=in_kernel)

    @classmethod
    def _of_window(
        cls, op: ir.Operation, combiner: str, elements: frozenset[str], least: int
    ) -> Scan | None:
        type_ = op.operands[0].type
        if not type_.has_static_shape or str(type_.element_type) not in elements:
            return None
        if any(value.type != type_ for value in op.results):
            return None
        shape, attributes = list(type_.shape), op.attributes
        window = list(ir.DenseI64ArrayAttr(attributes["window_dimensions"]))
        axes = [d for d, size in enumerate(window) if size != 1]
        if len(axes) != 1 or 0 in shape or window[axes[0]] != shape[axes[0]]:
            return None
        (axis,) = axes
        length = shape[axis]
        if length < least or not _is_dense(attributes) or "padding" not in attributes:
            return None
        padding = np.array(ir.DenseIntElementsAttr(attributes["padding"])).reshape(-1, 2).tolist()
        low, high = padding.pop(axis)
        if any(map(any, padding)) or (low, high) not in ((length - 1, 0), (0, length - 1)):
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


def _is_recurrence(op: ir.Operation, in_kernel: bool) -> bool:
    """Whether pairs (a0, b0) and (a1, b1) are combined to (a0 a1, a1 b0 + b1)."""
    block = op.regions[0].blocks[0]
    a0, b0, a1, b1 = block.arguments
    returned = block.operations[len(block.operations) - 1].operands
    if len(block.operations) != 4 or not _is(returned[0], "multiply", (a0, a1)):
        return False
    later = [v for v in _operands_of(returned[1], "add") if v != b1]
    if len(later) != 1 or not _is(later[0], "multiply", (a1, b0)):
        return False
    return in_kernel or all(
        constant is not None and bool(array_of(constant) == value)
        for constant, value in zip((made_by(v, CONSTANT) for v in list(op.operands)[2:]), (1, 0), strict=True)
    )


def _operands_of(value: ir.Value, short: str) -> list[ir.Value]:
    """The operands of the op of this name that makes a value; none of another."""
    op = made_by(value, f"stablehlo.{short}")
    return [] if op is None else list(op.operands)


def _is(value: ir.Value, short: str, of: tuple[ir.Value, ir.Value]) -> bool:
    operands = _operands_of(value, short)
    return len(operands) == 2 and set(operands) == set(of)


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
