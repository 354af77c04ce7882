"""One mesh for a program that names several of the same devices.

    @m = <["x"=4]>, @n = <["a"=2, "b"=2]>          ->   @m, @n, @one = <["one0"=2, "one1"=2]>
    <@m, [{"x"}]>, <@n, [{"b"}, {}]>               ->   <@one, [{"one0", "one1"}]>, <@one, [{"one1"}, {}]>

Shardy compares axes of different meshes as if they had nothing to do with each other: it refuses programs in
which an array goes from one mesh to another, or takes its parts for others.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from lamina.partitioning.shardy.meshes import mesh_of
from lamina.partitioning.shardy.ops import MANUAL, walk

_SHARDINGS = ("arg_attrs", "res_attrs", "sdy.sharding", "sharding", "in_shardings", "out_shardings")
_MANUAL_AXES = "manual_axes"
_Piece = tuple[int, int]
"""Of the devices: in how many parts they are before, and in how many each of these is split."""


class SeveralMeshes(Exception):
    """Meshes of which one does not split the devices as another does."""


def use_one_mesh(module: Any, devices: int) -> None:
    """Has all shardings name axes of one mesh, where the program has meshes of other axes. Raises
    SeveralMeshes where there is none."""
    named = _meshes(module, devices)
    if len({tuple(sizes.items()) for sizes, _ in named.values()}) < 2:
        return
    if len({ids for _, ids in named.values()}) > 1:
        raise SeveralMeshes("the program has meshes of the same devices in several orders")
    pieces = _pieces(sizes for sizes, _ in named.values())
    one = _One(module, {name: sizes for name, (sizes, _) in named.items()}, pieces)
    for op in list(walk(module.operation)):
        if op.name == MANUAL:
            op.attributes[_MANUAL_AXES] = one.manual_axes(op)
        for name in _SHARDINGS:
            if name in op.attributes:
                op.attributes[name] = one.attribute(op.attributes[name])
    one.declare(module, next(ids for _, ids in named.values()))


def _meshes(module: Any, devices: int) -> dict[str, tuple[dict[str, int], tuple[int, ...]]]:
    """The meshes of all devices by their symbols: the axes' sizes, and the devices where they are said."""
    found = {}
    for op in module.body.operations:
        if op.operation.name == "sdy.mesh":
            given = op.operation.attributes["mesh"]
            sizes, ids = mesh_of(given, sdy).sizes, sdy.MeshAttr(given).device_ids
            if sizes and prod(sizes.values()) == devices:
                found[str(op.operation.attributes["sym_name"].value)] = sizes, tuple(ids or ())
    return found


