"""Reading a region of ops on scores: products that make them, what is done to each score and to
each row of scores, and products that use them up.

Its dimensions are those of the first product's result: batch dimensions, rows (of queries), and keys,
along which the rows are reduced. Each value's dimensions are said by their numbers, one more than the
last standing for a width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    COSTLY,
    DotNumbers,
    computes_elements,
    defining,
    ints,
    reducer_of,
    splat_of,
)
from lamina.records import Record

_BROADCAST, _DOT = "stablehlo.broadcast_in_dim", "stablehlo.dot_general"
_TRANSPOSE, _REDUCE = "stablehlo.transpose", "stablehlo.reduce"
_MOST = 256  # search: values of a region: attention has a few dozen, a long chain of products no end
_INITIAL = {"stablehlo.add": 0.0, "stablehlo.maximum": -float("inf")}

Dims = tuple[int, ...]


class Operand(Record):
    """A small operand of a product, and the numbers of its dimensions."""

    value: ir.Value
    dims: Dims

    @property
    def width(self) -> int:
        """The extent of the width, whose number is the last."""
        return self.value.type.shape[self.dims.index(max(self.dims))]


class Product(Record):
    """A product that makes scores, of an operand with the rows and one with the keys."""

    op: ir.Operation
    rows: Operand
    keys: Operand


class Sink(Record):
    """A product of scores and a small operand: a sum over keys, or over all rows."""

    op: ir.Operation
    scores: ir.Value
    other: Operand
    over_keys: bool
    result: ir.Value
    """What of this is used: a transpose, if that is all."""
    dims: Dims
    """Of the result."""


class ScoreRegion(Record, frozen=False):
    """Scores and what is made of them until they are used up. `ops` are on scores or on rows, in
    the order of their block; `sides` are ops that do not depend on scores but are as cheap."""

    extents: list[int]
    batch: Dims
    rows: Dims = ()
    keys: int = -1
    products: list[Product] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)
    ops: list[ir.Operation] = field(default_factory=list)
    sides: list[ir.Operation] = field(default_factory=list)
    dims: dict[ir.Value, Dims] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """The number that stands for a width."""
        return len(self.extents)

    def is_scores(self, value: ir.Value) -> bool:
        """Whether a value has all dimensions of scores."""
        return len(self.dims.get(value, ())) == self.width

    def operands(self) -> list[Operand]:
        """Of all products, each once."""
        all_ = [o for p in self.products for o in (p.rows, p.keys)] + [s.other for s in self.sinks]
        return list(dict.fromkeys(all_))

    @classmethod
    def of(
        cls, product: ir.Operation, positions: dict[ir.Operation, int]
    ) -> ScoreRegion | None:
        """What a dot_general's result goes through; None if any of it is of another kind, or used
        elsewhere. `positions`: of the block's ops. Sinks that an operand of the region was made
        after are left out, with what only they need."""
        found = _Reader(product, positions).read()
        return None if found is None or not found.sinks else found


class _Reader:
    def __init__(self, product: ir.Operation, positions: dict[ir.Operation, int]) -> None:
        self._positions = positions
        shape = list(product.results[0].type.shape)
        self._region = ScoreRegion(shape, tuple(range(len(DotNumbers.of(product).lhs_batch))))
        self._dims = self._region.dims
        self._dims[product.results[0]] = tuple(range(len(shape)))
        self._work = [product.results[0]]
        self._pulled: set[ir.Value] = set()
        self._sinks: dict[tuple[ir.Operation, int], None] = {}

    def read(self) -> ScoreRegion | None:
        while self._work:
            value = self._work.pop()
            for use in list(value.uses):
                if not self._follow(value, use.owner.operation, use.operand_number):
                    return None
        region = self._region
        if region.keys < 0:
            return None
        region.rows = tuple(
            d for d in range(region.width) if d not in region.batch and d != region.keys
        )
        if not region.rows:
            return None
        ops = {defining(value) for value in self._dims}
        for op in sorted((op for op in ops if op is not None), key=self._positions.__getitem__):
            if op.name == _DOT:
                product = self._product(op)
                if product is None:
                    return None
                region.products.append(product)
            else:
                region.ops.append(op)
        for op, number in self._sinks:
            sink = self._sink(op, number)
            if sink is None:
                return None
            region.sinks.append(sink)
        region.sinks.sort(key=lambda sink: self._positions[sink.op])
        return self._needed() if self._agrees() else None

    # ---- forward: who uses what is made of scores ----------------------------------------------
    def _follow(self, value: ir.Value, op: ir.Operation, number: int) -> bool:
        if op not in self._positions:
            return False
        dims = self._dims[value]
        if op.name == _DOT:
            self._sinks[op, number] = None
            return len(dims) == self._region.width
        if op.name == _REDUCE:
            return self._reduced(dims, op, number)
        if op.name == _TRANSPOSE:
            return self._set(op.results[0], tuple(dims[d] for d in ints(op, "permutation")))
        if op.name == _BROADCAST:
            return self._spread(dims, op)
        if computes_elements(op):
            for operand in op.operands:
                self._pull(operand, dims)
            return self._set(op.results[0], dims)
        return False

    def _reduced(self, dims: Dims, op: ir.Operation, number: int) -> bool:
        dimensions = ints(op, "dimensions")
        if len(op.operands) != 2 or number or len(dimensions) != 1:
            return False
        keys, initial = dims[dimensions[0]], splat_of(op.operands[1])
        region = self._region
        if region.keys not in (-1, keys) or keys in region.batch:
            return False
        name = reducer_of(op)
        if name not in _INITIAL or initial is None or float(initial) != _INITIAL[name]:
            return False
        if not isinstance(op.results[0].type.element_type, ir.FloatType):
            return False
        region.keys = keys
        return self._set(op.results[0], tuple(d for d in dims if d != keys))

    def _spread(self, dims: Dims, op: ir.Operation) -> bool:
        result = op.results[0]
        if len(dims) == self._region.width or len(result.type.shape) != self._region.width:
            return False
        places = ints(op, "broadcast_dimensions")
        if any(op.operands[0].type.shape[i] != result.type.shape[p] for i, p in enumerate(places)):
            return False
        left = iter([d for d in range(self._region.width) if d not in dims])
        known = dict(zip(places, dims, strict=True))
        return self._set(
            result, tuple(known[p] if p in known else next(left) for p in range(self._region.width))
        )

    def _set(self, value: ir.Value, dims: Dims) -> bool:
        if value in self._dims:
            return self._dims[value] == dims
        extents = self._region.extents
        if len(self._dims) == _MOST:
            return False
        if [extents[d] for d in dims] != list(value.type.shape):
            return False
        self._dims[value] = dims
        self._work.append(value)
        return True

    def _pull(self, value: ir.Value, dims: Dims) -> None:
        """Find the products that a value beside scores comes from; their users then are followed."""
        if len(dims) != self._region.width:
            return
        work = [(value, dims)]
        while work:
            value, dims = work.pop()
            if value in self._dims or value in self._pulled or len(self._pulled) == _MOST:
                continue
            self._pulled.add(value)
            op = defining(value)
            if op is None or op not in self._positions or len(value.type.shape) != len(dims):
                continue
            if op.name == _DOT:
                self._set(value, dims)
            elif op.name == _TRANSPOSE:
                inner = list(dims)
                for place, d in enumerate(ints(op, "permutation")):
                    inner[d] = dims[place]
                work.append((op.operands[0], tuple(inner)))
            elif computes_elements(op):
                work += [(operand, dims) for operand in reversed(list(op.operands))]

    def _agrees(self) -> bool:
        """Whether operands of each op are scores' or rows' in the same order, or none of theirs."""
        for op in self._region.ops:
            if not computes_elements(op):
                continue
            dims = self._dims[op.results[0]]
            if any(self._dims.get(operand, dims) != dims for operand in op.operands):
                return False
        return True

    # ---- products ------------------------------------------------------------------------------
    def _product(self, op: ir.Operation) -> Product | None:
        region, numbers = self._region, DotNumbers.of(op)
        if not isinstance(op.results[0].type.element_type, ir.FloatType):
            return None
        if len(numbers.lhs_contracting) != 1 or any(v in self._dims for v in op.operands):
            return None
        lhs, rhs = self._operands(op, numbers, self._dims[op.results[0]])
        for rows, keys in ((lhs, rhs), (rhs, lhs)):
            if region.keys in keys.dims and region.keys not in rows.dims:
                if not any(d in keys.dims for d in region.rows):
                    return Product(op, rows, keys)
        return None

    def _operands(
        self, op: ir.Operation, numbers: DotNumbers, result: Dims
    ) -> tuple[Operand, Operand]:
        """Both, by what their dimensions are in the result, contracted ones being the width."""
        places = iter(result[len(numbers.lhs_batch) :])
        found = []
        for value, batch, contracting in (
            (op.operands[0], numbers.lhs_batch, numbers.lhs_contracting),
            (op.operands[1], numbers.rhs_batch, numbers.rhs_contracting),
        ):
            dims = dict(zip(batch, result, strict=False))
            dims |= dict.fromkeys(contracting, self._region.width)
            for d in range(len(value.type.shape)):
                if d not in dims:
                    dims[d] = next(places)
            found.append(Operand(value, tuple(dims[d] for d in range(len(dims)))))
        return found[0], found[1]

    def _sink(self, op: ir.Operation, number: int) -> Sink | None:
        region, numbers = self._region, DotNumbers.of(op)
        scores, other = op.operands[number], op.operands[1 - number]
        if other in self._dims or not isinstance(other.type.element_type, ir.FloatType):
            return None
        sides = [
            (numbers.lhs_batch, numbers.lhs_contracting),
            (numbers.rhs_batch, numbers.rhs_contracting),
        ]
        (batch, contracting), (other_batch, other_contracting) = sides[number], sides[1 - number]
        dims = self._dims[scores]
        summed = [dims[d] for d in contracting]
        over_keys = summed == [region.keys]
        if not over_keys and sorted(summed) != list(region.rows):
            return None
        if sorted(dims[d] for d in batch) != list(region.batch):
            return None
        known = dict(zip(other_batch, (dims[d] for d in batch), strict=True))
        known |= dict(zip(other_contracting, summed, strict=True))
        free = [d for d in range(len(other.type.shape)) if d not in known]
        if len(free) != 1:
            return None
        known[free[0]] = region.width
        kept = [d for d in dims if d not in summed and d not in region.batch]
        made = [*(dims[d] for d in batch)]
        made += [*kept, region.width] if number == 0 else [region.width, *kept]
        result = op.results[0]
        last = [use.owner.operation for use in result.uses]
        if len(last) == 1 and last[0].name == _TRANSPOSE and last[0] in self._positions:
            made = [made[d] for d in ints(last[0], "permutation")]
            result = last[0].results[0]
        of_other = Operand(other, tuple(known[d] for d in range(len(known))))
        return Sink(op, scores, of_other, over_keys, result, tuple(made))

    # ---- what is left out ----------------------------------------------------------------------
    def _needed(self) -> ScoreRegion:
        """Without the sinks that operands were made after, and what only they need."""
        region = self._region
        while True:
            needed = self._reached([sink.scores for sink in region.sinks])
            region.products = [p for p in region.products if p.op in needed]
            region.ops = [op for op in region.ops if op in needed]
            self._find_sides()
            makers = [defining(value) for value in self.arguments()]
            last = max([self._positions.get(op, -1) for op in makers if op is not None], default=-1)
            late = [sink for sink in region.sinks if self._positions[sink.op] > last]
            if len(late) == len(region.sinks):
                return region
            region.sinks = late

    def _reached(self, values: Iterable[ir.Value]) -> set[ir.Operation]:
        reached: set[ir.Operation] = set()
        work = [value for value in values if value in self._dims]
        while work:
            op = defining(work.pop())
            if op is not None and op not in reached:
                reached.add(op)
                work += [operand for operand in op.operands if operand in self._dims]
        return reached

    def _find_sides(self) -> None:
        """Masks and the like: cheap ops that are done again for each score."""
        sides: dict[ir.Operation, None] = {}
        work = [v for op in self._region.ops for v in op.operands if v not in self._dims]
        while work:
            op = defining(work.pop())
            if op is None or op in sides or not _is_side(op):
                continue
            if op in self._positions or op.name == CONSTANT:  # others outside a loop are read
                sides[op] = None
                work += op.operands
        self._region.sides = sorted(sides, key=lambda op: self._positions.get(op, -1))

    def arguments(self) -> list[ir.Value]:
        """What the region reads from memory."""
        return arguments_of(self._region)


def arguments_of(region: ScoreRegion) -> list[ir.Value]:
    """What a region reads from memory, each once."""
    inside = {*region.ops, *region.sides, *(p.op for p in region.products)}
    values = [v for op in (*region.ops, *region.sides) for v in op.operands]
    values += [operand.value for operand in region.operands()]
    return [v for v in dict.fromkeys(values) if defining(v) not in inside]


def _is_side(op: ir.Operation) -> bool:
    if op.name == CONSTANT:
        return splat_of(op.results[0]) is not None
    if op.name in ("stablehlo.iota", _BROADCAST):
        return True
    return computes_elements(op) and op.name not in COSTLY


def positions_in(block: ir.Block) -> dict[ir.Operation, int]:
    """The number of each op of a block."""
    ops: Sequence[ir.Operation] = [op.operation for op in block.operations]
    return {op: number for number, op in enumerate(ops)}
