"""Calls of functions whose user says how they are partitioned (`jax.custom_partitioning`).

    %1 = custom_call @CustomSPMDPartitioning(%0)   ->   %1 = sdy.manual_computation(%0) ... { func.call @own }

Which part of each array a device has, and the function that it runs on its parts, the user's own function says
in the process that asked: once the shardings are known, it is told them, and the program is partitioned anew
with what it answered. `@own` is the @main of a module that comes with the answer.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, sdy

from lamina.partitioning.shardy.meshes import WHOLE, Mesh, mesh_of, tiles_of, write_groups_out
from lamina.partitioning.shardy.one_mesh import SeveralMeshes, parts_of, split
from lamina.partitioning.shardy.ops import CALL, SHARDING, own_ops, target_of, walk

_CALLED = "CustomSPMDPartitioning"


def custom_calls(module: Any) -> list[Any]:
    """Those of a module, in the order in which they are asked for and answered."""
    calls = [op for op in walk(module.operation) if op.name == CALL and target_of(op) == _CALLED]
    own = set(own_ops(module)) if calls else set()
    if any(call in own for call in calls):
        raise ValueError("custom_partitioning within shard_map over some axes of the mesh")
    return calls


def questions(module: Any, calls: list[Any], devices: int) -> list[dict[str, Any]]:
    """What the user's function is told of each: its key, types and shardings."""
    return [
        {
            "key": ir.StringAttr(call.attributes["backend_config"]).value,
            "operands": [[str(x.type), _row(_sharding_of(x), module, devices)] for x in call.operands],
            "results": [[str(x.type), _row(_sharding_of(x), module, devices)] for x in call.results],
        }
        for call in calls
    ]


def _row(sharding: Any, module: Any, devices: int) -> Any:
    return WHOLE if sharding is None else tiles_of(sharding, module, devices)


def _sharding_of(value: Any) -> Any:
    """How an array lies, None where nothing says it."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        place, holder = value.arg_number, owner.owner.operation
    else:
        place, holder = ir.OpResult(value).result_number, owner
    if holder.name == "func.func":
        if "arg_attrs" not in holder.attributes:
            return None
        given = ir.DictAttr(ir.ArrayAttr(holder.attributes["arg_attrs"])[place])
        return sdy.TensorShardingAttr(given[SHARDING]) if SHARDING in given else None
    if "sharding" in holder.attributes:  # of an op of Shardy's
        return sdy.TensorShardingAttr(holder.attributes["sharding"])
    if SHARDING in holder.attributes:  # a loop's, too: what it carries lies as its results do
        return sdy.TensorShardingAttr(
            sdy.TensorShardingPerValueAttr(holder.attributes[SHARDING]).shardings[place]
        )
    return None


def make_parts(module: Any, calls: list[Any], answers: list[dict[str, Any]], symbol: str) -> None:
    """Puts what was answered in the calls' places; `symbol` is the mesh of all devices."""
    mesh = mesh_of(ir.SymbolTable(module.operation)[symbol].operation.attributes["mesh"], sdy)
    for i, (call, answer) in enumerate(zip(calls, answers, strict=True)):
        own = ir.Module.parse(bytes.fromhex(answer["code"]))
        write_groups_out(own)
        main = _take_functions(own, module, f"custom_partitioning_{i}")
        inputs, outputs = (
            [sharding_of_tiles(symbol, mesh, x.type.rank, *row) for x, row in zip(values, rows, strict=True)]
            for values, rows in ((call.operands, answer["inputs"]), (call.results, answer["outputs"]))
        )
        whole = [sharding_of_tiles(symbol, mesh, x.type.rank, [], []) for x in call.results]
        wanted = [_sharding_of(x) or one for x, one in zip(call.results, whole, strict=True)]
        with ir.InsertionPoint(call), call.location:
            operands = list(map(_lying, call.operands, inputs))
            made = _manual(main, [x.type for x in call.results], operands, inputs, outputs, mesh)
            for old, new in zip(call.results, map(_lying, made, wanted), strict=True):
                old.replace_all_uses_with(new)
        call.erase()


