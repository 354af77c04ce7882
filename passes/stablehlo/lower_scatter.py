"""Lower `stablehlo.scatter` to loops that update one element after another.

One iteration for each index vector: its window is dropped whole when any part of it lies outside
the operand; otherwise every element of the window is replaced by the update computation's value, in
row-major order of the updates, so that duplicates have one defined result. All variants are
covered: several operands, batching dimensions, any index type, any update computation. The operand
is copied first unless it is the argument of a function that marks it `lamina.inout` or a value
nothing else uses: then only the windows are touched.

example: test/passes/stablehlo/lower_scatter.mlir
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lamina.dialects.vendors import arith, ir, linalg, stablehlo_ext, tensor
from lamina.passes.base import Pass
from lamina.passes.loops import (
    extract,
    for_each,
    if_else,
    index,
    inline_scalar_region,
    insert,
    replace_each,
)

INOUT = "lamina.inout"


@dataclass(frozen=True)
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
        shape = _shape(self.updates[0])
        scatter_dims = [d for d in range(len(shape)) if d not in self.window_dims]
        window = [shape[d] for d in self.window_dims]
        self.indices = _with_signed_elements(self.indices)
        results = [_own(operand, self._op) for operand in self.inputs]

        def update_window(positions: list[ir.Value], values: list[ir.Value]) -> Sequence[ir.Value]:
            starts = self._starts(positions)

            def write() -> Sequence[ir.Value]:
                return for_each(
                    window,
                    values,
                    lambda offsets, inner: self._update(starts, positions, offsets, inner),
                )

            fits = self._fits(starts, window)
            if fits is None:
                return write()
            return if_else(fits, write, lambda: values, [value.type for value in values])

        return for_each([shape[d] for d in scatter_dims], results, update_window)

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

    def _fits(self, starts: dict[int, ir.Value], window: Sequence[int]) -> ir.Value | None:
        """Whether the whole window lies inside the operand; None when nothing needs a check."""
        sizes = dict(zip(self.operand_window_dims, window, strict=True))
        shape = _shape(self.inputs[0])
        fits = None
        for dimension in self.index_targets:
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
    ) -> list[ir.Value]:
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
        combined = inline_scalar_region(self._op.regions[0].blocks[0], [*current, *updates])
        return [
            insert(value, result, target) for value, result in zip(combined, results, strict=True)
        ]


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
    return linalg.copy(operand, outs=[empty])


def _with_signed_elements(indices: ir.Value) -> ir.Value:
    """Index vectors in a type whose sign extension is their value; those too big for i64 become
    negative."""
    type_ = ir.RankedTensorType(indices.type)
    if not ir.IntegerType(type_.element_type).is_unsigned:
        return indices
    wide = ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(64))
    return ir.Operation.create("stablehlo.convert", results=[wide], operands=[indices]).result


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


def _rank(value: ir.Value) -> int:
    return ir.RankedTensorType(value.type).rank
