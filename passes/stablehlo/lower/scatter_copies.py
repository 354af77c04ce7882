"""Scatters of many updates into few elements: tasks with copies of the elements to themselves.

A histogram, or the sums of many segments, changes the same few elements over and over: each update
waits for the one before it of the same element, and no part of the elements is work for a task. Here
each task takes its share of the updates, in turn into some copies of the elements, which begin as what
changes nothing; then all copies are combined, in their order. How many there are depends on sizes
only, so that results depend on no thread. Floats are added in another order than one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.attributes import flag
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import arith, ir, scf, stablehlo_ext, tensor
from lamina.passes.emit.loops import (
    extract,
    for_range,
    if_else,
    index,
    inline_scalar_region,
    insert,
    parallel_loop,
)
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.stablehlo.analysis.facts import reducer_of, splat_of
from lamina.passes.stablehlo.analysis.scan_order import identity
from lamina.records import Record

_COMBINERS = {
    "stablehlo.add": hlo.add,
    "stablehlo.multiply": hlo.multiply,
    "stablehlo.maximum": hlo.maximum,
    "stablehlo.minimum": hlo.minimum,
}
_EXTREMES = {"stablehlo.maximum": "arith.maximumf", "stablehlo.minimum": "arith.minimumf"}
_ELEMENTS = "f64 f32 f16 bf16 i64 i32 i16 i8 ui64 ui32 ui16 ui8".split()
_LEAST_UPDATES = 1 << 15  # rounding: each task adds up some
_MOST_TASKS = 8  # rounding
_COPIES = (4, 2, 1)  # of a task: as many updates of one element wait for nobody
_CACHE_BYTES = REFERENCE.l1_bytes * 2 // 3  # of these
_MOST_BYTES = REFERENCE.l2_bytes // 8  # of all tasks' copies: memory that only they need
_LEAST_RATIO = 4  # rounding: updates to elements of all copies


class ScatterCopies(Record):
    """A scatter of single elements by a combiner that may take updates in any order."""

    op: ir.Operation
    combiner: str
    targets: Sequence[int]
    tasks: int
    copies: int

    @classmethod
    def of(cls, op: ir.Operation) -> ScatterCopies | None:
        """How to do a scatter so; None where it is of another kind, or does not pay."""
        if len(op.results) != 1 or reducer_of(op) not in _COMBINERS or flag(op, "unique_indices"):
            return None
        operand, indices, updates = (value.type for value in op.operands)
        numbers = stablehlo_ext.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        targets = list(numbers.scattered_dims_to_operand_dims)
        if (
            list(numbers.update_window_dims)
            or list(numbers.input_batching_dims)
            or sorted(targets) != list(range(operand.rank))
            or numbers.index_vector_dim < indices.rank - 1
            or str(operand.element_type) not in _ELEMENTS
        ):
            return None
        elements, count = math.prod(operand.shape), math.prod(updates.shape)
        if elements == 0 or count < _LEAST_UPDATES:
            return None
        for copies in _COPIES:
            tasks = min(_MOST_TASKS, count // (_LEAST_RATIO * copies * elements))
            size = copies * elements * element_bytes(operand.element_type)
            if tasks > 1 and size <= _CACHE_BYTES and tasks * size < _MOST_BYTES:
                return cls(op, str(reducer_of(op)), targets, tasks, copies)
        return None

    def lower(self) -> ir.Value:
        """The elements with all updates, at the ambient insertion point."""
        operand, indices, updates = self.op.operands
        count, combine = math.prod(updates.type.shape), _COMBINERS[self.combiner]
        indices = with_signed_elements(_shaped(indices, [count, len(self.targets)]))
        updates = _shaped(updates, [count])
        dtype = dtype_of(operand.type)
        nothing = hlo.constant(_nothing(self.combiner, dtype))
        shape = [self.tasks, self.copies, *operand.type.shape]
        forall = parallel_loop(
            [0], [self.tasks], [1], 1, [hlo.broadcast_in_dim(nothing, shape, [])]
        )
        with ir.InsertionPoint(forall.body):
            whole, task = forall.inner_iter_args[0], forall.induction_variables[0]
            share = -(-count // self.tasks)
            low = arith.MulIOp(task, index(share)).result
            high = arith.MinUIOp(arith.AddIOp(low, index(share)).result, index(count)).result
            place = _Task(shape, task)
            (done,) = for_range(
                low, high, [place.slice(whole)],
                lambda at, own: self._update(at, own[0], indices, updates),
            )  # fmt: skip
            with ir.InsertionPoint(scf.InParallelOp().block):
                place.put_back(done, whole)
        (total,) = hlo.reduce(
            [forall.results[0]], [nothing], [0, 1], lambda a, b: [combine(a, b)]
        )
        return combine(operand, total)

    def _update(
        self, at: ir.Value, own: ir.Value, indices: ir.Value, updates: ir.Value
    ) -> Sequence[ir.Value]:
        """One update, of a task's copy whose turn it is; none where it lies outside."""
        shape = ir.RankedTensorType(own.type).shape
        place = [arith.AndIOp(at, index(self.copies - 1)).result, *[at] * (len(shape) - 1)]
        fits = None
        for component, dimension in enumerate(self.targets):
            found = extract(indices, [at, index(component)])
            start = arith.IndexCastOp(ir.IndexType.get(), found).result
            place[1 + dimension] = start
            size = index(shape[1 + dimension])
            # one unsigned comparison: a negative start is a huge number
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, start, size).result
            fits = inside if fits is None else arith.AndIOp(fits, inside).result

        def write() -> list[ir.Value]:
            new = combined(self.op, extract(own, place), extract(updates, [at]))
            return [insert(new, own, place)]

        assert fits is not None
        return if_else(fits, write, lambda: [own], [own.type])