def _pieces(meshes: Iterable[dict[str, int]]) -> list[_Piece]:
    """The parts of which the axes of all meshes are made, from the outermost."""
    edges = {1}
    for sizes in meshes:
        edges |= {before * size for before, size in _extents(sizes).values()}
    ordered = sorted(edges)
    if any(high % low for low, high in pairwise(ordered)):
        raise SeveralMeshes("the program has meshes whose axes split the devices in ways that don't agree")
    return [(low, high // low) for low, high in pairwise(ordered)]


def _extents(sizes: dict[str, int]) -> dict[str, _Piece]:
    """For each axis of a mesh, the product of the sizes before it, and its own."""
    found, before = {}, 1
    for name, size in sizes.items():
        found[name] = before, size
        before *= size
    return found


class _One:
    """The mesh, and how what names others is said by its axes."""

    def __init__(self, module: Any, meshes: dict[str, dict[str, int]], pieces: list[_Piece]) -> None:
        self._extents = {name: _extents(sizes) for name, sizes in meshes.items()}
        self._pieces = pieces
        self._context = module.context
        # Results are told by the names of axes, which are a program's own where one of its meshes serves.
        same = (name for name, of in self._extents.items() if list(of.values()) == pieces)
        self._symbol = next(same, "")
        self._is_new = not self._symbol
        self._names = list(meshes[self._symbol]) if self._symbol else [f"one{i}" for i in range(len(pieces))]
        while self._is_new and (not self._symbol or self._symbol in meshes):
            self._symbol += "one_mesh"

    def declare(self, module: Any, ids: tuple[int, ...]) -> None:
        """Puts the mesh before the others."""
        first = module.body.operations[0]
        if self._is_new:
            axes = [
                sdy.MeshAxisAttr.get(name, size)
                for name, (_, size) in zip(self._names, self._pieces, strict=True)
            ]
            with ir.InsertionPoint(first):
                sdy.MeshOp(self._symbol, sdy.MeshAttr.get(axes, list(ids)))
        else:
            own = ir.SymbolTable(module.operation)[self._symbol].operation
            if own != first.operation:
                own.move_before(first)

    def attribute(self, given: Any) -> Any:
        """An attribute with shardings in it."""
        if isinstance(given, ir.ArrayAttr):
            return ir.ArrayAttr.get([self.attribute(one) for one in given])
        if isinstance(given, ir.DictAttr):
            return ir.DictAttr.get({entry.name: self.attribute(entry.attr) for entry in given})
        if sdy.TensorShardingPerValueAttr.isinstance(given):
            shardings = sdy.TensorShardingPerValueAttr(given).shardings
            return sdy.TensorShardingPerValueAttr.get([self.attribute(one) for one in shardings])
        if sdy.TensorShardingAttr.isinstance(given):
            return self._sharding(sdy.TensorShardingAttr(given))
        return given

    def manual_axes(self, op: Any) -> Any:
        """The axes along which a computation is each device's own."""
        names = list(sdy.ManualAxesAttr(op.attributes[_MANUAL_AXES]))
        of = self._mesh_of_manual(op, set(names))
        found = [own for name in names for own in self._split(*self._extents[of][name])]
        ordered = [name for name in self._names if name in dict(found)]
        return sdy.ManualAxesAttr.get([ir.StringAttr.get(name) for name in ordered])

    def _mesh_of_manual(self, op: Any, names: set[str]) -> str:
        for side in ("in_shardings", "out_shardings"):
            for one in sdy.TensorShardingPerValueAttr(op.attributes[side]).shardings:
                if symbol := self._known(sdy.TensorShardingAttr(one)):
                    return symbol
        return next(symbol for symbol, of in self._extents.items() if names <= of.keys())

    def _known(self, sharding: Any) -> str:
        """The symbol of a sharding's mesh; "" where it is no mesh of all devices."""
        ref = sharding.mesh_or_ref
        symbol = ir.FlatSymbolRefAttr(ref).value if isinstance(ref, ir.FlatSymbolRefAttr) else ""
        return symbol if symbol in self._extents else ""

    def _sharding(self, given: Any) -> Any:
        symbol = self._known(given)
        if not symbol:
            return given
        dimensions = []
        for one in map(sdy.DimensionShardingAttr, given.dimension_shardings):
            axes = self._axes(symbol, one.axes)
            dimensions.append(sdy.DimensionShardingAttr.get(axes, one.is_closed, one.priority))
        kept, summed = (
            self._axes(symbol, axes) for axes in (given.replicated_axes, given.unreduced_axes)
        )
        options = {"reduction_op": given.reduction_op} if summed else {}
        return sdy.TensorShardingAttr.get(self._symbol, dimensions, kept, summed, **options)

    def _axes(self, symbol: str, axes: Any) -> list[Any]:
        """References to axes, or to parts of some, as references to this mesh's."""
        found = []
        for axis in map(sdy.AxisRefAttr, axes):
            before, size = self._extents[symbol][axis.name]
            if axis.sub_axis_info is not None:
                inner = sdy.SubAxisInfoAttr(axis.sub_axis_info)
                before, size = before * inner.pre_size, inner.size
            found += [
                sdy.AxisRefAttr.get(name, part and sdy.SubAxisInfoAttr.get(*part))
                for name, part in self._split(before, size)
            ]
        return found

    def _split(self, before: int, size: int) -> list[tuple[str, _Piece | None]]:
        """The axes that a part of the devices is made of; with each the part of it, if it is not whole."""
        found: list[tuple[str, _Piece | None]] = []
        for name, (low, count) in zip(self._names, self._pieces, strict=True):
            begin, end = max(low, before), min(low * count, before * size)
            if begin >= end:
                continue
            if end % begin or begin % low:
                raise SeveralMeshes("an axis is split where those of other meshes are not")
            whole = (begin, end) == (low, low * count)
            found.append((name, None if whole else (begin // low, end // begin)))
        return found
