"""Reading bufferised generics as a matrix product c[b, m, n] = sum over k of a[b, m, k] * b[b, k, n],
with what makes its initial value and what follows it element by element.

Each of b, m, n and k is any number of the generic's dimensions, walked as one in the order given
here; a and b are indexed by any sums of multiples of those. So convolutions are products, too: m is
an image's positions, k a window's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lamina.dialects.vendors import ir
from lamina.passes.linalg.analysis.structure import (
    Generic,
    filled_value,
    is_temporary,
    loaded_buffers,
    root_buffer,
    sole_fill,
    stride_along,
)
from lamina.records import Record

LEAST_EXTENT = 8  # shape
"""Of m and n: smaller products are reductions like others."""
_SUMS = {"arith.mulf": "arith.addf", "arith.muli": "arith.addi", "complex.mul": "complex.add"}


class Factor(Record):
    """One side of a product: an input of the generic, and the ops of its body that are done on that
    input alone before it is multiplied."""

    number: int
    buffer: ir.Value
    map: ir.AffineMap
    before: tuple[ir.Operation, ...]
    value: ir.Value
    """What is multiplied: in the body, the input's argument or the result of the last op."""
    along: tuple[int, ...]
    """The dimensions of its rows: m of a, n of b."""

    def stride(self, dimension: int) -> int:
        """Elements between neighbours along a dimension of the iteration space."""
        return stride_along(self.buffer, self.map, dimension)

    def uses(self, place: int, dimension: int) -> bool:
        """Whether an index of the buffer depends on a dimension of the iteration space."""
        return dimension in (_index_of(self.map.results[place]) or ())


class Follower(Record):
    """An element-wise generic after the product, and its dimensions by the product's."""

    generic: Generic
    dimensions: Mapping[int, int]