class _Task(Record):
    """The copies of one task: all elements at a place of the first dimension."""

    shape: Sequence[int]
    at: ir.Value

    def _numbers(self) -> tuple[list[int], list[int], list[int]]:
        anywhere = ir.ShapedType.get_dynamic_stride_or_offset()
        others = [0] * (len(self.shape) - 1)
        return [anywhere, *others], [1, *self.shape[1:]], [1] * len(self.shape)

    def slice(self, whole: ir.Value) -> ir.Value:
        element = ir.RankedTensorType(whole.type).element_type
        own = ir.RankedTensorType.get(list(self.shape[1:]), element)
        return tensor.ExtractSliceOp(own, whole, [self.at], [], [], *self._numbers()).result

    def put_back(self, own: ir.Value, whole: ir.Value) -> None:
        tensor.ParallelInsertSliceOp(own, whole, [self.at], [], [], *self._numbers())


def _nothing(combiner: str, dtype: np.dtype) -> np.ndarray:
    """What changes nothing; of a sum of floats -0: it leaves the sign of zeros."""
    value = identity(combiner.removeprefix("stablehlo."), dtype)
    return -value if combiner == "stablehlo.add" and dtype.kind not in "iu" else value


def with_signed_elements(indices: ir.Value) -> ir.Value:
    """Index vectors in a type whose sign extension is their value; those too big for i64 become
    negative."""
    type_ = ir.RankedTensorType(indices.type)
    if not ir.IntegerType(type_.element_type).is_unsigned:
        return indices
    wide = ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(64))
    return ir.Operation.create("stablehlo.convert", results=[wide], operands=[indices]).result


def combined(op: ir.Operation, now: ir.Value, update: ir.Value) -> ir.Value:
    """What a scatter of one operand makes of an element. Extremes of floats are free to choose between
    zeros, as in reductions: they take a third of the time."""
    extreme = _EXTREMES.get(reducer_of(op) or "")
    if extreme is None or not isinstance(now.type, ir.FloatType):
        return inline_scalar_region(op.regions[0].blocks[0], [now, update])[0]
    free = {"fastmath": ir.Attribute.parse("#arith.fastmath<nsz>")}
    return ir.Operation.create(extreme, [now.type], [now, update], free).result


def _shaped(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A value in another shape; what is computed element by element stays so."""
    if list(value.type.shape) == list(shape):
        return value
    splat = splat_of(value)
    if splat is not None:
        return hlo.full(splat, shape, dtype_of(value.type))
    return hlo.reshape(value, shape)
