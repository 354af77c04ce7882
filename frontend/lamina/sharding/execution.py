"""Programs that several devices run together, as the fast path of calls is to run them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lamina import placement, runtime
from lamina.array import ArrayImpl
from lamina.records import Record
from lamina.runtime import processes
from lamina.runtime.executable import CliqueExecutable
from lamina.sharding.layout import Layout
from lamina.sharding.shardings import NamedSharding

if TYPE_CHECKING:
    from lamina.jit.program_plan import Plan


class OnMesh(Record):
    """What the native runtime (mesh_plan.h) needs of such a program beside its leaves.

    run      called with the arrays of each device here, gives those that each made.
    cut      called with an array and a sharding, gives its parts for the devices here.
    devices  how many of the mesh are of this process.
    consts   of each constant the parts; the program takes them before the leaves.
    inputs   how the leaves that it takes are split, and outputs how its results are.
    donated  the leaves that are gone after a call.
    """

    run: Callable[[list[list[ArrayImpl]]], list[list[ArrayImpl]]]
    cut: Callable[[ArrayImpl, NamedSharding], Sequence[ArrayImpl]]
    devices: int
    consts: tuple[Sequence[ArrayImpl], ...]
    inputs: tuple[NamedSharding, ...]
    outputs: tuple[NamedSharding, ...]
    donated: tuple[int, ...]


def on_mesh(plan: Plan, executable: Any, layout: Layout) -> OnMesh:
    """A compiled program of the devices of a mesh. Raises ValueError where none of them is of this process."""
    is_on_gpus = layout.mesh.device_list[0].platform == "cuda"
    places = processes.places(tuple(d.id for d in layout.mesh.device_list), is_on_gpus)
    if places is not None and not places.here:
        raise ValueError(
            f"{plan.name} runs on {layout.mesh!r}, which has no device of process {processes.current().rank}: "
            "processes outside of a mesh don't call its programs"
        )
    consts = map(runtime.to_array, plan.const_args)
    if isinstance(executable, CliqueExecutable):
        run: Any = functools.partial(runtime.run_on_gpus, executable.executables, places=places)
    else:
        run = functools.partial(runtime.run_on_devices, executable, places=places)
    return OnMesh(
        run=run,
        cut=placement.shards_of,
        devices=layout.mesh.size if places is None else len(places.here),
        consts=tuple(placement.shards_of(x, s) for x, s in zip(consts, layout.consts, strict=True)),
        inputs=layout.inputs,
        outputs=layout.outputs,
        donated=tuple(plan.kept[i] for i in (*plan.aliases, *plan.donors)),
    )
