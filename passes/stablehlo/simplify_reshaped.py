"""The rule of `stablehlo-simplify` that moves reshapes down, past element-wise ops.

`log(reshape(x))` becomes `reshape(log(x))`, so that the `log` can join what makes `x`, and the
reshape what spreads the result: a mean with kept dimensions is a reduction, a reshape that adds a
dimension of 1, element-wise ops and a broadcast. Left alone where a user would see the old shape
beside other arrays of it: those belong into one kernel with the op.
"""

from __future__ import annotations

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.facts import ELEMENTWISE, computes_elements, defining, splat_of
from lamina.passes.stablehlo.rewriting import Rule, needs_operand_of

_DEPTH = 4
_ABSORBING = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")


@needs_operand_of("reshape")
def _of_reshapes(op: ir.Operation) -> ir.Value | None:
    """An op on arrays reshaped from one shape -> the op on them, reshaped."""
    source = _source_shape(op)
    if source is None or not computes_elements(op):
        return None
    for use in op.results[0].uses:
        user = use.owner.operation
        if user.name not in _ABSORBING and not _comes_from(user, source, _DEPTH):
            return None
    operands = [_before_reshape(value, source) for value in op.operands]
    of = ir.RankedTensorType.get(source, op.results[0].type.element_type)
    attributes = {name: op.attributes[name] for name in op.attributes}
    moved = ir.Operation.create(op.name, results=[of], operands=operands, attributes=attributes)
    return hlo.reshape(moved.result, op.results[0].type.shape)


def _source_shape(op: ir.Operation) -> list[int] | None:
    """The shape that an op's reshaped operands all have before; None if there is no such one."""
    if not op.results[0].type.shape:
        return None  # a scalar operand is not told from one that stands beside larger ones
    found = None
    for value in op.operands:
        producer = defining(value)
        if producer is not None and producer.name == "stablehlo.reshape":
            shape = producer.operands[0].type.shape
            if found is not None and shape != found:
                return None
            found = shape
        elif value.type.shape and splat_of(value) is None:
            return None
    return found


def _comes_from(op: ir.Operation, source: list[int], depth: int) -> bool:
    """Whether an op's operands are, or will be, reshaped from arrays of a shape."""
    if not computes_elements(op) or depth == 0:
        return False
    for value in op.operands:
        producer = defining(value)
        if not value.type.shape:
            continue
        if producer is None:
            return False
        if producer.name == "stablehlo.reshape":
            if producer.operands[0].type.shape != source:
                return False
        elif splat_of(value) is None and not _comes_from(producer, source, depth - 1):
            return False
    return True


def _before_reshape(value: ir.Value, shape: list[int]) -> ir.Value:
    if not value.type.shape:
        return value
    producer = defining(value)
    assert producer is not None
    if producer.name == "stablehlo.reshape":
        return producer.operands[0]
    return hlo.full(splat_of(value), shape, dtype_of(value.type))


RULES: dict[str, tuple[Rule, ...]] = {name: (_of_reshapes,) for name in ELEMENTWISE}
