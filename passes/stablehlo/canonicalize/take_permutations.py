"""Take the permutation that an LU factorisation gives, where a loop exchanges the numbers of rows by its pivots.

    %lu, %pivots, %rows = custom_call @lamina.lapack.getrf
    while(%i = 0, %p = iota) while %i < k {
      %j = %pivots[%i]                                        ->    %rows
      swap %p[%i], %p[%j]
    }

LAPACK gives pivots: which row was exchanged with row i in step i. What solves a system needs all the exchanges
together, and JAX gets them by this loop, whose steps walk over the whole batch. The loop is known by what it does:
a counter from 0 to the number of pivots, the numbers of rows, each exchange by two reads and two writes.

example: test/passes/stablehlo/canonicalize/take_permutations.mlir
"""

from __future__ import annotations

from lamina.dialects.constants import array_of
from lamina.dialects.types import shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import CONSTANT, ints, is_unused, made_by, splat_of
from lamina.passes.stablehlo.analysis.indexed_dims import GATHER, SCATTER, IndexedDims
from lamina.passes.stablehlo.analysis.lapack import TARGET
from lamina.passes.stablehlo.analysis.ranges import growth
from lamina.passes.stablehlo.analysis.trips import trips
from lamina.passes.stablehlo.canonicalize.simplify import Simplify
from lamina.records import Record


class TakePermutations(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.custom_call",))

    def run(self, module: ir.Module) -> None:
        taken = 0
        for loop in find_ops(module, "stablehlo.while"):
            found = {n: rows for n in range(len(loop.operands)) if (rows := _exchanged_rows(loop, n)) is not None}
            for number, rows in found.items():
                loop.results[number].replace_all_uses_with(rows)
            if found and is_unused(loop):
                loop.erase()
            taken += len(found)
        if taken:
            self.count("loops", taken)
            Simplify(fold=True).run(module)


def _exchanged_rows(loop: ir.Operation, number: int) -> ir.Value | None:
    """The factorisation's rows, if that is what a loop makes of what it carries by this number."""
    block = loop.regions[1].blocks[0]
    rows = block.arguments[number]
    second = _Write.of(block.operations[len(block.operations) - 1].operands[number])
    first = None if second is None else _Write.of(second.into)
    if first is None or second is None or first.into != rows or not _counts_up(loop.operands[number]):
        return None
    counter, other = first.at, second.at
    if not isinstance(counter.owner, ir.Block) or counter.owner != block:
        return None
    steps = ir.BlockArgument(counter).arg_number
    pivot = _Read.of(other)
    exchanged = (_Read.of(first.value), _Read.of(second.value))
    if pivot is None or pivot.at != counter or exchanged != (_Read(rows, other), _Read(rows, counter)):
        return None
    factorisation = made_by(_before(loop, pivot.array), "stablehlo.custom_call")
    if factorisation is None or factorisation.attributes["call_target_name"].value != TARGET + "getrf":
        return None
    _, pivots, permutation = factorisation.results
    if _before(loop, pivot.array) != pivots or permutation.type != rows.type:
        return None
    count = shape_of(pivots.type)[-1]
    if splat_of(loop.operands[steps]) != 0 or growth(loop, steps) != 1 or trips(loop, count) != count:
        return None
    return permutation


def _before(loop: ir.Operation, value: ir.Value) -> ir.Value:
    """What a value is in every step, if the loop only hands it on."""
    block = loop.regions[1].blocks[0]
    if value.owner != block:
        return value
    number = ir.BlockArgument(value).arg_number
    handed_on = block.operations[len(block.operations) - 1].operands[number] == value
    return loop.operands[number] if handed_on else value


def _counts_up(value: ir.Value) -> bool:
    """Whether a value is 0, 1, 2, ... along its last dimension."""
    last = len(value.type.shape) - 1
    iota = made_by(value, "stablehlo.iota")
    if iota is not None:
        return bool(iota.attributes["iota_dimension"].value == last)
    constant = made_by(value, CONSTANT)
    if constant is None or last != 0:
        return False
    return array_of(constant).tolist() == list(range(value.type.shape[0]))


class _Read(Record):
    """One element along the last dimension of an array: of each row another, or the same of all."""

    array: ir.Value
    at: ir.Value

    @staticmethod
    def of(value: ir.Value) -> _Read | None:
        value = _bare(value)
        if (cut := made_by(value, "stablehlo.dynamic_slice")) is not None:
            array, *starts = cut.operands
            whole = _is_one_of_last(ints(cut, "slice_sizes"), array)
            return _Read(array, _bare(starts[-1])) if whole else None
        taken = made_by(value, GATHER)
        if taken is None:
            return None
        array, indices = taken.operands
        dims, last = IndexedDims.of(taken), len(array.type.shape) - 1
        of_each = dims.batch == dims.batch_of_indices == list(range(last)) and last > 0
        sizes = ints(taken, "slice_sizes")
        if dims.named != [last] or not (of_each and set(sizes) == {1} or _is_one_of_last(sizes, array)):
            return None
        if (not of_each and dims.batch) or dims.vector != len(indices.type.shape) - 1:
            return None
        return _Read(array, _bare(indices))


class _Write(Record):
    """The same, written."""

    into: ir.Value
    at: ir.Value
    value: ir.Value

    @staticmethod
    def of(value: ir.Value) -> _Write | None:
        if (update := made_by(value, "stablehlo.dynamic_update_slice")) is not None:
            array, part, *starts = update.operands
            whole = _is_one_of_last(list(part.type.shape), array)
            return _Write(array, _bare(starts[-1]), _bare(part)) if whole else None
        scatter = made_by(value, SCATTER)
        if scatter is None or len(scatter.results) != 1:
            return None
        array, indices, updates = scatter.operands
        dims, last = IndexedDims.of(scatter), len(array.type.shape) - 1
        if dims.named != [last] or not dims.batch == dims.batch_of_indices == list(range(last)):
            return None
        if dims.vector != len(indices.type.shape) - 1 or not _replaces(scatter):
            return None
        return _Write(array, _bare(indices), _bare(updates))


def _is_one_of_last(sizes: list[int], array: ir.Value) -> bool:
    return sizes == [*list(array.type.shape)[:-1], 1]


def _replaces(scatter: ir.Operation) -> bool:
    """Whether what is written takes the place of what was there."""
    block = scatter.regions[0].blocks[0]
    return len(block.operations) == 1 and block.operations[0].operands[0] == block.arguments[1]


def _bare(value: ir.Value) -> ir.Value:
    """A value without the dimensions of 1 that it was given."""
    while (reshape := made_by(value, "stablehlo.reshape")) is not None:
        value = reshape.operands[0]
    return value