class Product(Record):
    """A generic that is a product. `a`'s rows and `b`'s are the result's rows and columns."""

    generic: Generic
    a: Factor
    b: Factor
    multiply: ir.Operation
    add: ir.Operation
    batch: tuple[int, ...]
    reduced: tuple[int, ...]
    fill: ir.Operation | None = None
    """What gives the result its initial value, where that is known to be one value."""
    followers: tuple[Follower, ...] = ()
    private: frozenset[ir.Value] = frozenset()
    """Of the result and what the followers make, the buffers that nobody else reads."""

    @property
    def result(self) -> ir.Value:
        return self.generic.outputs[0]

    @property
    def initial(self) -> ir.Value | None:
        """The value that the fill gives the result."""
        return None if self.fill is None else filled_value(self.fill)

    @property
    def element(self) -> ir.Type:
        """Of the accumulators."""
        return ir.MemRefType(self.result.type).element_type

    def size(self, dimensions: Sequence[int]) -> int:
        """The extent of dimensions walked as one."""
        return math.prod(self.generic.extents[d] for d in dimensions)

    def stride_as_one(
        self, dimensions: Sequence[int], stride: Callable[[int], int]
    ) -> int | None:
        """The stride of dimensions walked as one; None where no one stride does."""
        extents = self.generic.extents
        kept = [d for d in dimensions if extents[d] > 1]
        for outer, inner in zip(kept, kept[1:]):
            if stride(outer) != stride(inner) * extents[inner]:
                return None
        return stride(kept[-1]) if kept else 1

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Batches, m, n and k."""
        return tuple(map(self.size, (self.batch, self.a.along, self.b.along, self.reduced)))  # type: ignore[return-value]


def read_product(generic: Generic) -> Product | None:
    """The product that a generic is; None if it is none, or not worth a kernel of products."""
    if len(generic.inputs) != 2 or len(generic.outputs) != 1 or not any(generic.reductions):
        return None
    if not all(isinstance(value.type, ir.MemRefType) for value in generic.inputs):
        return None
    body = _read_body(generic)
    if body is None or loaded_buffers(generic):
        return None
    output = generic.output_maps[0]
    places = _dimensions(output) or []
    parallel = [d for d, r in enumerate(generic.reductions) if not r]
    if sorted(places) != parallel:
        return None
    if any(_index_of(e) is None for map_ in generic.input_maps for e in map_.results):
        return None
    uses = [_used(map_) for map_ in generic.input_maps]
    batch = tuple(d for d in parallel if all(d in used for used in uses))
    sides = [
        tuple(d for d in parallel if d in uses[n] and d not in uses[1 - n]) for n in range(2)
    ]
    loose = tuple(d for d in parallel if not any(d in used for used in uses))
    sides[0] = (*loose, *sides[0])

    def by_result(dimensions: Sequence[int]) -> tuple[int, ...]:
        strides = {d: stride_along(generic.outputs[0], output, d) for d in dimensions}
        return tuple(sorted(dimensions, key=lambda d: -strides[d]))

    factors = [
        Factor(n, generic.inputs[n], generic.input_maps[n], *body.sides[n], by_result(sides[n]))
        for n in range(2)
    ]
    # The result's columns should be those along which it is contiguous.
    last = places[-1] if places else None
    a, b = factors if last not in factors[0].along else factors[::-1]
    reduced = sorted(
        (d for d, r in enumerate(generic.reductions) if r),
        key=lambda d: -min(a.stride(d) or math.inf, b.stride(d) or math.inf),
    )
    product = Product(generic, a, b, body.multiply, body.add, by_result(batch), tuple(reduced))
    _, m, n, _ = product.sizes
    return product if min(m, n) >= LEAST_EXTENT else None


def with_surroundings(product: Product, before: Sequence[Generic], after: Sequence[Generic]) -> Product:
    """The product with its fill, if that is in `before`, and as many generics of `after` as follow it
    element by element."""
    fill = sole_fill(product.generic, product.result, lambda op: filled_value(op) is not None)
    fill = fill if fill is not None and any(g.op == fill for g in before) else None
    by_place = {product.result: _dimensions(product.generic.output_maps[0])}
    followers: list[Follower] = []
    for generic in after:
        dimensions = _follows(generic, by_place)
        if dimensions is None or not _keeps_apart(generic, product, by_place):
            break
        followers.append(Follower(generic, dimensions))
        inverse = {own: theirs for theirs, own in dimensions.items()}
        for value, map_ in zip(generic.outputs, generic.output_maps, strict=True):
            by_place[value] = [inverse[d] for d in _dimensions(map_) or ()]
    inside = {product.generic.op, *(f.generic.op for f in followers)}
    inside |= {fill} if fill is not None else set()
    private = frozenset(value for value in by_place if fill is not None and _is_private(value, inside))
    return replace(product, fill=fill, followers=tuple(followers), private=private)


def _is_private(buffer: ir.Value, inside: set[ir.Operation]) -> bool:
    """Whether a buffer is a temporary that only these ops use."""
    if not is_temporary(buffer):
        return False
    users = {use.owner.operation for use in buffer.uses}
    return all(user in inside or user.name == "memref.dealloc" for user in users)


# ---- the body ------------------------------------------------------------------------------------
class _Body(Record):
    multiply: ir.Operation
    add: ir.Operation
    sides: tuple[tuple[tuple[ir.Operation, ...], ir.Value], ...]


def _read_body(generic: Generic) -> _Body | None:
    """The parts of total + f(x) * g(y)."""
    operations = [op.operation for op in generic.body.operations]
    *arguments, total = generic.body.arguments
    add = operations[-1].operands[0].owner
    if isinstance(add, ir.Block) or add.operation.block != generic.body:
        return None
    add = add.operation
    factors = [value for value in add.operands if value != total]
    if len(factors) != 1 or isinstance(factors[0].owner, ir.Block):
        return None
    multiply = factors[0].owner.operation
    if multiply.block != generic.body or _SUMS.get(multiply.name) != add.name:
        return None
    sources: dict[ir.Value, set[int]] = {a: {n} for n, a in enumerate(arguments)}
    sources[total] = {2}
    before: tuple[list[ir.Operation], list[ir.Operation]] = ([], [])
    for op in operations[:-1]:
        if op.name == "linalg.index" or len(op.results) != 1 or len(op.regions):
            return None
        found = set().union(*(sources.get(value, set()) for value in op.operands))
        sources[op.results[0]] = found
        if op not in (multiply, add):
            if len(found) != 1 or found == {2}:
                return None
            before[min(found)].append(op)
    left, right = multiply.operands
    order = (sources.get(left), sources.get(right))
    if order == ({1}, {0}):
        left, right = right, left
    elif order != ({0}, {1}):
        return None
    return _Body(multiply, add, ((tuple(before[0]), left), (tuple(before[1]), right)))


# ---- maps ----------------------------------------------------------------------------------------
def _dimensions(map_: ir.AffineMap) -> list[int] | None:
    """The dimension of each index, if all are just that and no two the same."""
    if not all(isinstance(expression, ir.AffineDimExpr) for expression in map_.results):
        return None
    found = [ir.AffineDimExpr(expression).position for expression in map_.results]
    return found if len(set(found)) == len(found) else None


def _index_of(expression: ir.AffineExpr) -> set[int] | None:
    """The dimensions in a sum of multiples of dimensions; None for anything else."""
    if isinstance(expression, ir.AffineConstantExpr):
        return set()
    if isinstance(expression, ir.AffineDimExpr):
        return {ir.AffineDimExpr(expression).position}
    for kind in (ir.AffineAddExpr, ir.AffineMulExpr):
        if isinstance(expression, kind):
            parts = kind(expression)
            left, right = _index_of(parts.lhs), _index_of(parts.rhs)
            return None if left is None or right is None else left | right
    return None


def _used(map_: ir.AffineMap) -> set[int]:
    return set().union(*(_index_of(e) or set() for e in map_.results))


# ---- what follows --------------------------------------------------------------------------------
def _follows(
    generic: Generic, made: Mapping[ir.Value, list[int] | None]
) -> dict[int, int] | None:
    """A generic's dimensions by the product's, if it is element-wise on a value made so far."""
    if any(generic.reductions) or filled_value(generic.op) is not None or loaded_buffers(generic):
        return None
    if any(op.operation.name == "linalg.index" for op in generic.body.operations):
        return None
    found: dict[int, int] | None = None
    maps = zip((*generic.inputs, *generic.outputs), (*generic.input_maps, *generic.output_maps))
    for value, map_ in maps:
        if value not in made:
            continue
        own, theirs = _dimensions(map_), made[value]
        if own is None or theirs is None or len(own) != generic.rank:
            return None
        dimensions = dict(zip(theirs, own, strict=True))
        if found not in (None, dimensions):
            return None
        found = dimensions
    outputs = [_dimensions(map_) for map_ in generic.output_maps]
    if found is None or any(o is None or len(o) != generic.rank for o in outputs):
        return None
    return found


def _keeps_apart(
    generic: Generic, product: Product, made: Mapping[ir.Value, object]
) -> bool:
    """Whether a follower writes nothing that another thread may still read, or reads what one may
    have written: what it shares with the rest is the very same elements."""
    written = {root_buffer(value) for value in made} | {root_buffer(v) for v in generic.outputs}
    read = [
        *product.generic.inputs,
        *(value for value in generic.inputs if isinstance(value.type, ir.MemRefType)),
    ]
    own = {*made, *generic.outputs}
    for value in read:
        if root_buffer(value) in written and value not in own:
            return False
    if any(root_buffer(value) in written for value in product.generic.inputs):
        return False
    # In place: read where it is written.
    for value, map_ in zip(generic.inputs, generic.input_maps, strict=True):
        for output, theirs in zip(generic.outputs, generic.output_maps, strict=True):
            if value == output and map_ != theirs:
                return False
    return True
