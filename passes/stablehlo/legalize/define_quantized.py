"""Define quantised values by their stored integers, and what is computed on them by numbers.

    add %a, %b : tensor<2x!quant.uniform<u8:f32, 0.5:128>>
        ->   %x = (convert %a - 128) * 0.5, %y the same
             convert clamp(0, round_nearest_even(add(%x, %y) / 0.5 + 128), 255) : tensor<2xui8>

This is what StableHLO's specification says (`dequantize_op_quantize`), for any storage, signed or
unsigned, and any float that values stand for. What moves values, carries them through control flow
or reduces them by a region acts on stored integers; so do comparisons, maximum and minimum of one
quantised type, since scales are positive. Leaves programs without quantised types alone.

example: test/passes/stablehlo/legalize/define_quantized.mlir
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_in
from lamina.dialects.types import dtype_of, tensor_type
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass

_MOVING = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("all_gather", "all_to_all", "bitcast_convert", "broadcast", "broadcast_in_dim"),
        *("collective_broadcast", "collective_permute", "concatenate", "constant"),
        *("dynamic_broadcast_in_dim", "dynamic_gather", "dynamic_pad", "dynamic_reshape"),
        *("dynamic_slice", "dynamic_update_slice", "gather", "get_dimension_size"),
        *("get_tuple_element", "optimization_barrier", "pad", "real_dynamic_slice", "reshape"),
        *("return", "reverse", "slice", "transpose", "tuple"),
    )
) | {"func.return", "func.call"}
_ORDERING = frozenset(("stablehlo.compare", "stablehlo.maximum", "stablehlo.minimum"))
_CONVERTING = frozenset(("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"))


class DefineQuantized(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        ops = [op for function in module.body.operations for op in _within(function.operation)]
        quantised: dict[ir.Value, Any] = {}
        for op in ops:
            for value in _values_of(op):
                if (element := _quantised(value.type)) is not None:
                    quantised[value] = element
        for op in ops:
            if op.name == "stablehlo.constant" and op.results[0] in quantised:
                op.attributes["value"] = _stored(op, quantised[op.results[0]])
        for value, element in quantised.items():
            value.set_type(tensor_type(value.type.shape, _storage(element)))
        for op in ops:
            values = [*op.operands, *op.results]
            if op.name == "func.func":
                _retype(op)
            elif any(value in quantised for value in values):
                _define(op, quantised)
                self.count("defined")


def _within(op: ir.Operation) -> Iterator[ir.Operation]:
    """An op and all in its regions."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _within(inner.operation)


def _values_of(op: ir.Operation) -> Iterator[ir.Value]:
    """The results of an op and what its blocks take."""
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.arguments


def _quantised(of: ir.Type) -> Any:
    """The element type of a tensor of quantised values; None for other types."""
    element = of.element_type if isinstance(of, ir.RankedTensorType) else None
    return element if str(element).startswith("!quant.uniform") else None


def _storage(element: Any) -> np.dtype:
    """The integers that callers hold."""
    sign, width = "" if element.is_signed else "u", element.storage_type_integral_width
    return np.dtype(getattr(ml_dtypes if width < 8 else np, f"{sign}int{width}"))


def _stored(constant: ir.Operation, element: Any) -> ir.Attribute:
    """A constant's integers, whose bits MLIR keeps in signless ones."""
    stored = array_in(constant, "value", constant.attributes["value"].type).astype(np.int64)
    if not element.is_signed:
        stored = stored & ((1 << element.storage_type_integral_width) - 1)
    of = tensor_type(constant.results[0].type.shape, _storage(element))
    return ir.DenseElementsAttr.get(np.ascontiguousarray(stored.astype(_storage(element))), type=of)


def _retype(function: ir.Operation) -> None:
    block = function.regions[0].blocks[0]
    returned = block.operations[len(block.operations) - 1].operation.operands
    types = [a.type for a in block.arguments], [v.type for v in returned]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))


