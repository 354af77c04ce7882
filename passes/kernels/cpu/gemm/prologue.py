"""The element-wise op that makes a factor of a contraction, done for a part of it at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lamina.dialects.vendors import ir, memref
from lamina.passes.framework.machine import Machine
from lamina.passes.kernels.cpu.gemm.factor_copies import copy_elements
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.parallel import is_costly, total_cost
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
from lamina.passes.memref.place_temporaries import element_bytes
from lamina.records import Record


class Prologue(Record):
    """A generic that makes a contraction's factor element by element, for nobody else."""

    generic: Generic
    factor: Factor
    dimensions: Mapping[int, int]
    """Its dimensions by the contraction's."""
    order: tuple[int, ...] = ()
    """The dimensions of what it writes in the order that panels have them, if it is another."""

    @property
    def ops(self) -> tuple[ir.Operation, ...]:
        """The ops that make the factor."""
        return (self.generic.op,)

    def turned(self, last: int) -> Prologue:
        """The same in panels of which this dimension of the contraction is the last."""
        factor, order = _turned(self.factor, last)
        return replace(self, factor=factor, order=order)

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
        if not self.order:
            clone_on(generic.op, [*inputs, panel])
        elif is_costly(generic):  # vectors of what is to be turned are turned fast, but not made so
            made = _like_turned(panel, self.order)
            clone_on(generic.op, [*inputs, made])
            _turn(made, panel, self.order)
        else:
            maps = (*generic.input_maps, _permuted(generic.output_maps[0], self.order))
            attributes = [ir.AffineMapAttr.get(map_) for map_ in maps]
            part = clone_on(generic.op, [*inputs, panel])
            part.attributes["indexing_maps"] = ir.ArrayAttr.get(attributes)


def _turned(factor: Factor, last: int) -> tuple[Factor, tuple[int, ...]]:
    """A factor as its panels have it, and the order of its dimensions there: this one last."""
    places = places_of(factor.map)
    order = tuple(sorted(range(len(places)), key=lambda k: places[k] == last))
    return Factor(factor.buffer, _permuted(factor.map, order)), order


def _like_turned(panel: ir.Value, order: Sequence[int]) -> ir.Value:
    """A buffer for what a panel holds, before its dimensions are put in order."""
    type_ = ir.MemRefType(panel.type)
    shape = [type_.shape[order.index(k)] for k in range(len(order))]
    return memref.AllocOp(ir.MemRefType.get(shape, type_.element_type), [], []).result


def _turn(source: ir.Value, panel: ir.Value, order: Sequence[int]) -> None:
    """Copy a buffer into a panel, whose dimensions are its own in this order."""
    dims = [ir.AffineDimExpr.get(order.index(k)) for k in range(len(order))]
    copy_elements(source, panel, ir.AffineMap.get(len(order), 0, dims))


def _permuted(map_: ir.AffineMap, order: Sequence[int]) -> ir.AffineMap:
    results = list(map_.results)
    return ir.AffineMap.get(map_.n_dims, 0, [results[k] for k in order])


class Copied(Record):
    """A factor that is copied from where its rows are far from each other."""

    factor: Factor
    machine: Machine
    order: tuple[int, ...] = ()
    """Its dimensions in the order that panels have them, if it is another."""

    @property
    def ops(self) -> tuple[ir.Operation, ...]:
        """The ops that make the factor."""
        return ()

    @property
    def cost(self) -> float:
        """Nanoseconds of all of it."""
        type_ = ir.MemRefType(self.factor.buffer.type)
        bytes_ = math.prod(type_.shape) * element_bytes(type_.element_type)
        return bytes_ * 1000 / self.machine.stream_bytes_per_us

    def turned(self, last: int) -> Copied:
        """As `Prologue.turned`."""
        factor, order = _turned(self.factor, last)
        return Copied(factor, self.machine, order)

    def emit(
        self, panel: ir.Value, at: Mapping[int, ir.Value], sizes: Mapping[int, int]
    ) -> None:
        """Copy a part of the factor, as `Prologue.emit` makes it."""
        rank = len(self.factor.map.results)
        order = self.order or tuple(range(rank))
        dims = [order.index(k) for k in range(rank)]
        source = part_of(self.factor.buffer, _permuted(self.factor.map, dims), at, sizes)
        _turn(source, panel, order)


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
