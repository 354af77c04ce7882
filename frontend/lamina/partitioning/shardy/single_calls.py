"""Calls with effects of a program on whole arrays: one call, not one of each device."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from lamina.partitioning.shardy.meshes import table
from lamina.partitioning.shardy.ops import CALL, SHARDING, is_of_each_device, own_ops, walk

_ONCE = "lamina.once"
"""Of a custom call that only one device is to make."""


def mark_calls_made_once(module: Any) -> None:
    """Custom calls with effects outside of manual computations are one call, not one of each device; but for those
    that JAX wants of each device, with its part of the arrays (`debug.print(..., partitioned=True)`)."""
    own = set(own_ops(module))
    for op in walk(module.operation):
        if op.name != CALL or op in own:
            continue
        if is_of_each_device(op):
            if SHARDING in op.attributes:  # JAX says of these, too, that they are the first device's
                del op.attributes[SHARDING]
        elif _has_effects(op):
            op.attributes[_ONCE] = ir.UnitAttr.get()


def _has_effects(call: Any) -> bool:
    name = "has_side_effect"
    has = name in call.attributes and call.attributes[name].value
    return has and all(_is_array(result) or _is_token(result) for result in call.results)


def _is_array(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _is_token(value: Any) -> bool:
    return str(value.type) == "!stablehlo.token"


def make_calls_once(module: Any, devices: int) -> None:
    """Has the first device alone make the calls that are marked, and tell the others what they give. Calls are
    made in the order in which they are written, which is that of their tokens."""
    for call in [op for op in walk(module.operation) if _ONCE in op.attributes]:
        del call.attributes[_ONCE]
        results = [result for result in call.results if _is_array(result)]
        types = [result.type for result in results]
        everyone = table([list(range(devices))])
        with ir.InsertionPoint(call), call.location:
            zero = _zeros(ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32)))
            first = stablehlo.compare(
                stablehlo.partition_id(), zero, stablehlo.ComparisonDirectionAttr.get("EQ")
            )
            guard = stablehlo.IfOp(types, first).operation
            shared = [_of_the_first(result, everyone) for result in guard.results]
        for result, value in zip(results, shared, strict=True):
            result.replace_all_uses_with(value)
        for result in filter(_is_token, call.results):
            result.replace_all_uses_with(_token_before(call, guard))
        then, otherwise = (region.blocks.append() for region in guard.regions)
        with ir.InsertionPoint(then), call.location:
            last = stablehlo.return_(results)
        with ir.InsertionPoint(otherwise), call.location:
            stablehlo.return_([_zeros(type) for type in types])
        call.move_before(last if isinstance(last, ir.Operation) else last.operation)


def _token_before(call: Any, place: Any) -> Any:
    with ir.InsertionPoint(place), call.location:
        made = next(filter(_is_token, call.operands), None)
        return stablehlo.create_token() if made is None else made


def _of_the_first(value: Any, everyone: Any) -> Any:
    """What the first device has, on all."""
    op = ir.Operation.create(
        "stablehlo.collective_broadcast",
        results=[value.type],
        operands=[value],
        attributes={"replica_groups": everyone},
    )
    return op.result


def _zeros(type: Any) -> Any:
    of = str(type.element_type)
    zero = "0.0" if of.startswith(("f", "bf")) else "false" if of == "i1" else "0"
    zero = "(0.0, 0.0)" if of.startswith("complex") else zero
    return stablehlo.constant(ir.Attribute.parse(f"dense<{zero}> : {type}"))
