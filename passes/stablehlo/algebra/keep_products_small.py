"""Keep what arrays make when broadcast against each other out of memory.

    d[i, j] = sum over k < 3 of (x[i, k] - y[j, k])^2;  r[i] = sum over j of exp(-d[i, j]) * w[j]

has a space of i by j by k that is much larger than x, y, w and r. As written, the sum over k and
the product with w each need d in memory. Some rewrites let one kernel do it all:

- a reduction over a dimension of a few elements becomes that many element-wise terms;
- the product of a matrix, made element by element, with a vector becomes a sum of products, which
  fuses with what makes the matrix;
- a reduction that keeps a dimension of a few elements, over which it spreads a smaller space, becomes
  one for each of them, s[i, k] = sum over j of f[i, j] * (x[i, k] - y[j, k]): the smaller space is
  computed once, and for all of them by one kernel.

All only where the arrays read are much smaller than the space.

example: test/passes/stablehlo/algebra/keep_products_small.mlir
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_of, is_splat
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    DotNumbers,
    computes_elements,
    defining,
    ints,
    size_of,
    splat_of,
)
from lamina.passes.stablehlo.canonicalize.rewriting import replace

_BROADCAST = "stablehlo.broadcast_in_dim"
_REDUCE, _PRODUCT = "stablehlo.reduce", "stablehlo.dot_general"
_FOLDS = {
    "stablehlo.add": hlo.add, "stablehlo.multiply": hlo.multiply, "stablehlo.maximum": hlo.maximum,
    "stablehlo.minimum": hlo.minimum,
}  # fmt: skip


class KeepProductsSmall(Pass):
    """The pass `stablehlo-keep-products-small`."""

    only_with = frozenset(("stablehlo.dot_general", "stablehlo.reduce"))

    max_terms: int = 8  # rounding
    min_size: int = 1 << 14  # rounding
    min_growth: int = 8  # rounding

    def run(self, module: ir.Module) -> None:
        ops = find_ops(module, _REDUCE, _PRODUCT)
        places = {op: place for place, op in enumerate(ops)}
        names = [op.name for op in ops]
        gone: set[int] = set()

        def forget(op: ir.Operation) -> None:
            if op in places:
                gone.add(places[op])

        for name, what, rule in (
            (_REDUCE, "reductions", self._of_few),  # in order: one is of what is made of another
            (_PRODUCT, "sums of products", self._sum_of_products),
        ):
            for place, op in enumerate(ops):
                if names[place] == name and place not in gone:
                    with ir.InsertionPoint(op), op.location:
                        result = rule(op)
                    if result is not None:
                        replace(op, [result], forget)
                        self.count(what)

    def _is_product_space(self, value: ir.Value) -> bool:
        """Whether a value is much larger than the arrays that it is made from, element by element."""
        if not value.type.has_static_shape or size_of(value.type) < self.min_size:
            return False
        most, read = size_of(value.type) // self.min_growth, 0
        seen = {value}
        work = [value]
        while work:
            at = work.pop()
            op = defining(at)
            if op is not None and op.name == CONSTANT and is_splat(op):
                continue
            if op is None or not (computes_elements(op) or op.name == _BROADCAST):
                read += size_of(at.type)
                if read > most:
                    return False
            else:
                work += [operand for operand in op.operands if operand not in seen]
                seen.update(op.operands)
        return True

    # Sums of few terms

    def _is_short_sum(self, op: ir.Operation) -> bool:
        if len(ints(op, "dimensions")) != 1:
            return False
        value = op.operands[0]
        (dimension,) = ints(op, "dimensions")
        return (
            value.type.has_static_shape
            and 0 < value.type.shape[dimension] <= self.max_terms
            and self._is_product_space(value)
        )

    def _of_few(self, op: ir.Operation) -> ir.Value | None:
        """A reduction over or beside a dimension of few elements without that dimension."""
        unrolled = self._unrolled(op)
        return self._one_by_one(op) if unrolled is None else unrolled

    def _one_by_one(self, op: ir.Operation) -> ir.Value | None:
        """A reduction for each element of a short dimension that it keeps."""
        fold = _fold_of(op)
        kept = self._kept_dimension(op) if fold is not None else None
        if fold is None or kept is None:
            return None
        value, initial = op.operands
        reduced = ints(op, "dimensions")
        rest = [d - (d > kept) for d in reduced]
        place = kept - sum(d < kept for d in reduced)
        parts = []
        for index in range(value.type.shape[kept]):
            (part,) = hlo.reduce(
                [_slice(value, kept, index, {})], [initial], rest, lambda a, b: [fold(a, b)]
            )
            shape = list(part.type.shape)
            parts.append(hlo.reshape(part, [*shape[:place], 1, *shape[place:]]))
        return hlo.concatenate(parts, place)

    def _kept_dimension(self, op: ir.Operation) -> int | None:
        """A short dimension that a reduction keeps, and over which it spreads a smaller space."""
        if not self._is_product_space(op.operands[0]):
            return None
        shape, reduced = op.operands[0].type.shape, ints(op, "dimensions")
        for dimension in range(len(shape)):
            if dimension not in reduced and 1 < shape[dimension] <= self.max_terms:
                if self._spreads_space(op.operands[0], dimension):
                    return dimension
        return None

    def _spreads_space(self, value: ir.Value, dimension: int) -> bool:
        """Whether what makes a value reads a smaller space, the same for all of a dimension."""
        work, seen = [value], {value}
        while work:
            op = defining(work.pop())
            if op is None:
                continue
            if op.name == _BROADCAST:
                (source,) = op.operands
                if dimension not in ints(op, "broadcast_dimensions") and self._is_product_space(source):
                    return True
            elif computes_elements(op):
                work += [v for v in op.operands if v not in seen and v.type.shape]
                seen.update(op.operands)
        return False

    def _unrolled(self, op: ir.Operation) -> ir.Value | None:
        fold = _fold_of(op)
        if fold is None or not self._is_short_sum(op):
            return None
        value, initial = op.operands
        (dimension,) = ints(op, "dimensions")
        total = hlo.broadcast_in_dim(initial, list(op.results[0].type.shape), ())
        for index in range(value.type.shape[dimension]):
            total = fold(total, _slice(value, dimension, index, {}))
        return total

    # Products with a vector

    def _sum_of_products(self, dot: ir.Operation) -> ir.Value | None:
        sides = self._matrix_and_vector(dot)
        if sides is None:
            return None
        matrix, vector = sides
        return sum_of_products(dot, matrix, dot.operands[vector])

    def _matrix_and_vector(self, dot: ir.Operation) -> tuple[int, int] | None:
        """The operands of a product of a matrix, made element by element, with a vector."""
        numbers = DotNumbers.of(dot)
        if numbers.lhs_batch or len(numbers.lhs_contracting) != 1:
            return None
        element = dot.results[0].type.element_type
        if not isinstance(element, (ir.F32Type, ir.F64Type)):
            return None
        if any(operand.type.element_type != element for operand in dot.operands):
            return None
        for matrix, vector in ((0, 1), (1, 0)):
            if len(dot.operands[vector].type.shape) == 1 and len(
                dot.operands[matrix].type.shape
            ) > 1 and self._is_product_space(dot.operands[matrix]):  # fmt: skip
                return matrix, vector
        return None


def sum_of_products(dot: ir.Operation, matrix: int, vector: ir.Value) -> ir.Value:
    """The product of this operand of a dot_general, its matrix, with a vector, as a reduction."""
    contracting = DotNumbers.of(dot).contracting(matrix)
    left = dot.operands[matrix]
    zero = hlo.full(0.0, (), dtype_of(left.type))
    terms = _times(left, vector, contracting)
    (total,) = hlo.reduce([terms], [zero], contracting, lambda a, b: [hlo.add(a, b)])
    return total


def _fold_of(op: ir.Operation) -> Callable[[ir.Value, ir.Value], ir.Value] | None:
    """What a reduction of one array does with two elements, if that is one op on its own type."""
    if len(op.results) != 1:
        return None
    body = [inner.operation for inner in op.regions[0].blocks[0].operations]
    if len(body) != 2 or body[0].name not in _FOLDS:
        return None
    if body[0].results[0].type.element_type != op.operands[0].type.element_type:
        return None
    return _FOLDS[body[0].name]


def _times(value: ir.Value, factor: ir.Value, dims: Sequence[int]) -> ir.Value:
    """A value times a factor that is spread along its other dimensions; or by a factor of ones."""
    if splat_of(factor) == 1:
        return value
    shape = list(value.type.shape)
    if list(factor.type.shape) != shape:  # else the two are vectors
        factor = hlo.broadcast_in_dim(factor, shape, dims)
    return hlo.multiply(value, factor)


def _slice(
    value: ir.Value, dimension: int, index: int, made: dict[tuple[ir.Value, int], ir.Value]
) -> ir.Value:
    """The elements at one index of a dimension, without that dimension: computed, not read."""
    key = (value, dimension)
    if key not in made:
        made[key] = _make_slice(value, dimension, index, made)
    return made[key]


def _make_slice(
    value: ir.Value, dimension: int, index: int, made: dict[tuple[ir.Value, int], ir.Value]
) -> ir.Value:
    shape = list(value.type.shape)
    rest = [*shape[:dimension], *shape[dimension + 1 :]]
    op = defining(value)
    if op is not None and op.name == CONSTANT and is_splat(op):
        array = array_of(op)
        return hlo.full(array[(0,) * array.ndim], rest, dtype_of(value.type))
    if op is not None and computes_elements(op):
        operands = [
            _slice(x, dimension, index, made) if x.type.shape else x for x in op.operands
        ]
        type_ = ir.RankedTensorType.get(rest, value.type.element_type)
        return remade(op, [type_], operands).result
    if op is not None and op.name == _BROADCAST:
        source = op.operands[0]
        dims = ints(op, "broadcast_dimensions")
        if dimension in dims:
            place = dims.index(dimension)
            at = index if source.type.shape[place] > 1 else 0
            source = _slice(source, place, at, {})
            dims.remove(dimension)
        if list(source.type.shape) == rest:
            return source
        return hlo.broadcast_in_dim(source, rest, [d - (d > dimension) for d in dims])
    starts = [index if d == dimension else 0 for d in range(len(shape))]
    limits = [index + 1 if d == dimension else n for d, n in enumerate(shape)]
    return hlo.reshape(hlo.slice(value, starts, limits, [1] * len(shape)), rest)