def _lying(value: Any, sharding: Any) -> Any:
    """An array that lies so, of one that may lie otherwise."""
    return sdy.ReshardOp(value, sharding).result


def _manual(
    function: Any, types: list[Any], operands: list[Any], inputs: list[Any], outputs: list[Any], mesh: Mesh
) -> list[Any]:
    """What a function gives that each device calls with its parts."""
    lie, made = map(sdy.TensorShardingPerValueAttr.get, (inputs, outputs))
    axes = sdy.ManualAxesAttr.get([ir.StringAttr.get(name) for name in mesh.sizes])
    manual: Any = sdy.ManualComputationOp(types, operands, lie, made, axes)
    own: Any = function.attributes["function_type"].value
    block = manual.operation.regions[0].blocks.append(*own.inputs)
    with ir.InsertionPoint(block):
        called = func.CallOp(own.results, function.attributes["sym_name"].value, list(block.arguments))
        sdy.ReturnOp(list(called.operation.results))
    return list(manual.operation.results)


def _take_functions(own: Any, module: Any, begin: str) -> Any:
    """Copies the functions of a module into another, with names that begin so; gives what was its @main."""
    known, table = ir.SymbolTable(module.operation), ir.SymbolTable(own.operation)
    for op in walk(own.operation):
        if op.name.startswith("sdy.") and op.name != "sdy.mesh":
            raise ValueError(f"a function of custom_partitioning has {op.name}")
    functions = [op.operation for op in own.body.operations if op.operation.name == "func.func"]
    main = functions.index(table["main"].operation)
    for function in functions:
        name = function.attributes["sym_name"].value
        fresh = f"{begin}_{name}"
        while fresh in known or fresh in table:
            fresh += "_"
        ir.SymbolTable.replace_all_symbol_uses(name, fresh, own.operation)
        ir.SymbolTable.set_symbol_name(function, fresh)
        ir.SymbolTable.set_visibility(function, "private")
    with ir.InsertionPoint(module.body):
        return [function.clone() for function in functions][main]


def sharding_of_tiles(symbol: str, mesh: Mesh, rank: int, tiles: list[int], ids: list[int]) -> Any:
    """How an array lies whose parts, in this order, these devices have. Raises SeveralMeshes where no
    axes of the mesh say it."""
    if not ids:
        return sdy.TensorShardingAttr.get(symbol, [sdy.DimensionShardingAttr.get([], True)] * rank)
    places = [mesh.devices.index(device) for device in ids]
    axes = []
    for d, count in enumerate(tiles):
        step = len(places) // prod(tiles[: d + 1])
        axes.append(_axes(places[: step * count : step], mesh))
    if mesh.rows(axes)[0] != ids:
        raise SeveralMeshes("a function of custom_partitioning wants parts that no axes of the mesh say")
    dimensions = [
        [
            sdy.AxisRefAttr.get(
                name, None if size == mesh.sizes[name] else sdy.SubAxisInfoAttr.get(before, size)
            )
            for name, before, size in of
        ]
        for of in axes
    ]
    return sdy.TensorShardingAttr.get(symbol, [sdy.DimensionShardingAttr.get(of, True) for of in dimensions])


def _axes(places: list[int], mesh: Mesh) -> list[tuple[str, int, int]]:
    """The axes, or parts of some, along which an array's parts lie at these places of a mesh."""
    if len(places) == 1:
        return []
    step, count = places[1] - places[0], 2
    while count < len(places) and places[count] - places[0] == count * step:
        count += 1
    outer = _axes(places[::count], mesh)
    inner = split((step, count), parts_of(mesh.sizes))
    return outer + [(name, *(part or (1, mesh.sizes[name]))) for name, part in inner]
