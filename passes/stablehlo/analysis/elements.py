"""One element of what element-wise StableHLO ops make, computed where it is needed."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_of
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import arith, ir
from lamina.passes.emit.copies import remade
from lamina.passes.emit.loops import cast, extract, index, scalar_tensor
from lamina.passes.stablehlo.analysis.facts import CONSTANT, ints

Load = Callable[[ir.Value, Sequence[ir.Value]], ir.Value]
"""(value in memory, position) -> its element there, of a signless type."""


def element_of(
    value: ir.Value,
    at: Sequence[ir.Value],
    known: Mapping[ir.Value, ir.Value],
    load: Load,
    stored: Container[ir.Value] = (),
) -> ir.Value:
    """The element of a value at a position, by StableHLO on scalars that later passes lower, of the
    value's own type. `known`: values whose element there is given; `stored`: those that `load` has
    besides arguments."""
    made = {v: scalar_tensor(cast(x, v.type.element_type)) for v, x in known.items()}
    return extract(_tensor_at(value, tuple(at), made, load, stored), [])


def _tensor_at(
    value: ir.Value,
    at: tuple[ir.Value, ...],
    known: dict[ir.Value, ir.Value],
    load: Load,
    stored: Container[ir.Value],
) -> ir.Value:
    """A tensor without dimensions that holds the element; `known` ones are at this position."""
    if value in known:
        return known[value]
    element = value.type.element_type
    none = ir.RankedTensorType.get([], element)
    is_stored = isinstance(value.owner, ir.Block) or value in stored
    if is_stored or value.owner.name == "stablehlo.reshape":
        return scalar_tensor(cast(load(value, at), element))
    op = value.owner.operation
    if op.name == CONSTANT:
        number = array_of(op)[(0,) * len(value.type.shape)]
        found = hlo.full(number, [], dtype_of(value.type))
    elif op.name == "stablehlo.iota":
        dimension = ir.IntegerAttr(op.attributes["iota_dimension"]).value
        found = _of_index(at[dimension], none)
    elif op.name == "stablehlo.broadcast_in_dim":
        source = op.operands[0]
        dims = ints(op, "broadcast_dimensions")
        inner = tuple(
            at[d] if size > 1 else index(0) for d, size in zip(dims, source.type.shape, strict=True)
        )
        found = _tensor_at(source, inner, {}, load, stored)
    elif op.name == "stablehlo.transpose":
        order = ints(op, "permutation")
        before = tuple(at[order.index(d)] for d in range(len(at)))
        found = _tensor_at(op.operands[0], before, {}, load, stored)
    else:
        operands = [
            _tensor_at(v, at if v.type.shape else (), known if v.type.shape else {}, load, stored)
            for v in op.operands
        ]
        found = remade(op, [none], operands).result
    known[value] = found
    return found


def _of_index(position: ir.Value, type_: ir.RankedTensorType) -> ir.Value:
    """A position as a number."""
    element = type_.element_type
    if isinstance(element, ir.IntegerType):
        word = ir.IntegerType.get_signless(element.width)
        return scalar_tensor(cast(arith.IndexCastOp(word, position).result, element))
    word = ir.IntegerType.get_signless(64)
    number = scalar_tensor(arith.IndexCastOp(word, position).result)
    return ir.Operation.create("stablehlo.convert", results=[type_], operands=[number]).result
