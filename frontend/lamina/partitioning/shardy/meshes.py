"""Meshes: which devices have which part, and which of them form a group."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from lamina.partitioning.shardy.ops import walk

_SIDES = {"inputs": "sdy.parameters_shardings", "outputs": "sdy.output_shardings"}
_Row = tuple[list[int], int, list[int], int, str, list[list[str]], list[str]]
WHOLE: _Row = ([], 1, [], 1, "", [], [])


class Mesh:
    """Devices in an array with named axes, some of them split in two or more."""

    def __init__(self, sizes: dict[str, int], devices: list[int]) -> None:
        self.sizes = sizes
        self.devices = devices or list(range(prod(sizes.values())))

    def rows(self, axes: list[list[tuple[str, int, int]]]) -> tuple[list[int], list[int]]:
        """The devices, in the order of an array of one dimension for each list of axes and a last one for all other
        axes, and the sizes of its dimensions. An axis is a name, the product of the sizes before it in
        the axis of this name, and its size."""
        cuts: dict[str, set[int]] = {name: {1, size} for name, size in self.sizes.items()}
        for name, before, size in (axis for group in axes for axis in group):
            cuts[name] |= {before, before * size}
        pieces = []  # (name, product of sizes before, size)
        for name in self.sizes:
            edges = sorted(cuts[name])
            pieces += [(name, low, high // low) for low, high in zip(edges, edges[1:])]
        taken: list[int] = []
        dims = []
        for group in axes:
            within = [i for name, before, size in group for i, piece in enumerate(pieces)
                      if piece[0] == name and before <= piece[1] < before * size]  # fmt: skip
            taken += within
            dims.append(prod(pieces[i][2] for i in within))
        rest = [i for i in range(len(pieces)) if i not in taken]
        dims.append(prod(pieces[i][2] for i in rest))
        steps = [prod(size for *_, size in pieces[i + 1 :]) for i in range(len(pieces))]
        along = [range(0, steps[i] * pieces[i][2], steps[i]) for i in taken + rest]
        return [self.devices[sum(at)] for at in product(*along)], dims


def _axis(attribute: Any, of: Any, sizes: dict[str, int]) -> tuple[str, int, int]:
    """A reference to an axis of a mesh, or to a part of one; `of` is the dialect."""
    axis = of.AxisRefAttr(attribute)
    if axis.sub_axis_info is None:
        return axis.name, 1, sizes[axis.name]
    inner = of.SubAxisInfoAttr(axis.sub_axis_info)
    return axis.name, inner.pre_size, inner.size


def mesh_of(attribute: Any, of: Any) -> Mesh:
    mesh = of.MeshAttr(attribute)
    axes = [of.MeshAxisAttr(axis) for axis in mesh.axes]
    ids = mesh.device_ids
    return Mesh({axis.name: axis.size for axis in axes}, [] if ids is None else list(ids))


def shardings_of_main(module: Any, devices: int) -> dict[str, Any]:
    """Those of the arguments and the results of @main."""
    main: Any = ir.SymbolTable(module.operation)["main"].operation
    type = main.attributes["function_type"].value
    found: dict[str, Any] = {}
    for (side, name), types in zip(_SIDES.items(), (type.inputs, type.results), strict=True):
        if name in module.operation.attributes:
            given = sdy.TensorShardingPerValueAttr(module.operation.attributes[name]).shardings
            found[side] = [tiles_of(sdy.TensorShardingAttr(one), module, devices) for one in given]
            del module.operation.attributes[name]
        else:
            found[side] = [WHOLE] * len(types)
    return found


def tiles_of(sharding: Any, module: Any, devices: int) -> _Row:
    """How an array of a module lies whose sharding (a TensorShardingAttr) is this."""
    mesh = _mesh_named(sharding.mesh_or_ref, module) or mesh_of(sharding.mesh_or_ref, sdy)
    if len(mesh.devices) != devices:  # one device of several, or none
        return WHOLE
    axes = [
        [_axis(axis, sdy, mesh.sizes) for axis in sdy.DimensionShardingAttr(one).axes]
        for one in sharding.dimension_shardings
    ]
    unreduced = [_axis(axis, sdy, mesh.sizes) for axis in sharding.unreduced_axes]
    ids, dims = mesh.rows([*axes, unreduced])
    *tiles, terms, copies = dims
    if prod(tiles) * terms == 1:
        return WHOLE
    combiner = str(sharding.reduction_op).upper() if terms > 1 else ""
    names = [[name for name, _, _ in dimension] for dimension in axes]
    summed = [name for name, _, _ in unreduced]
    return tiles, copies, ids, terms, combiner, names, summed


def _mesh_named(symbol: Any, module: Any) -> Mesh | None:
    """A module's mesh of this name; None where it is no name."""
    if not isinstance(symbol, ir.FlatSymbolRefAttr):
        return None
    return mesh_of(ir.SymbolTable(module.operation)[symbol.value].operation.attributes["mesh"], sdy)


def write_groups_out(module: Any) -> None:
    """Groups of devices that are named by axes of a mesh, as tables of the devices' numbers."""
    name = "replica_groups"
    for op in walk(module.operation):
        if name not in op.attributes or isinstance(op.attributes[name], ir.DenseIntElementsAttr):
            continue
        given: Any = stablehlo.ReplicaGroupMeshAxesAttr(op.attributes[name])
        mesh = _mesh_named(given.mesh, module) or mesh_of(given.mesh, stablehlo)
        ids, (_, count) = mesh.rows([[_axis(axis, stablehlo, mesh.sizes) for axis in given.axes]])
        op.attributes[name] = table([ids[group::count] for group in range(count)])


def table(rows: list[list[int]]) -> Any:
    """An attribute of rows of numbers, of which there is one at least."""
    return ir.Attribute.parse(f"dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>")
