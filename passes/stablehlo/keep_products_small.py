"""Keep what arrays make when broadcast against each other out of memory.

    d[i, j] = sum over k < 3 of (x[i, k] - y[j, k])^2;  r[i] = sum over j of exp(-d[i, j]) * w[j]

has a space of i by j by k that is much larger than x, y, w and r. As written, the sum over k and
the product with w each need d in memory. Two rewrites let one kernel do it all:

- a reduction over a dimension of a few elements becomes that many element-wise terms;
- the product of a matrix, made element by element, with a vector becomes a sum of products, which
  fuses with what makes the matrix.

Both only where the arrays read are much smaller than the space.

example: test/passes/stablehlo/keep_products_small.mlir
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_of, is_splat
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.base import Pass
from lamina.passes.find import find_ops
from lamina.passes.stablehlo.facts import (
    CONSTANT,
    COSTLY,
    DotNumbers,
    computes_elements,
    defining,
    has_one_use,
    ints,
    size_of,
)

_BROADCAST = "stablehlo.broadcast_in_dim"
_REDUCE, _PRODUCT = "stablehlo.reduce", "stablehlo.dot_general"
_FOLDS = {
    "stablehlo.add": hlo.add, "stablehlo.multiply": hlo.multiply, "stablehlo.maximum": hlo.maximum,
    "stablehlo.minimum": hlo.minimum,
}  # fmt: skip


@dataclass(frozen=True)
class KeepProductsSmall(Pass):
    """The pass `stablehlo-keep-products-small`."""

    only_with = frozenset((_REDUCE, _PRODUCT))

    max_terms: int = 8
    min_size: int = 1 << 14
    min_growth: int = 8

    def run(self, module: ir.Module) -> None:
        sums: list[ir.Operation] = []
        products: list[ir.Operation] = []
        for op in find_ops(module, _REDUCE, _PRODUCT):
            (sums if op.name == _REDUCE else products).append(op)
        for op in sums:
            if self._is_short_sum(op):
                with ir.InsertionPoint(op), op.location:
                    result = self._unrolled(op)
                op.results[0].replace_all_uses_with(result)
                op.erase()
                self.count("unrolled")
        for op in products:
            sides = self._matrix_and_vector(op)
            if sides is not None:
                with ir.InsertionPoint(op), op.location:
                    result = _sum_of_products(op, *sides)
                op.results[0].replace_all_uses_with(result)
                op.erase()
                self.count("products")

    def _is_product_space(self, value: ir.Value) -> bool:
        """Whether a value is much larger than the arrays that it is made from, element by element."""
        if not value.type.has_static_shape or size_of(value.type) < self.min_size:
            return False
        leaves: dict[ir.Value, int] = {}
        work = [value]
        while work:
            at = work.pop()
            op = defining(at)
            if at in leaves or (op is not None and op.name == CONSTANT and is_splat(op)):
                continue
            if op is None or not (computes_elements(op) or op.name == _BROADCAST):
                leaves[at] = size_of(at.type)
            else:
                if op.name in COSTLY and not has_one_use(at):
                    return False
                work += op.operands
        return value not in leaves and sum(leaves.values()) * self.min_growth <= size_of(value.type)

    # Sums of few terms

    def _is_short_sum(self, op: ir.Operation) -> bool:
        if len(op.results) != 1 or len(ints(op, "dimensions")) != 1:
            return False
        body = [inner.operation for inner in op.regions[0].blocks[0].operations]
        if len(body) != 2 or body[0].name not in _FOLDS:
            return False
        value = op.operands[0]
        if body[0].results[0].type.element_type != value.type.element_type:
            return False
        (dimension,) = ints(op, "dimensions")
        return (
            value.type.has_static_shape
            and 0 < value.type.shape[dimension] <= self.max_terms
            and self._is_product_space(value)
        )

    def _unrolled(self, op: ir.Operation) -> ir.Value:
        value, initial = op.operands
        (dimension,) = ints(op, "dimensions")
        fold = _FOLDS[op.regions[0].blocks[0].operations[0].operation.name]
        total = hlo.broadcast_in_dim(initial, list(op.results[0].type.shape), ())
        for index in range(value.type.shape[dimension]):
            total = fold(total, _slice(value, dimension, index, {}))
        return total

    # Products with a vector

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
        attributes = {name: op.attributes[name] for name in op.attributes}
        return ir.Operation.create(
            op.name, results=[type_], operands=operands, attributes=attributes
        ).result
    if op is not None and op.name == _BROADCAST:
        source = op.operands[0]
        dims = ints(op, "broadcast_dimensions")
        if dimension in dims:
            place = dims.index(dimension)
            at = index if source.type.shape[place] > 1 else 0
            source = _slice(source, place, at, {})
            dims.remove(dimension)
        return hlo.broadcast_in_dim(source, rest, [d - (d > dimension) for d in dims])
    starts = [index if d == dimension else 0 for d in range(len(shape))]
    limits = [index + 1 if d == dimension else n for d, n in enumerate(shape)]
    return hlo.reshape(hlo.slice(value, starts, limits, [1] * len(shape)), rest)


def _sum_of_products(dot: ir.Operation, matrix: int, vector: int) -> ir.Value:
    numbers = DotNumbers.of(dot)
    contracting = (numbers.lhs_contracting, numbers.rhs_contracting)[matrix]
    left, right = dot.operands[matrix], dot.operands[vector]
    spread = hlo.broadcast_in_dim(right, list(left.type.shape), contracting)
    dtype = dtype_of(left.type)
    zero = hlo.full(0.0, (), dtype)
    (total,) = hlo.reduce(
        [hlo.multiply(left, spread)], [zero], contracting, lambda a, b: [hlo.add(a, b)]
    )
    return total
