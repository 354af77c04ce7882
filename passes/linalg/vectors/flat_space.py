"""A generic's iteration space as its result lies in memory, in blocks of whole vectors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from lamina.dialects.vendors import ir
from lamina.passes.kernels.cpu.gemm.contraction import read_contraction
from lamina.passes.kernels.cpu.gemm.epilogue import Epilogue, find_epilogue
from lamina.passes.kernels.cpu.gemm.narrow_products import widened_before
from lamina.passes.kernels.cpu.gemm.register_blocks import Factor
from lamina.passes.linalg.analysis.dense_access import DenseAccess, bits_of, dense_access
from lamina.passes.linalg.analysis.structure import (
    Generic,
    is_buffer,
    sole_fill,
    stride_along,
    strides_of,
)
from lamina.passes.linalg.vectors.lane_windows import Window, window
from lamina.passes.linalg.vectors.vector_body import can_be_on_vectors
from lamina.records import Record

_FAR = 32  # code: elements of an operand for each of the result that shuffles may reach over
_LONG_ROWS = 64  # shape: elements, which loops over rows do as well
_MOST_STEPS, _MOST_OF_MUCH = 512, 1400  # code: operations on vectors in a block: little code, or
_MUCH = 1 << 17  # code: from so many elements on what is worth a tenth of a second of compiling
_SHUFFLE, _LOAD = 1.0, 0.5  # of a processor's steps, of which an operation takes a half
_MOST_COST = 6.0  # shape: steps of an element of a sum, where it takes as many to do it one by one


class Operand(Record):
    """A buffer as a block sees it: where it begins, how far it is to the next block along each loop
    around blocks, and the window of each vector and term of a sum."""

    buffer: ir.Value
    offset: int
    around: tuple[int, ...]
    windows: dict[tuple[int, int], Window]
    varies: bool
    """Whether terms of a sum differ in it."""

    def __hash__(self) -> int:
        return id(self)


class FlatSpace(Record):
    """How an op is done in blocks of `members` along one dimension, inside loops over `outer`."""

    generic: Generic
    fill: ir.Operation | None
    epilogue: Epilogue | None
    widened: dict[int, ir.Operation]
    """What makes the inputs of these numbers of what is read instead."""
    outer: tuple[int, ...]
    batch: int
    members: int
    vectors: int
    lanes: int
    terms: int
    inputs: tuple[Operand | None, ...]
    epilogue_inputs: tuple[Operand | None, ...]
    output: Operand
    instructions: float

    @property
    def operands(self) -> list[Operand]:
        """Of all ops."""
        given = (*self.inputs, *self.epilogue_inputs, self.output)
        return [operand for operand in given if operand is not None]

    @property
    def buffers(self) -> list[ir.Value]:
        """Those of the operands, each once."""
        return list(dict.fromkeys(operand.buffer for operand in self.operands))

    @property
    def last(self) -> ir.Operation:
        """The op in whose place all is done."""
        return self.generic.op if self.epilogue is None else self.epilogue.generic.op

    @property
    def ops(self) -> list[ir.Operation]:
        """The ops that are done so, users before what they use."""
        after = None if self.epilogue is None else self.epilogue.generic.op
        return [op for op in (after, self.generic.op, self.fill) if op is not None]


def read_space(generic: Generic, vector_bits: int) -> FlatSpace | None:
    """How to do an op so; None where it can't be or doesn't pay."""
    if len(generic.outputs) != 1 or 0 in generic.extents or not can_be_on_vectors(generic.body):
        return None
    fill = epilogue = None
    if any(generic.reductions):
        if read_contraction(generic) is not None:
            return None  # rows that blocks in registers do
        fill = sole_fill(generic, generic.outputs[0])
        if fill is None:
            return None
        epilogue = find_epilogue(generic, fill)
        if epilogue is not None and not can_be_on_vectors(epilogue.generic.body):
            return None
    elif list(generic.body.arguments[-1].uses):
        return None
    last = generic.op if epilogue is None else epilogue.generic.op
    read = [Factor(*given) for given in zip(generic.inputs, generic.input_maps, strict=True)]
    widened: dict[int, ir.Operation] = {}
    for number, factor in enumerate(read):
        before = widened_before(generic, factor, last)
        if before is not None and before.widening is not None:
            read[number], widened[number] = before.factor, before.widening
    strides = [_strides(factor.buffer, factor.map) for factor in read]
    value, map_ = generic.outputs[0], generic.output_maps[0]
    out = _strides(value, map_)
    if epilogue is None and _has_long_rows(generic, strides, out):
        return None  # as most have
    inputs = [dense_access(f.buffer, steps, f.map) for f, steps in zip(read, strides, strict=True)]
    output = dense_access(value, out, map_)
    after: list[DenseAccess | None] = []
    if epilogue is not None:
        *after, output = _accesses_after(generic, epilogue)
        if len(epilogue.generic.outputs) != 1 or list(epilogue.generic.body.arguments[-1].uses):
            return None
        after[epilogue.operand] = None
    values = [*generic.inputs, *(epilogue.generic.inputs if epilogue else ())]
    done = epilogue.operand + len(generic.inputs) if epilogue else -1
    given = [*inputs, *after]
    for number, (access, value) in enumerate(zip(given, values, strict=True)):
        if access is None and is_buffer(value) and number != done:
            return None
    if output is None or any(a is not None and a.buffer == output.buffer for a in given):
        return None
    found = _Blocks(generic, inputs, after, output, vector_bits).best()
    if found is None:
        return None
    return FlatSpace(generic, fill, epilogue, widened, *found)


def _strides(value: ir.Value, map_: ir.AffineMap) -> tuple[int, ...]:
    return strides_of(value.type, map_) if is_buffer(value) else ()


def _has_long_rows(
    generic: Generic, inputs: Sequence[Sequence[int]], output: Sequence[int]
) -> bool:
    """Whether rows of a result surely are vectors as they are: those of the operands have these
    strides, scalars none."""
    parallel = [
        d for d, extent in enumerate(generic.extents) if extent != 1 and not generic.reductions[d]
    ]
    if not parallel:
        return False
    row = min(parallel, key=lambda d: output[d])
    return generic.extents[row] >= _LONG_ROWS and all(
        steps[row] in (0, 1) for steps in (*inputs, output) if steps
    )


def _accesses_after(generic: Generic, epilogue: Epilogue) -> list[DenseAccess | None]:
    """Those of an epilogue, by the dimensions of what is in front of it."""
    after = epilogue.generic
    found = []
    for value, map_ in zip(
        (*after.inputs, *after.outputs), (*after.input_maps, *after.output_maps), strict=True
    ):
        own = epilogue.dimensions
        strides = [
            stride_along(value, map_, own[d]) if d in own and is_buffer(value) else 0
            for d in range(generic.rank)
        ]
        found.append(dense_access(value, strides, map_))
    return found


class _Blocks:
    """Looks for the cheapest blocks."""

    def __init__(
        self,
        generic: Generic,
        inputs: Sequence[DenseAccess | None],
        after: Sequence[DenseAccess | None],
        output: DenseAccess,
        vector_bits: int,
    ) -> None:
        self._generic = generic
        self._inputs, self._after, self._output = inputs, after, output
        self._all = [a for a in (*inputs, *after, output) if a is not None]
        widths = [bits_of(ir.MemRefType(access.buffer.type).element_type) for access in self._all]
        widths += [bits_of(a.type) for a in generic.body.arguments]
        self._lanes = vector_bits // max(widths)
        self._reduced = [d for d in range(generic.rank) if generic.reductions[d]]
        self._operations = len(list(generic.body.operations)) - 1

    def best(self) -> tuple | None:
        """The fields of a FlatSpace from `outer` on."""
        groups = self._groups()
        if groups is None:
            return None
        extents = self._generic.extents
        row = math.prod(extents[d] for d in groups[-1])
        steps = {a.strides[groups[-1][-1]] for a in self._all}
        is_copied = not self._reduced and (len(groups) == 1 or row % self._lanes == 0)
        if steps <= {0, 1} and (row >= _LONG_ROWS or is_copied):
            return None  # rows are vectors as they are
        found = [
            blocks
            for count in reversed(range(len(groups)))  # of equals, that of fewest loops
            if (blocks := self._blocks(groups, count)) is not None
        ]
        return min(found, key=lambda blocks: blocks[0], default=(0, None))[1]

    def _groups(self) -> list[list[int]] | None:
        """The parallel dimensions in the order of the result, together where they are one to all; None
        where the result has gaps."""
        extents, output = self._generic.extents, self._output
        parallel = [
            d for d in range(self._generic.rank)
            if not self._generic.reductions[d] and extents[d] != 1
        ]  # fmt: skip
        parallel.sort(key=lambda d: -output.strides[d])
        step = 1
        for d in reversed(parallel):
            if output.strides[d] != step:
                return None
            step *= extents[d]
        groups: list[list[int]] = []
        for d in parallel:
            if groups and all(
                a.strides[groups[-1][-1]] == a.strides[d] * extents[d] for a in self._all
            ):
                groups[-1].append(d)
            else:
                groups.append([d])
        return groups or None

    def _blocks(self, groups: list[list[int]], count: int) -> tuple[float, tuple] | None:
        """What blocks of which the last so many groups are whole cost for an element, and their
        fields."""
        extents, lanes = self._generic.extents, self._lanes
        inner = [d for group in groups[len(groups) - count :] for d in group]
        *outer, batch = groups[: len(groups) - count]
        size = math.prod(extents[d] for d in inner)
        members = lanes // math.gcd(size, lanes)
        vectors = members * size // lanes
        terms = math.prod(extents[d] for d in self._reduced)
        batch_extent = math.prod(extents[d] for d in batch)
        steps = vectors * terms * (self._operations + len(self._all) - 1)
        most = _MOST_OF_MUCH if math.prod(extents) >= _MUCH else _MOST_STEPS
        if batch_extent < members or steps > most:
            return None
        last = {d: extents[d] - 1 for d in inner} | {batch[-1]: members - 1}
        if any(
            sum(abs(a.strides[d]) * at for d, at in last.items()) > _FAR * vectors * lanes
            for a in self._all
        ):
            return None
        # Positions of all lanes of a block, by dimension; the batch's last one counts its members.
        flat = np.arange(vectors * lanes)
        position = {}
        for d in reversed(inner):
            flat, position[d] = np.divmod(flat, extents[d])
        position[batch[-1]] = flat
        lane_of = {a: sum(a.strides[d] * at for d, at in position.items()) for a in self._all}
        most_cost = _MOST_COST * vectors * terms + vectors
        read = [lane_of[a] for a in (*self._inputs, *self._after) if a is not None]
        if sum(_least_cost(np.reshape(lane, (vectors, lanes))) for lane in read) > most_cost:
            return None
        reduced = list(itertools.product(*(range(extents[d]) for d in self._reduced)))
        around = [group[-1] for group in outer] + [batch[-1]]

        def operand(access: DenseAccess, terms: list[tuple[int, ...]]) -> Operand:
            rows = np.reshape(lane_of[access], (vectors, lanes))
            return self._operand(access, rows, terms, around)

        inputs = tuple(None if a is None else operand(a, reduced) for a in self._inputs)
        after = tuple(None if a is None else operand(a, reduced[:1]) for a in self._after)
        output = operand(self._output, reduced)
        cost = 0.5 * self._operations * vectors * terms
        for found in (*inputs, *after):
            cost += 0.0 if found is None else _cost(found.windows.values())
        if cost > most_cost:
            return None
        outer_extents = tuple(math.prod(extents[d] for d in group) for group in outer)
        fields = (
            outer_extents, batch_extent, members, vectors, lanes, terms, inputs, after, output, cost,
        )  # fmt: skip
        return cost / (vectors * lanes), fields

    def _operand(
        self,
        access: DenseAccess,
        rows: np.ndarray,
        terms: list[tuple[int, ...]],
        around: list[int],
    ) -> Operand:
        """How an operand is read: `rows` are the places of each vector's lanes, `terms` the positions along
        what is summed, `around` the dimensions of the loops."""
        term = [
            sum(access.strides[d] * n for d, n in zip(self._reduced, at, strict=True)) for at in terms
        ]
        varies = any(term)
        limits = (0, int(rows.max() + max(term)) + 1)
        found = {
            (v, t): window([int(o) for o in row + term[t]], limits)
            for v, row in enumerate(rows)
            for t in range(len(terms) if varies else 1)
        }
        steps = tuple(access.strides[d] for d in around)
        return Operand(access.buffer, access.offset, steps, found, varies)


def _least_cost(rows: np.ndarray) -> float:
    """What `_cost` of these vectors is not below, without the lists of which each takes one for a load."""
    distinct = np.array(sorted(set(map(tuple, rows.tolist()))))  # np.unique loads numpy.ma, which takes 20 ms
    lines = np.sort(distinct // rows.shape[1], axis=1)
    loads = (np.count_nonzero(np.diff(lines, axis=1), axis=1) + 2) // 2  # one reaches into two lines
    return _SHUFFLE * float(np.sum(loads - 1))


def _cost(windows: Iterable[Window]) -> float:
    """Steps to make vectors of windows, which share loads."""
    loads: set[tuple[int, int]] = set()
    shuffles = 0
    for one in set(windows):
        loads.update((start, one.width) for start in one.starts)
        if one.steps and one.width == len(one.steps[0]):
            shuffles += one.shuffles
    return _LOAD * len(loads) + _SHUFFLE * shuffles
