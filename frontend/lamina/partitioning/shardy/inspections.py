"""Calls by which JAX asks how an array lies (`jax.debug.inspect_array_sharding`): answered, then gone.

    %1 = custom_call @InspectSharding(%0)   ->   the key that the call carries, and the sharding of %0
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from lamina.partitioning.shardy.meshes import WHOLE, tiles_of
from lamina.partitioning.shardy.ops import CALL, SHARDING, own_ops, target_of, walk

_INSPECTION = "InspectSharding"


def take_inspections(module: Any, devices: int) -> list[tuple[str, Any]]:
    """What is asked in a module whose shardings are known: keys in hexadecimal digits, and shardings as
    `shardings_of_main` has them; None for what a device has for itself. The calls are taken out."""
    calls = [op for op in walk(module.operation) if op.name == CALL and target_of(op) == _INSPECTION]
    own = set(own_ops(module)) if calls else set()
    found = []
    for op in calls:
        key = ir.StringAttr(op.attributes["backend_config"]).value_bytes.hex()
        found.append((key, None if op in own else _row(op, module, devices)))
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    return found


def _row(call: Any, module: Any, devices: int) -> Any:
    """How a call's array lies: Shardy takes the call for one that gives its operand back."""
    if SHARDING not in call.attributes:
        return WHOLE
    (sharding,) = sdy.TensorShardingPerValueAttr(call.attributes[SHARDING]).shardings
    return tiles_of(sdy.TensorShardingAttr(sharding), module, devices)
