"""Reading softmax(score(q k^T)) v off StableHLO ops."""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    DotNumbers,
    computes_elements,
    defining,
    has_one_use,
    ints,
    made_by,
    reducer_of,
    splat_of,
)
from lamina.records import Record

_BROADCAST, _IOTA = "stablehlo.broadcast_in_dim", "stablehlo.iota"


class Attention(Record):
    """`values` is the product with v; the scores of one query are along `keys_dim` of `scores`, whose
    elements come from those of `product`, q k^T, by `ops`, each element by itself."""

    values: ir.Operation
    probabilities: ir.Value
    """What `values` multiplies with v."""
    scores: ir.Value
    product: ir.Operation
    keys_dim: int
    ops: tuple[ir.Operation, ...]
    """All between `product` and `values`, those of softmax too, in no order."""

    @property
    def queries_operand(self) -> int:
        """Which operand of `product` is q: the other one has the dimension of keys."""
        numbers = DotNumbers.of(self.product)
        lhs = self.product.operands[0].type
        free = len(numbers.lhs_free(len(lhs.shape)))
        return 1 if self.keys_dim < len(numbers.lhs_batch) + free else 0

    @property
    def probabilities_operand(self) -> int:
        """Which operand of `values` is softmax's result."""
        return 0 if self.values.operands[0] == self.probabilities else 1

    @classmethod
    def of(cls, values: ir.Operation) -> Attention | None:
        """What a dot_general is the last op of; None for any other."""
        if values.name != "stablehlo.dot_general":
            return None
        numbers = DotNumbers.of(values)
        for place, contracting in ((0, numbers.lhs_contracting), (1, numbers.rhs_contracting)):
            if len(contracting) == 1:
                found = cls._of(values, values.operands[place], contracting[0])
                if found is not None and found._fits():
                    return found
        return None

    @classmethod
    def _of(cls, values: ir.Operation, probabilities: ir.Value, dim: int) -> Attention | None:
        softmax = _softmax(probabilities, dim)
        if softmax is None:
            return None
        scores, ops = softmax
        inside = {*ops, values}
        found = _scored(scores, inside)
        if found is None:
            return None
        product, more = found
        return cls(values, probabilities, scores, product, dim, (*ops, *more))

    def _fits(self) -> bool:
        """Whether the products are of matrices with one width and one dimension of keys."""
        product, values = DotNumbers.of(self.product), DotNumbers.of(self.values)
        q, k = self.queries_operand, 1 - self.queries_operand
        p = self.probabilities_operand
        types = [operand.type for operand in self.product.operands]
        free = (product.lhs_free(len(types[0].shape)), product.rhs_free(len(types[1].shape)))
        v = self.values.operands[1 - p].type
        v_free = (values.rhs_free if p == 0 else values.lhs_free)(len(v.shape))
        p_batch = values.lhs_batch if p == 0 else values.rhs_batch
        return (
            len(product.lhs_contracting) == len(free[k]) == len(v_free) == 1
            and len(free[q]) >= 1
            and sorted(p_batch) == list(range(len(product.lhs_batch)))
        )


def _softmax(
    value: ir.Value, dim: int
) -> tuple[ir.Value, list[ir.Operation]] | None:
    """The argument of a softmax along a dimension, and its ops; nobody else may use what they make."""
    ops: list[ir.Operation] = []

    def only(value: ir.Value, name: str) -> ir.Operation | None:
        op = made_by(value, name)
        if op is None or not has_one_use(value):
            return None
        ops.append(op)
        return op

    def before_conversion(value: ir.Value) -> ir.Value:
        op = made_by(value, "stablehlo.convert")
        if op is None or not has_one_use(value):
            return value
        ops.append(op)
        return op.operands[0]

    value = before_conversion(value)
    quotient = only(value, "stablehlo.divide")
    if quotient is None:
        return None
    powers, below = quotient.operands
    spread = only(below, _BROADCAST)
    total = None
    if spread is not None:
        total = only(before_conversion(spread.operands[0]), "stablehlo.reduce")
    power = made_by(powers, "stablehlo.exponential")
    if spread is None or total is None or power is None:
        return None
    ops.append(power)
    difference = only(power.operands[0], "stablehlo.subtract")
    summed = before_conversion(total.operands[0])
    if summed != powers or difference is None or not _reduces(total, "stablehlo.add", dim, 0.0):
        return None
    scores, highest = difference.operands
    raised = only(highest, _BROADCAST)
    top = only(raised.operands[0], "stablehlo.reduce") if raised is not None else None
    if raised is None or top is None:
        return None
    if top.operands[0] != scores or not _reduces(top, "stablehlo.maximum", dim, -float("inf")):
        return None
    rank = len(scores.type.shape)
    others = [d for d in range(rank) if d != dim]
    if any(ints(op, "broadcast_dimensions") != others for op in (spread, raised)):
        return None
    if len(list(powers.uses)) != 2 or len(list(scores.uses)) != 2:
        return None
    return scores, ops


def _reduces(op: ir.Operation, name: str, dim: int, initial: float) -> bool:
    return (
        len(op.operands) == 2
        and reducer_of(op) == name
        and ints(op, "dimensions") == [dim]
        and splat_of(op.operands[1]) == initial
    )


def _scored(
    scores: ir.Value, users: set[ir.Operation]
) -> tuple[ir.Operation, list[ir.Operation]] | None:
    """The one product that scores come from by element-wise ops, which nobody else uses, and these
    ops; ops on smaller arrays, such as masks, may have other users."""
    ops: dict[ir.Operation, None] = {}
    product: ir.Operation | None = None
    work = [scores]
    while work:
        value = work.pop()
        op = defining(value)
        if op is None or op in ops or (product is not None and op == product):
            continue
        if op.name == "stablehlo.dot_general" and list(value.type.shape) == list(scores.type.shape):
            if product is not None:
                return None
            product = op
        elif op.name in (CONSTANT, _IOTA, _BROADCAST) or computes_elements(op):
            if op.name == CONSTANT and splat_of(value) is None:
                continue  # read from memory
            ops[op] = None
            work += op.operands
    if product is None:
        return None
    inside = users | set(ops)
    if not _is_private(product, inside):
        return None
    depends = _depending(product, ops)
    if depends is None or any(not _is_private(op, inside) for op in depends):
        return None
    return product, list(ops)


def _depending(
    product: ir.Operation, ops: dict[ir.Operation, None]
) -> set[ir.Operation] | None:
    """The ops that use the product, directly or not; None if one does not use just the same
    element."""
    found = {product}
    changed = True
    while changed:
        changed = False
        for op in ops:
            if op in found or not any(defining(v) in found for v in op.operands):
                continue
            if op.name == _BROADCAST:
                return None
            found.add(op)
            changed = True
    return found - {product}


def _is_private(op: ir.Operation, inside: set[ir.Operation]) -> bool:
    return all(use.owner.operation in inside for result in op.results for use in result.uses)
