"""The same axes for all meshes of a program.

    @m = <["x"=4]>, @n = <["a"=2, "b"=2]>          ->   @m, @n, @one_mesh = <["one0"=2, "one1"=2]>
    <@m, [{"x"}]>, <@n, [{"b"}, {}]>               ->   <@one_mesh, [{"one0", "one1"}]>, <@one_mesh, [{"one1"}, {}]>

Shardy compares axes of different meshes as if they had nothing to do with each other: it refuses programs in
which an array goes from one mesh to another, or takes its parts for others. Meshes that have the devices in
different orders stay apart, with the same axes: these it knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from lamina.partitioning.shardy.meshes import Mesh, mesh_of
from lamina.partitioning.shardy.ops import MANUAL, walk

_SHARDINGS = ("arg_attrs", "res_attrs", "sdy.sharding", "sharding", "in_shardings", "out_shardings")
_MANUAL_AXES = "manual_axes"
_Part = tuple[int, int]
"""Of an array of devices: how far apart are those that follow each other along an axis, and how many these are."""


class SeveralMeshes(Exception):
    """Meshes of which one does not split the devices as another does."""


def use_one_mesh(module: Any, devices: int) -> None:
    """Has all shardings name the same axes, where the program has meshes of all devices with different
    ones. Raises SeveralMeshes where there are no such axes."""
    meshes = _meshes(module, devices)
    if len({tuple(mesh.sizes.items()) for mesh in meshes.values()}) < 2:
        return
    one = _One(module, meshes)
    for op in list(walk(module.operation)):
        if op.name == MANUAL:
            op.attributes[_MANUAL_AXES] = one.manual_axes(op)
        for name in _SHARDINGS:
            if name in op.attributes:
                op.attributes[name] = one.attribute(op.attributes[name])


def _meshes(module: Any, devices: int) -> dict[str, Mesh]:
    """The meshes of all devices by their symbols."""
    found = {}
    for op in module.body.operations:
        if op.operation.name == "sdy.mesh":
            mesh = mesh_of(op.operation.attributes["mesh"], sdy)
            if mesh.sizes and prod(mesh.sizes.values()) == devices:
                found[str(op.operation.attributes["sym_name"].value)] = mesh
    return found


def parts_of(sizes: dict[str, int]) -> dict[str, _Part]:
    """The axes of a mesh."""
    found, step = {}, prod(sizes.values())
    for name, size in sizes.items():
        step //= size
        found[name] = step, size
    return found


def _pieces(parts: Iterable[_Part]) -> list[_Part]:
    """What axes are made of, from the outermost."""
    edges = sorted({edge for step, size in parts for edge in (step, step * size)})
    if any(high % low for low, high in pairwise(edges)):
        raise SeveralMeshes("the program has meshes whose axes split the devices in ways that don't agree")
    return [(low, high // low) for low, high in pairwise(edges)][::-1]


class _One:
    """The axes, and how what names others is said by them."""

    def __init__(self, module: Any, meshes: dict[str, Mesh]) -> None:
        self._meshes = {symbol: parts_of(mesh.sizes) for symbol, mesh in meshes.items()}
        self._pieces = _pieces(part for of in self._meshes.values() for part in of.values())
        # Results are told by the names of axes, which are a program's own where one of its meshes serves.
        serves = (
            symbol for symbol, of in self._meshes.items() if list(of.values()) == self._pieces
        )
        names = [f"one{i}" for i in range(len(self._pieces))]
        self._names = next((list(self._meshes[symbol]) for symbol in serves), names)
        self._axes_of_one = dict(zip(self._names, self._pieces, strict=True))
        self._symbols: dict[str, str] = {}
        of_order: dict[tuple[int, ...], str] = {}
        for symbol, mesh in meshes.items():
            order = tuple(mesh.devices)
            if order not in of_order:
                of_order[order] = self._declare(module, order)
            self._symbols[symbol] = of_order[order]

    def _declare(self, module: Any, order: tuple[int, ...]) -> str:
        """A mesh with these axes, put before the others; its symbol."""
        symbol, known = "one_mesh", ir.SymbolTable(module.operation)
        while symbol in known:
            symbol += "_"
        axes = [sdy.MeshAxisAttr.get(name, size) for name, (_, size) in self._axes_of_one.items()]
        given = [] if order == tuple(range(len(order))) else list(order)
        with ir.InsertionPoint(module.body.operations[0]):
            sdy.MeshOp(symbol, sdy.MeshAttr.get(axes, given))
        return symbol

    def attribute(self, given: Any) -> Any:
        """An attribute with shardings in it."""
        if isinstance(given, ir.ArrayAttr):
            return ir.ArrayAttr.get([self.attribute(one) for one in given])
        if isinstance(given, ir.DictAttr):
            entries: Any = given
            return ir.DictAttr.get({entry.name: self.attribute(entry.attr) for entry in entries})
        if sdy.TensorShardingPerValueAttr.isinstance(given):
            shardings = sdy.TensorShardingPerValueAttr(given).shardings
            return sdy.TensorShardingPerValueAttr.get([self.attribute(one) for one in shardings])
        if sdy.TensorShardingAttr.isinstance(given):
            return self._sharding(sdy.TensorShardingAttr(given))
        return given

    def manual_axes(self, op: Any) -> Any:
        """The axes along which a computation is each device's own."""
        names = list(sdy.ManualAxesAttr(op.attributes[_MANUAL_AXES]))
        of = self._meshes[self._mesh_of_manual(op, set(names))]
        found = {own for name in names for own, _ in split(of[name], self._axes_of_one)}
        return sdy.ManualAxesAttr.get([ir.StringAttr.get(name) for name in self._names if name in found])

    def _mesh_of_manual(self, op: Any, names: set[str]) -> str:
        for side in ("in_shardings", "out_shardings"):
            for one in sdy.TensorShardingPerValueAttr(op.attributes[side]).shardings:
                if symbol := self._known(sdy.TensorShardingAttr(one)):
                    return symbol
        return next(symbol for symbol, of in self._meshes.items() if names <= of.keys())

    def _known(self, sharding: Any) -> str:
        """The symbol of a sharding's mesh; "" where it is no mesh of all devices."""
        ref = sharding.mesh_or_ref
        symbol = ir.FlatSymbolRefAttr(ref).value if isinstance(ref, ir.FlatSymbolRefAttr) else ""
        return symbol if symbol in self._meshes else ""

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
        return sdy.TensorShardingAttr.get(self._symbols[symbol], dimensions, kept, summed, **options)

    def _axes(self, symbol: str, axes: Any) -> list[Any]:
        """References to axes, or to parts of some, as references to this mesh's."""
        return [
            sdy.AxisRefAttr.get(name, piece and sdy.SubAxisInfoAttr.get(*piece))
            for axis in map(sdy.AxisRefAttr, axes)
            for name, piece in split(
                _within(self._meshes[symbol][axis.name], axis.sub_axis_info), self._axes_of_one
            )
        ]


def split(part: _Part, axes: dict[str, _Part]) -> list[tuple[str, tuple[int, int] | None]]:
    """The axes, of these, that a part of some is made of; with each which part of it, if it is not whole: the product
    of the sizes before it in the axis, and its own. Raises SeveralMeshes where there are none."""
    step, count = part
    found: list[tuple[str, tuple[int, int] | None]] = []
    for name, (low, size) in axes.items():
        begin, end = max(low, step), min(low * size, step * count)
        if begin >= end:
            continue
        if end % begin or begin % low or low * size % end:
            raise SeveralMeshes("an axis is split where those of other meshes are not")
        whole = (begin, end) == (low, low * size)
        found.append((name, None if whole else (low * size // end, end // begin)))
    return found


def _within(part: _Part, info: Any) -> _Part:
    """An axis, or a part of it as Shardy says it."""
    if info is None:
        return part
    step, size = part
    inner = sdy.SubAxisInfoAttr(info)
    return step * (size // (inner.pre_size * inner.size)), inner.size
