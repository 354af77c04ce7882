"""The element-wise op that makes a factor of a contraction, done for a part of it at a time."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.dialects.vendors import ir
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.parallel import total_cost
from lamina.passes.linalg.analysis.structure import (
    Generic,
    clone_on,
    is_generic_on_buffers,
    is_temporary,
    part_of,
    places_of,
    read_generic,
)
from lamina.passes.linalg.schedule.tileable import can_be_done_in_parts
from lamina.records import Record


class Prologue(Record):
    """A generic that makes a contraction's factor element by element, for nobody else."""

    generic: Generic
    factor: Factor
    dimensions: Mapping[int, int]
    """Its dimensions by the contraction's."""

    @property
    def cost(self) -> float:
        """Nanoseconds of all of it."""
        return total_cost(self.generic)

    def emit(
        self, panel: ir.Value, at: Mapping[int, ir.Value], sizes: Mapping[int, int]
    ) -> None:
        """Make the part of the factor at a place (by the contraction's dimensions) that has these sizes,
        and is whole along the others, in `panel`, which has the sizes of that part."""
        generic = self.generic
        place = {own: at[of] for of, own in self.dimensions.items() if of in at}
        size = {own: sizes[of] for of, own in self.dimensions.items() if of in sizes}
        inputs = [
            part_of(value, map_, place, size)
            for value, map_ in zip(generic.inputs, generic.input_maps, strict=True)
        ]
        clone_on(generic.op, [*inputs, panel])


def find_prologue(contraction: ir.Operation, factor: Factor) -> Prologue | None:
    """The op that makes a factor of a contraction, if its parts can be made where they are needed."""
    buffer = factor.buffer
    if not is_temporary(buffer):
        return None
    makers = {use.owner.operation for use in buffer.uses} - {contraction}
    if len(makers) != 1 or len(list(buffer.uses)) != 2:
        return None
    (op,) = makers
    if not is_generic_on_buffers(op) or op.block != contraction.block:
        return None
    generic = read_generic(op)
    if list(generic.outputs) != [buffer] or list(generic.body.arguments[-1].uses):
        return None
    if not can_be_done_in_parts(generic):
        return None
    theirs, own = places_of(factor.map), places_of(generic.output_maps[0])
    if -1 in theirs or sorted(own) != list(range(generic.rank)):
        return None
    return Prologue(generic, factor, dict(zip(theirs, own, strict=True)))
