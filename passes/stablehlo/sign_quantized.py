"""Give quantised values of unsigned storage a signed one that is wider.

    !quant.uniform<u8:f32, 0.5:128>    ->    !quant.uniform<i16<0:255>:f32, 0.5:128>

Both stand for the same numbers; upstream's legalisation takes every storage for a signed one.
Arguments and results of @main become what callers hold, unsigned integers, which are dequantised and
quantised there: exact, since quantising rounds. Leaves signed storage alone. Refuses what upstream
does not legalise: reductions of quantised values, and numbers other than f32 that they stand for.

example: test/passes/stablehlo/sign_quantized.mlir
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import tensor_type
from lamina.dialects.vendors import ir
from lamina.passes.base import CompileError, Pass

_NOT_LEGALISED = ("stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.sort")


@dataclass(frozen=True)
class SignQuantized(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            block = function.regions[0].blocks[0]
            _refuse(block)
            _enter(block)
            _leave(block)
            self.count("retyped", _retype(block))
            types = [a.type for a in block.arguments], [v.type for v in _return(block).operands]
            function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))


def _return(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def _quantised(of: ir.Type) -> Any:
    """The element type of a tensor of quantised values; None for other types."""
    element = of.element_type if isinstance(of, ir.RankedTensorType) else None
    return element if str(element).startswith("!quant.uniform") else None


def _refuse(block: ir.Block) -> None:
    for op in block.operations:
        of = [_quantised(v.type) for v in (*op.operands, *op.results)]
        for element in filter(None, of):
            expressed = str(element.expressed_type)
            if expressed != "f32":
                raise CompileError.at(
                    op.operation, f"has quantised values that stand for {expressed}",
                    "only those that stand for f32 are supported",
                )  # fmt: skip
        if op.operation.name in _NOT_LEGALISED and any(of):
            raise CompileError.at(
                op.operation, "is not supported on quantised values",
                "dequantise its operands (stablehlo.uniform_dequantize)",
            )  # fmt: skip


def _is_unsigned(of: ir.Type) -> bool:
    element = _quantised(of)
    return element is not None and not element.is_signed


def _unsigned(of: ir.Type) -> np.dtype:
    return np.dtype(f"uint{_quantised(of).storage_type_integral_width}")


def _signed(of: ir.Type) -> ir.Type:
    """The tensor type with signed storage."""
    e = _quantised(of)
    points = ", ".join(f"{scale!r}:{point}" for scale, point in _parameters(e))
    axis = getattr(e, "quantized_dimension", None)
    listed, at = (points, "") if axis is None else (f"{{{points}}}", f":{axis}")
    stored = f"i{2 * e.storage_type_integral_width}<{e.storage_type_min}:{e.storage_type_max}>"
    text = f"!quant.uniform<{stored}:{e.expressed_type}{at}, {listed}>"
    return ir.RankedTensorType.get(of.shape, ir.Type.parse(text))


def _parameters(element: ir.Type) -> list[tuple[float, int]]:
    if hasattr(element, "scales"):
        return list(zip(element.scales, element.zero_points))
    return [(element.scale, element.zero_point)]


def _enter(block: ir.Block) -> None:
    """Unsigned integers for arguments of quantised values."""
    for argument in block.arguments:
        of = argument.type
        if not _is_unsigned(of):
            continue
        uses = [(use.owner, use.operand_number) for use in argument.uses]
        argument.set_type(tensor_type(of.shape, _unsigned(of)))
        with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
            scales, points = _spread(of)
            number = hlo.subtract(hlo.convert(argument, np.float32), points)
            made = ir.Operation.create(
                "stablehlo.uniform_quantize", [of], [hlo.multiply(number, scales)]
            )
        for owner, position in uses:
            owner.operands[position] = made.result


def _leave(block: ir.Block) -> None:
    """Unsigned integers for results of quantised values."""
    last = _return(block)
    with ir.InsertionPoint(last), last.location:
        for position, value in enumerate(last.operands):
            of = value.type
            if not _is_unsigned(of):
                continue
            scales, points = _spread(of)
            f32 = tensor_type(of.shape, np.float32)
            number = ir.Operation.create("stablehlo.uniform_dequantize", [f32], [value]).result
            stored = hlo.round_nearest_even(hlo.add(hlo.divide(number, scales), points))
            last.operands[position] = hlo.convert(stored, _unsigned(of))


def _spread(of: ir.Type) -> tuple[ir.Value, ir.Value]:
    """Scales and zero points along all dimensions of a tensor."""
    element = _quantised(of)
    columns = np.array(_parameters(element), np.float32).T
    axis = getattr(element, "quantized_dimension", None)
    if axis is None:
        scales, points = (hlo.full(column[0], of.shape, np.float32) for column in columns)
    else:
        scales, points = (
            hlo.broadcast_in_dim(hlo.constant(c.copy()), of.shape, [axis]) for c in columns
        )
    return scales, points


def _retype(block: ir.Block) -> int:
    count = 0
    for op in block.operations:
        for result in op.results:
            if not _is_unsigned(result.type):
                continue
            count += 1
            if op.operation.name == "stablehlo.constant":
                op.operation.attributes["value"] = _widened(op.operation.attributes["value"])
            result.set_type(_signed(result.type))
        for region in op.regions:
            for inner in region.blocks:
                count += _retype(inner)
    return count


def _widened(value: ir.Attribute) -> ir.Attribute:
    """Stored integers, whose bits are unsigned ones, in twice the bits."""
    stored = np.array(ir.DenseElementsAttr(value))
    wide = stored.view(f"u{stored.itemsize}").astype(f"i{2 * stored.itemsize}")
    return ir.DenseElementsAttr.get(np.ascontiguousarray(wide))
