"""Lower `stablehlo.scatter` to loops that update one element after another.

One iteration for each index vector: its window is dropped whole when any part of it lies outside
the operand; otherwise every element of the window is replaced by the update computation's value, in
row-major order of the updates, so that duplicates have one defined result. All variants are
covered: several operands, batching dimensions, any index type, any update computation. The operand
is copied first unless it is the argument of a function that marks it `lamina.inout` or a value
nothing else uses: then only the windows are touched.

Many updates are done in parts of the operand, each a task that stays in cache and walks all index
vectors: an element still gets its updates in their order, so results depend on no thread.

example: test/passes/stablehlo/lower/lower_scatter.mlir
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lamina.dialects.attributes import INOUT, flag
from lamina.dialects.vendors import arith, ir, scf, stablehlo_ext, tensor
from lamina.passes.emit.loops import (
    extract,
    for_each,
    if_else,
    index,
    inline_scalar_region,
    insert,
    parallel_loop,
    replace_each,
)
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.linalg.analysis.structure import make_copy
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.passes.stablehlo.lower.scatter_copies import (
    ScatterCopies,
    combined,
    with_signed_elements,
)
from lamina.records import Record

_LEAST_UPDATES = REFERENCE.parallel_ns * 1000 // (REFERENCE.apart_ps + REFERENCE.access_ps)  # worth tasks
_PARTS = 2  # for single elements: each part looks at all index vectors
_MOST_PARTS = 8  # shape
_WINDOW_OF_PART = 64  # elements: less than that takes as long as to look, and to guess wrongly
_SPARE = 64  # elements that updates of other parts are pretended to be done on


class _Part(Record):
    """Positions of one dimension, from `low` on, that a task has to itself."""

    dimension: int
    low: ir.Value
    size: int | ir.Value  # the last one may be smaller: then it varies
    least: int  # the smallest size of a part


class LowerScatter(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        self.count(
            "lowered", replace_each(module, "stablehlo.scatter", lambda op: Scatter(op).lower())
        )


class Scatter:
    """One scatter: its operands, and which dimension is what."""

    def __init__(self, op: ir.Operation) -> None:
        count = len(op.results)
        self._op = op
        self.inputs = list(op.operands)[:count]
        self.indices = op.operands[count]
        self.updates = list(op.operands)[count + 1 :]
        numbers = stablehlo_ext.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        self.window_dims = list(numbers.update_window_dims)
        self.batching = dict(
            zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        )
        skipped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
        self.operand_window_dims = [d for d in range(_rank(self.inputs[0])) if d not in skipped]
        self.index_targets = list(numbers.scattered_dims_to_operand_dims)
        self.vector_dim = numbers.index_vector_dim

    def lower(self) -> list[ir.Value]:
        copies = ScatterCopies.of(self._op)
        if copies is not None:
            return [copies.lower()]
        self.indices = with_signed_elements(self.indices)
        results = [_own(operand, self._op) for operand in self.inputs]
        parts = self._parts()
        if parts is None:
            return self._walk(results, None)
        dimension, size, count = parts
        extent = _shape(self.inputs[0])[dimension]
        forall = parallel_loop([0], [count], [1], 1, results)
        with ir.InsertionPoint(forall.body):
            low = arith.MulIOp(forall.induction_variables[0], index(size)).result
            left = arith.SubIOp(index(extent), low).result
            width = size if extent % size == 0 else arith.MinUIOp(left, index(size)).result
            part = _Part(dimension, low, width, extent - (count - 1) * size)
            wholes = list(forall.inner_iter_args)
            done = self._walk([_slice(whole, part) for whole in wholes], part)
            with ir.InsertionPoint(scf.InParallelOp().block):
                for value, whole in zip(done, wholes, strict=True):
                    _put_back(value, whole, part)
        return list(forall.results)

    def _parts(self) -> tuple[int, int, int] | None:
        """A dimension that windows do not extend along, in parts of a size, and how many these
        are; None where all is one task."""
        window = math.prod(self._window())
        if math.prod(_shape(self.updates[0])) < _LEAST_UPDATES:
            return None
        if window == 1 and (flag(self._op, "indices_are_sorted") or self._bytes() <= machine_of(self._op).l2_bytes):
            return None
        sizes = dict(zip(self.operand_window_dims, self._window(), strict=True))
        shape = _shape(self.inputs[0])
        candidates = [d for d in self.index_targets if sizes.get(d, 1) == 1 and shape[d] > _SPARE]
        if not candidates:
            return None
        dimension = max(candidates, key=lambda d: shape[d])
        count = _PARTS if window == 1 else min(_MOST_PARTS, window // _WINDOW_OF_PART)
        if count < 2:
            return None
        size = -(-shape[dimension] // count)
        return dimension, size, -(-shape[dimension] // size)

    def _bytes(self) -> int:
        types = [ir.RankedTensorType(x.type) for x in self.inputs]
        return sum(math.prod(t.shape) * element_bytes(t.element_type) for t in types)

    def _window(self) -> list[int]:
        shape = _shape(self.updates[0])
        return [shape[d] for d in self.window_dims]

    def _walk(self, results: list[ir.Value], part: _Part | None) -> list[ir.Value]:
        """All updates one after the other, those of a part of the operand if one is given."""
        shape = _shape(self.updates[0])
        scatter_dims = [d for d in range(len(shape)) if d not in self.window_dims]
        window = self._window()

        def update_window(positions: list[ir.Value], values: list[ir.Value]) -> Sequence[ir.Value]:
            starts = self._starts(positions)
            if part is not None:
                start = starts[part.dimension]
                starts[part.dimension] = arith.SubIOp(start, part.low).result
            fits = self._fits(starts, window, part)
            if part is not None and math.prod(window) == 1 and part.least >= _SPARE:
                assert fits is not None
                return self._update_or_pretend(fits, starts, positions, values, part)

            def write() -> Sequence[ir.Value]:
                return for_each(
                    window,
                    values,
                    lambda offsets, inner: self._update(starts, positions, offsets, inner),
                )

            if fits is None:
                return write()
            return if_else(fits, write, lambda: values, [value.type for value in values])

        return for_each([shape[d] for d in scatter_dims], results, update_window)

    def _update_or_pretend(
        self,
        fits: ir.Value,
        starts: dict[int, ir.Value],
        positions: Sequence[ir.Value],
        values: Sequence[ir.Value],
        part: _Part,
    ) -> list[ir.Value]:
        """Without a branch, which could not be predicted: what does not fit leaves some element as
        it is, in turn others, so that none waits for the one before."""
        spare = arith.AndIOp(positions[-1], index(_SPARE - 1)).result
        placed = {
            d: arith.SelectOp(fits, start, spare if d == part.dimension else index(0)).result
            for d, start in starts.items()
        }
        offsets = [index(0)] * len(self.window_dims)
        return self._update(placed, positions, offsets, values, fits)

    def _starts(self, positions: Sequence[ir.Value]) -> dict[int, ir.Value]:
        """Where the window of one index vector starts in the operand, for the dimensions that have
        a start."""
        starts: dict[int, ir.Value] = {}
        is_scalar = self.vector_dim == _rank(self.indices)
        for component, dimension in enumerate(self.index_targets):
            place = list(positions)
            if not is_scalar:
                place.insert(self.vector_dim, index(component))
            starts[dimension] = arith.IndexCastOp(
                ir.IndexType.get(), extract(self.indices, place)
            ).result
        for dimension, indices_dim in self.batching.items():
            # index vectors run along their own dimension, which positions don't count
            at = indices_dim - (indices_dim > self.vector_dim)
            starts[dimension] = positions[at]
        return starts

    def _fits(
        self, starts: dict[int, ir.Value], window: Sequence[int], part: _Part | None = None
    ) -> ir.Value | None:
        """Whether the whole window lies inside the operand, or its part; None when nothing needs a
        check."""
        sizes = dict(zip(self.operand_window_dims, window, strict=True))
        shape = _shape(self.inputs[0])
        fits = None
        for dimension in self.index_targets:
            if part is not None and dimension == part.dimension:
                size = index(part.size) if isinstance(part.size, int) else part.size
                inside = arith.CmpIOp(arith.CmpIPredicate.ult, starts[dimension], size).result
                fits = inside if fits is None else arith.AndIOp(fits, inside).result
                continue
            # one unsigned comparison: a negative start is a huge number
            last = shape[dimension] - sizes.get(dimension, 1)
            inside = (
                arith.CmpIOp(arith.CmpIPredicate.ule, starts[dimension], index(last)).result
                if last >= 0
                else arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result
            )
            fits = inside if fits is None else arith.AndIOp(fits, inside).result
        return fits

    def _update(
        self,
        starts: dict[int, ir.Value],
        positions: Sequence[ir.Value],
        offsets: Sequence[ir.Value],
        results: Sequence[ir.Value],
        wanted: ir.Value | None = None,
    ) -> list[ir.Value]:
        """Update one element; where `wanted` is false, write it as it is."""
        offset_of = dict(zip(self.operand_window_dims, offsets, strict=True))
        target = []
        for dimension in range(_rank(self.inputs[0])):
            start, offset = starts.get(dimension), offset_of.get(dimension)
            if start is not None and offset is not None:
                target.append(arith.AddIOp(start, offset).result)
            else:
                target.append(
                    start if start is not None else offset if offset is not None else index(0)
                )
        of_window, of_scatter = iter(offsets), iter(positions)
        source = [
            next(of_window) if d in self.window_dims else next(of_scatter)
            for d in range(_rank(self.updates[0]))
        ]
        current = [extract(result, target) for result in results]
        updates = [extract(update, source) for update in self.updates]
        if len(results) == 1:
            values = [combined(self._op, current[0], updates[0])]
        else:
            values = inline_scalar_region(self._op.regions[0].blocks[0], [*current, *updates])
        if wanted is not None:
            values = [
                arith.SelectOp(wanted, new, old).result
                for new, old in zip(values, current, strict=True)
            ]
        return [insert(value, result, target) for value, result in zip(values, results, strict=True)]


def _slice(whole: ir.Value, part: _Part) -> ir.Value:
    """The positions of a part, of a tensor."""
    of = ir.RankedTensorType(whole.type)
    shape, offsets, sizes, dynamic = _slice_of(of, part)
    type_ = ir.RankedTensorType.get(shape, of.element_type)
    return tensor.ExtractSliceOp(
        type_, whole, [part.low], dynamic, [], offsets, sizes, [1] * len(shape)
    ).result


def _put_back(value: ir.Value, whole: ir.Value, part: _Part) -> None:
    shape, offsets, sizes, dynamic = _slice_of(ir.RankedTensorType(whole.type), part)
    tensor.ParallelInsertSliceOp(
        value, whole, [part.low], dynamic, [], offsets, sizes, [1] * len(shape)
    )


def _slice_of(
    of: ir.RankedTensorType, part: _Part
) -> tuple[list[int], list[int], list[int], list[ir.Value]]:
    """Shape, offsets and sizes of a part as MLIR writes them, and the size if it varies."""
    unknown = ir.ShapedType.get_dynamic_size()
    size = part.size if isinstance(part.size, int) else unknown
    shape = [size if d == part.dimension else n for d, n in enumerate(of.shape)]
    anywhere = ir.ShapedType.get_dynamic_stride_or_offset()
    offsets = [anywhere if d == part.dimension else 0 for d in range(len(shape))]
    return shape, offsets, list(shape), [] if isinstance(part.size, int) else [part.size]


def _own(operand: ir.Value, op: ir.Operation) -> ir.Value:
    """The operand as a tensor that may be overwritten."""
    owner = operand.owner
    if isinstance(owner, ir.Block):
        function = owner.owner
        attributes = (
            function.attributes["arg_attrs"] if "arg_attrs" in function.attributes else None
        )
        if attributes and INOUT in ir.DictAttr(attributes[ir.BlockArgument(operand).arg_number]):
            return operand
    elif owner.operation.name != "stablehlo.constant" and len(list(operand.uses)) == 1:
        return operand
    shape = ir.RankedTensorType(operand.type)
    empty = tensor.EmptyOp(list(shape.shape), shape.element_type).result
    return make_copy(operand, empty).result


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


def _rank(value: ir.Value) -> int:
    return ir.RankedTensorType(value.type).rank
