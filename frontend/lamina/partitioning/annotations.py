"""Shardings written into a module while it is lowered, as Shardy reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.dialects.builders import shardings as sdy
from lamina.dialects.vendors import ir
from lamina.sharding.explicit import sharding_of
from lamina.sharding.grid import grid_of
from lamina.sharding.mesh import AbstractMesh, Mesh
from lamina.sharding.requested import RequestedShardings
from lamina.sharding.shardings import NamedSharding
from lamina.sharding.spec import PartitionSpec


class Annotations:
    """Those of one module: what `lower_module` asks for them."""

    def __init__(self, requested: RequestedShardings) -> None:
        self._requested, self._grid = requested, grid_of(requested.meshes)
        self._symbol = ""
        self._groups = 0

    allowed = staticmethod(sdy.allowed)
    """A block in which a context takes Shardy's ops."""

    def declare(self, module: Any) -> None:
        """Write the mesh into a module (a ModuleContext)."""
        self._symbol = module.fresh_name("mesh")
        with ir.InsertionPoint(module.module.body):
            sdy.mesh(self._symbol, self._grid.axes)

    def of_arguments(self, consts: int, ranks: Sequence[int]) -> list[ir.Attribute | None]:
        """Those of the arguments of @main, the first of which are constants."""
        return [None] * consts + self._attributes(self._requested.inputs, ranks[consts:])

    def of_results(self, ranks: Sequence[int]) -> list[ir.Attribute | None]:
        """Those of its results."""
        return self._attributes(self._requested.outputs, ranks)

    def _attributes(
        self, places: Sequence[NamedSharding | None], ranks: Sequence[int]
    ) -> list[ir.Attribute | None]:
        return [
            None if place is None else self._attribute(place, rank)
            for place, rank in zip(places, ranks, strict=True)
        ]

    def _attribute(
        self, place: NamedSharding, rank: int, manual: Sequence[Any] = ()
    ) -> ir.Attribute:
        mesh = place.mesh
        if isinstance(mesh, AbstractMesh):
            mesh = self._mesh_like(mesh)
        return sdy.sharding(
            self._symbol,
            self._dimensions(mesh, place.spec, rank, manual),
            self._terms(mesh, place.spec, manual),
        )

    def _terms(self, mesh: Mesh, spec: PartitionSpec, manual: Sequence[Any] = ()) -> sdy.Terms:
        """The axes of the grid along which each device has a term, and what they are combined by."""
        names = [n for n in mesh.axis_names if n in spec.unreduced and n not in manual]
        kind = spec.unreduced_kind.name if names and spec.unreduced_kind is not None else "sum"
        return tuple(self._grid.of_spec(mesh, names)), kind

    def _dimensions(
        self, mesh: Mesh, spec: PartitionSpec, rank: int, manual: Sequence[Any] = ()
    ) -> list[sdy.Dimension]:
        """For each dimension the axes of the grid, and whether it may be split further. Axes that are
        mapped by hand around are not said."""
        return [
            (
                self._grid.of_spec(mesh, [n for n in spec.names_of(d) if n not in manual]),
                d < len(spec) and spec[d] is PartitionSpec.UNCONSTRAINED,
            )
            for d in range(rank)
        ]

    def _mesh_like(self, mesh: AbstractMesh) -> Mesh:
        """The program's mesh for one without devices, of which it has the axes."""
        for known in self._requested.meshes:
            if set(mesh.shape_tuple) <= set(known.shape_tuple):
                return known
        raise ValueError(
            f"with_sharding_constraint names {mesh}, but the program is on {self._requested.mesh}"
        )

    def as_typed(self, module: Any, x: ir.Value, aval: Any) -> ir.Value:
        """A value that is to lie as its type says; along axes that are not explicit it may be split further."""
        sharding = sharding_of(aval)
        mesh, manual = self._mesh_like(sharding.mesh.abstract_mesh), module.manual_axes
        left = any(n not in manual for n in sharding.mesh.auto_axes)
        if not left and all(n in manual for n in mesh.axis_names):
            return x
        axes = self._dimensions(mesh, sharding.spec, x.type.rank, manual)
        return sdy.sharding_constraint(
            x,
            sdy.sharding(
                self._symbol,
                [(names, left) for names, _ in axes],
                self._terms(mesh, sharding.spec, manual),
            ),
        )

    def constrain(self, module: Any, x: ir.Value, place: Any) -> ir.Value:
        """A value that is to lie so."""
        if not isinstance(place, NamedSharding):
            return x
        attribute = self._attribute(place, x.type.rank, module.manual_axes)
        return sdy.sharding_constraint(x, attribute)

    def group(self, values: Sequence[ir.Value]) -> None:
        """Values that are to lie alike."""
        for x in values:
            sdy.sharding_group(x, self._groups)
        self._groups += 1

    def manual(
        self,
        on: Any,
        args: Sequence[ir.Value],
        in_specs: Sequence[PartitionSpec],
        blocks: Sequence[ir.Type],
        results: Sequence[ir.Type],
        out_specs: Sequence[PartitionSpec],
        body: Any,
    ) -> list[ir.Value]:
        """A shard_map; `on` is its Manual."""
        mesh = on.mesh
        is_open = len(on.names) < len(mesh.axis_names)

        def shown(specs: Sequence[PartitionSpec], types: Sequence[ir.Type]) -> Any:
            return [
                (
                    [(names, is_open) for names, _ in self._dimensions(mesh, spec, type.rank)],
                    self._terms(mesh, spec),
                )
                for spec, type in zip(specs, types, strict=True)
            ]

        return sdy.manual_computation(
            self._symbol,
            self._grid.of_spec(mesh, on.names),
            args,
            shown(in_specs, [x.type for x in args]),
            blocks,
            results,
            shown(out_specs, results),
            body,
        )
