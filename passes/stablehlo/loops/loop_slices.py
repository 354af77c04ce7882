"""Arrays of which each step of a counted loop reads or writes its own part."""

from __future__ import annotations

from lamina.dialects.attributes import TRIP_COUNT
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import defining, has_one_use, ints, made_by, splat_of
from lamina.passes.stablehlo.analysis.ranges import growth
from lamina.records import Record


class Slice(Record):
    """`array[index]`, where `index` runs over all positions of the array's first dimension."""

    array: ir.Value
    index: ir.Value


class CountedLoop(Record):
    """A `while` whose counter, the first or another argument of its body, runs from 0 by ones."""

    op: ir.Operation
    counter: ir.Value
    steps: int

    @classmethod
    def of(cls, op: ir.Operation) -> CountedLoop | None:
        """The loop, if how often it runs is noted and one of its arguments counts that."""
        if TRIP_COUNT not in op.attributes:
            return None
        steps = ir.IntegerAttr(op.attributes[TRIP_COUNT]).value
        arguments = op.regions[1].blocks[0].arguments
        for number, (argument, initial) in enumerate(zip(arguments, op.operands, strict=True)):
            if not isinstance(argument.type.element_type, ir.IntegerType):
                continue
            if splat_of(initial) == 0 and growth(op, number) == 1:
                return cls(op, argument, steps)
        return None

    @property
    def body(self) -> ir.Block:
        return self.op.regions[1].blocks[0]

    def is_outside(self, value: ir.Value) -> bool:
        """Whether a value used in the body is defined before the loop."""
        if isinstance(value.owner, ir.Block):
            return value.owner not in [region.blocks[0] for region in self.op.regions]
        return value.owner.operation.block != self.body

    def slice_of(self, value: ir.Value) -> Slice | None:
        """What a value in the body is a slice of: one position of an array's first dimension."""
        op = made_by(value, "stablehlo.reshape")
        if op is None:
            return None
        source = made_by(op.operands[0], "stablehlo.dynamic_slice")
        found = None if source is None else self.row_read(source)
        if found is None or list(value.type.shape) != list(found.array.type.shape)[1:]:
            return None
        return found

    def row_read(self, op: ir.Operation) -> Slice | None:
        """What a dynamic_slice in the body reads, if that is one position of an array from outside."""
        array, at, *others = op.operands
        sizes = ints(op, "slice_sizes")
        if not self.is_outside(array) or not self._is_row(array, sizes, at, others):
            return None
        return Slice(array, at)

    def row_written(self, number: int) -> ir.Operation | None:
        """The dynamic_update_slice that is all that the loop does with what it carries at `number`,
        if it writes another position of it each step, and so all of them."""
        carried = self.body.arguments[number]
        value = self.body.operations[len(self.body.operations) - 1].operands[number]
        op = made_by(value, "stablehlo.dynamic_update_slice")
        if op is None or op.operands[0] != carried:
            return None
        if not has_one_use(value) or not has_one_use(carried):
            return None
        if list(self.op.regions[0].blocks[0].arguments[number].uses):
            return None
        _, row, at, *others = op.operands
        return op if self._is_row(carried, list(row.type.shape), at, others) else None

    def _is_row(
        self, array: ir.Value, sizes: list[int], at: ir.Value, others: list[ir.Value]
    ) -> bool:
        shape = list(array.type.shape)
        return (
            sizes == [1, *shape[1:]]
            and shape[0] == self.steps
            and all(splat_of(other) == 0 for other in others)
            and self._runs_over_all(at)
        )

    def _runs_over_all(self, index: ir.Value) -> bool:
        if index == self.counter:
            return True
        op = defining(index)
        if op is None or op.name != "stablehlo.subtract" or op.operands[1] != self.counter:
            return False
        return splat_of(op.operands[0]) == self.steps - 1
