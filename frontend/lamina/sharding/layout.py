"""Where the arrays of a program that several devices run lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lamina.records import Record
from lamina.sharding.grid import grid_of
from lamina.sharding.mesh import Mesh
from lamina.sharding.shardings import NamedSharding
from lamina.sharding.spec import PartitionSpec

if TYPE_CHECKING:
    from lamina.jit.program_plan import Plan
    from lamina.sharding.requested import RequestedShardings


class Layout(Record):
    """Of what each device has a part.

    consts   constants that are given to the program, which come before its arguments.
    inputs   the arguments that it reads.
    outputs  the results that it computes.
    """

    mesh: Mesh
    consts: tuple[NamedSharding, ...]
    inputs: tuple[NamedSharding, ...]
    outputs: tuple[NamedSharding, ...]


def without_work(mesh: Mesh) -> Layout:
    """That of a program that computes nothing."""
    return Layout(mesh, (), (), ())


def layout_of_localized(plan: Plan) -> Layout:
    """That of a program whose devices are told by its shard_maps what they do."""
    local = plan.local

    def over(spec: PartitionSpec) -> NamedSharding:
        return NamedSharding(local.mesh, spec)

    return Layout(
        local.mesh,
        tuple(over(PartitionSpec()) for _ in plan.const_args),
        tuple(over(local.in_specs[i]) for i in plan.kept),
        tuple(over(s) for s, at in zip(local.out_specs, plan.outputs, strict=True) if at >= 0),
    )


Rows = Sequence[tuple[Sequence[Sequence[str]], Sequence[str], str]]
"""For each array the axes that split its dimensions, those along which each device has a term, and what combines
terms."""


def layout_of_rows(requested: RequestedShardings, rows: Mapping[str, Rows]) -> Layout:
    """What the partitioner gave, over axes of the grid."""
    grid = grid_of(requested.meshes)

    def shardings(side: str) -> tuple[NamedSharding, ...]:
        return tuple(grid.sharding(*row) for row in rows[side])

    outputs = zip(requested.outputs, shardings("outputs"), strict=True)
    return Layout(
        requested.mesh,
        shardings("consts"),
        shardings("inputs"),
        tuple(as_said(wanted, found) for wanted, found in outputs),
    )


def as_said(wanted: NamedSharding | None, found: NamedSharding) -> NamedSharding:
    """The same sharding on the user's mesh, where that says it in other words."""
    if wanted is None or not isinstance(wanted.mesh, Mesh):
        return found
    rank = max(len(wanted.spec), len(found.spec))
    wanted = wanted.update(spec=wanted.spec.closed())
    return wanted if wanted.is_equivalent_to(found, rank) else found