def _define(op: ir.Operation, quantised: dict[ir.Value, Any]) -> None:
    if op.name in _MOVING or len(op.regions):
        return  # the verifier sees to it that they keep the quantised type
    elements = {quantised[v] for v in (*op.operands, *op.results) if v in quantised}
    with ir.InsertionPoint(op), op.location:
        if op.name in _ORDERING and len(elements) == 1:
            made = _ordered(op)
        else:
            operands = [_number(v, quantised[v]) if v in quantised else v for v in op.operands]
            made = [operands[0]] if op.name in _CONVERTING else _computed(op, operands, quantised)
            made = [
                _integer(new, quantised[old]) if old in quantised else new
                for new, old in zip(made, op.results)
            ]
    for new, old in zip(made, op.results):
        if old in quantised:
            quantised[new] = quantised[old]
        old.replace_all_uses_with(new)
    op.erase()


def _ordered(op: ir.Operation) -> list[ir.Value]:
    lhs, rhs = op.operands
    if op.name == "stablehlo.compare":
        direction = str(op.attributes["comparison_direction"]).rsplit(" ", 1)[-1].rstrip(">")
        return [hlo.compare(lhs, rhs, direction)]
    return [ir.Operation.create(op.name, results=[lhs.type], operands=[lhs, rhs]).result]


def _computed(
    op: ir.Operation, operands: list[ir.Value], quantised: dict[ir.Value, Any]
) -> list[ir.Value]:
    """The op on numbers."""
    types = [
        tensor_type(v.type.shape, _expressed(quantised[v])) if v in quantised else v.type
        for v in op.results
    ]
    attributes = {name: op.attributes[name] for name in op.attributes}
    if op.name == "stablehlo.compare":
        attributes.pop("compare_type", None)
    made = ir.Operation.create(op.name, results=types, operands=operands, attributes=attributes)
    return list(made.results)


def _expressed(element: Any) -> np.dtype:
    return dtype_of(ir.RankedTensorType.get([], element.expressed_type))


def _number(stored: ir.Value, element: Any) -> ir.Value:
    """What stored integers stand for: (stored - zero point) * scale."""
    wide = np.int32 if _storage(element).itemsize < 4 else np.int64
    scales, points = _parameters(element)
    shape = stored.type.shape
    if points.any():
        stored = hlo.subtract(hlo.convert(stored, wide), _spread(points, shape, element, wide))
    dtype = _expressed(element)
    return hlo.multiply(hlo.convert(stored, dtype), _spread(scales, shape, element, dtype))


def _integer(number: ir.Value, element: Any) -> ir.Value:
    """Stored integers of numbers, rounded to even and kept within the type's limits."""
    dtype, shape = _expressed(element), number.type.shape
    scales, points = _parameters(element)
    scaled = hlo.divide(number, _spread(scales, shape, element, dtype))
    if points.any():
        scaled = hlo.add(scaled, _spread(points, shape, element, dtype))
    with np.errstate(over="ignore"):  # what a float can't hold is no limit to it
        limits = np.array([element.storage_type_min, element.storage_type_max]).astype(dtype)
    low, high = (hlo.full(limit, (), dtype) for limit in limits)
    kept = hlo.round_nearest_even(hlo.clamp(low, scaled, high))
    return hlo.convert(kept, _storage(element))


def _parameters(element: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scales and zero points: one of each, or one along the quantised axis."""
    if hasattr(element, "scales"):
        return np.array([*element.scales]), np.array([*element.zero_points])
    return np.array([element.scale]), np.array([element.zero_point])


def _spread(values: np.ndarray, shape: list[int], element: Any, dtype: Any) -> ir.Value:
    """Parameters along all dimensions of a tensor."""
    values = values.astype(dtype)
    axis = getattr(element, "quantized_dimension", None)
    if axis is None:
        return hlo.full(values[0], shape, dtype)
    return hlo.broadcast_in_dim(hlo.constant(values), shape, [axis])
