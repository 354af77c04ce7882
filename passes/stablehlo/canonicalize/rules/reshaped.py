"""The rules of `stablehlo-simplify` that move reshapes down, past element-wise ops and reductions.

`log(reshape(x))` becomes `reshape(log(x))`, so that the `log` can join what makes `x`, and the
reshape what spreads the result: a mean with kept dimensions is a reduction, a reshape that adds a
dimension of 1, element-wise ops and a broadcast. Left alone where a user would see the old shape
beside other arrays of it: those belong into one kernel with the op. A reduction takes an array without
the dimensions of one that it was given, and before dimensions that stay were joined.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.emit.copies import remade
from lamina.passes.stablehlo.analysis.facts import (
    ELEMENTWISE,
    computes_elements,
    defining,
    ints,
    splat_of,
)
from lamina.passes.stablehlo.analysis.reassociation import grouped_dimensions
from lamina.passes.stablehlo.analysis.reshaped_slice import dropped_dimensions, is_repeated
from lamina.passes.stablehlo.canonicalize.rewriting import Rule, needs_operand_of

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
            if user.name != "stablehlo.reduce" or _long(source) != _long(shape_of(op.results[0].type)):
                return None
    operands = [_before_reshape(value, source) for value in op.operands]
    of = ir.RankedTensorType.get(source, op.results[0].type.element_type)
    return hlo.reshape(remade(op, [of], operands).result, op.results[0].type.shape)


def _source_shape(op: ir.Operation) -> list[int] | None:
    """The shape that an op's reshaped operands all have before; None if there is no such one."""
    if not op.results[0].type.shape:
        return None  # a scalar operand is not told from one that stands beside larger ones
    found = None
    for value in op.operands:
        if not value.type.shape:  # it stands beside larger ones (a select's predicate)
            continue
        producer = defining(value)
        if producer is not None and producer.name == "stablehlo.reshape":
            shape = producer.operands[0].type.shape
            if found is not None and shape != found:
                return None
            if dropped_dimensions(producer.operands[0], value.type.shape) is not None:
                if not is_repeated(op.results[0]):
                    return None  # the array is read in the new shape
            found = shape
        elif splat_of(value) is None:
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


@needs_operand_of("reshape")
def _reduction_of_reshaped(op: ir.Operation) -> ir.Value | None:
    """Of an array that was given dimensions of one, or of which dimensions that stay were joined or split
    -> of the array."""
    producer = defining(op.operands[0])
    if len(op.results) != 1 or producer is None or producer.name != "stablehlo.reshape":
        return None
    source = producer.operands[0]
    before, after = shape_of(source.type), shape_of(op.operands[0].type)
    place = _place_of_long(before, after) or _place_of_kept(before, after)
    long = [d for d in ints(op, "dimensions") if after[d] != 1]
    if not long or any(d not in place for d in long):
        return None
    return hlo.reshape(reduced(op, source, sorted(place[d] for d in long)), shape_of(op.results[0].type))


def reduced(op: ir.Operation, source: ir.Value, dimensions: Sequence[int]) -> ir.Value:
    """What a reduction, whose body this takes, makes of another array's dimensions."""
    shape = [size for d, size in enumerate(shape_of(source.type)) if d not in dimensions]
    of = ir.RankedTensorType.get(shape, op.results[0].type.element_type)
    listed = ir.DenseI64ArrayAttr.get(dimensions)
    copy = remade(op, [of], [source, op.operands[1]], regions=1, dimensions=listed)
    op.regions[0].blocks[0].append_to(copy.regions[0])
    return copy.result


def _place_of_long(before: Sequence[int], after: Sequence[int]) -> dict[int, int]:
    """Where each long dimension was before a reshape that only puts in or leaves out ones."""
    if len(before) == len(after) or _long(before) != _long(after):
        return {}
    return dict(zip(_long_dimensions(after), _long_dimensions(before), strict=True))


def _place_of_kept(before: Sequence[int], after: Sequence[int]) -> dict[int, int]:
    """Where each dimension was that a reshape neither joins nor splits, if there were more before: what
    is summed in fewer dimensions would be read in larger steps."""
    groups = grouped_dimensions(before, after) if len(before) > len(after) else None
    return {new[0]: old[0] for old, new in groups or () if len(old) == len(new) == 1}


def _long_dimensions(shape: Sequence[int]) -> list[int]:
    return [d for d, size in enumerate(shape) if size != 1]


def _long(shape: Sequence[int]) -> list[int]:
    """A shape without its dimensions of one."""
    return [size for size in shape if size != 1]


RULES: dict[str, tuple[Rule, ...]] = {name: (_of_reshapes,) for name in ELEMENTWISE} | {
    "stablehlo.reduce": (_reduction_of_reshaped,)
}
