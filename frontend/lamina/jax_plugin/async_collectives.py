"""Collectives that JAX writes as a start and an end, as the collectives that they are.

    %1 = custom_call @"all-gather-start"(%0) {mhlo.frontend_attributes = {async_collective_config = "{...}"}}
    %2 = custom_call @"all-gather-done"(%1)
        ->
    %2 = all_gather %0

The devices are threads of one process: there is nothing to wait for in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

_CALL = "stablehlo.custom_call"
_ATTRIBUTES, _CONFIG = "mhlo.frontend_attributes", "async_collective_config"


def join_async_collectives(module: Any) -> None:
    """Puts collectives in the place of their starts, and results in that of their ends.

    Raises NotImplementedError where a start's result is none of the collective's.
    """
    from lamina.dialects.vendors import ir
    from lamina.passes.framework.find import find_ops

    functions = ir.SymbolTable(module.operation)
    for call in find_ops(module, _CALL):
        target = ir.StringAttr(call.attributes["call_target_name"]).value
        if target.removesuffix("-start") in _COLLECTIVES and target.endswith("-start"):
            with ir.InsertionPoint(call), call.location:
                _replace(call, _collective(call, target.removesuffix("-start"), functions))
        elif target.removesuffix("-done") in _COLLECTIVES and target.endswith("-done"):
            _replace(call, call.operands[0])


def _replace(call: Any, value: Any) -> None:
    call.results[0].replace_all_uses_with(value)
    call.erase()


def _collective(call: Any, name: str, functions: Any) -> Any:
    from lamina.dialects.vendors import ir

    given = ir.DictAttr(call.attributes[_ATTRIBUTES])[_CONFIG]
    config = json.loads(ir.StringAttr(given).value)
    made = _COLLECTIVES[name](call.operands[0], config, lambda: _body(call, functions))
    wanted = call.results[0].type
    if made.type != wanted:
        raise NotImplementedError(f"{name}-start gives {wanted}, where {name} gives {made.type}")
    return made


def _body(call: Any, functions: Any) -> Callable[[Any, Any], Any]:
    """What the function that a call names makes of two scalars."""
    from lamina.dialects.vendors import ir

    name = ir.FlatSymbolRefAttr(ir.ArrayAttr(call.attributes["called_computations"])[0]).value
    block = functions[name].operation.regions[0].blocks[0]

    def combined(lhs: Any, rhs: Any) -> Any:
        known = dict(zip(block.arguments, (lhs, rhs), strict=True))
        *ops, last = (view.operation for view in block.operations)
        for op in ops:
            copy = op.clone().operation
            for i, operand in enumerate(op.operands):
                copy.operands[i] = known[operand]
            known.update(zip(op.results, copy.results, strict=True))
        return known[last.operands[0]]

    return combined


def _all_gather(x: Any, config: dict[str, Any], body: Any) -> Any:
    from lamina.dialects import stablehlo as hlo

    dim = config["all_gather_dimension"]
    return hlo.all_gather(x, dim, config["replica_groups"], config["channel_id"])


def _all_reduce(x: Any, config: dict[str, Any], body: Any) -> Any:
    from lamina.dialects import stablehlo as hlo

    return hlo.all_reduce(x, config["replica_groups"], config["channel_id"], body())


def _reduce_scatter(x: Any, config: dict[str, Any], body: Any) -> Any:
    from lamina.dialects import stablehlo as hlo

    dim = config["scatter_dimension"]
    return hlo.reduce_scatter(x, dim, config["replica_groups"], config["channel_id"], body())


def _all_to_all(x: Any, config: dict[str, Any], body: Any) -> Any:
    from lamina.dialects import stablehlo as hlo

    dims = config["split_dimension"], config["concat_dimension"]
    return hlo.all_to_all(x, *dims, config["replica_groups"], config["channel_id"])


def _collective_permute(x: Any, config: dict[str, Any], body: Any) -> Any:
    from lamina.dialects import stablehlo as hlo

    return hlo.collective_permute(x, config["permutation"], config["channel_id"])


_COLLECTIVES = {
    "all-gather": _all_gather,
    "all-reduce": _all_reduce,
    "reduce-scatter": _reduce_scatter,
    "all-to-all": _all_to_all,
    "collective-permute": _collective_permute,
}
