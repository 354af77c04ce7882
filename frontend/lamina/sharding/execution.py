"""Calls of programs that several devices run together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lamina import placement, runtime
from lamina.array import ArrayImpl
from lamina.core import tree
from lamina.key_array import as_logical
from lamina.runtime import processes
from lamina.runtime.executable import CliqueExecutable
from lamina.sharding.layout import Layout
from lamina.sharding.shardings import NamedSharding

if TYPE_CHECKING:
    from lamina.jit.program_plan import Plan


class DeviceProgram:
    """A compiled program as a function of the leaves of a call: hands each device its blocks, and
    gives results as arrays whose shards are what the devices made."""

    def __init__(
        self, plan: Plan, executable: Any, layout: Layout, out_tree: tree.PyTreeDef
    ) -> None:
        self.plan, self.executable, self.layout = plan, executable, layout
        self.out_tree = out_tree
        consts = map(runtime.to_array, plan.const_args)
        self.consts = [
            placement.shards_of(x, s) for x, s in zip(consts, layout.consts, strict=True)
        ]
        self.donated = [plan.kept[i] for i in (*plan.aliases, *plan.donors)]
        self.computes = bool(plan.closed.jaxpr.outvars or plan.closed.effects)
        self.logical = {i: d for i, d in enumerate(plan.logical_out) if d is not None}
        is_on_gpus = layout.mesh.device_list[0].platform == "cuda"
        self.places = processes.places(tuple(d.id for d in layout.mesh.device_list), is_on_gpus)
        if self.places is not None and not self.places.here:
            raise ValueError(
                f"{plan.name} runs on {layout.mesh!r}, which has no device of process {processes.current().rank}: "
                "processes outside of a mesh don't call its programs"
            )

    def __call__(self, leaves: Sequence[Any]) -> Any:
        arrays = [runtime.to_array(x) for x in leaves]
        plan, layout = self.plan, self.layout
        if self.computes:
            places = zip(plan.kept, layout.inputs, strict=True)
            blocks = [*self.consts, *(placement.shards_of(arrays[i], s) for i, s in places)]
            here = range(layout.mesh.size if self.places is None else len(self.places.here))
            per_device = [[block[d] for block in blocks] for d in here]
            if isinstance(self.executable, CliqueExecutable):
                results = runtime.run_on_gpus(self.executable.executables, per_device, self.places)
            else:
                results = runtime.run_on_devices(self.executable, per_device, self.places)
        for i in self.donated:
            arrays[i].delete()
        outs: list[Any] = []
        for at, weak in zip(plan.outputs, plan.weak_types, strict=True):
            if at < 0:
                outs.append(arrays[~at])
                continue
            shards = [one[at] for one in results]
            outs.append(_whole(shards, layout.outputs[at], weak))
        if self.logical:
            outs = as_logical(outs, self.logical)
        return tree.unflatten(self.out_tree, outs)


def _whole(shards: list[ArrayImpl], sharding: NamedSharding, weak_type: bool) -> ArrayImpl:
    local = shards[0].shape
    shape = tuple(n * sharding.parts(i) for i, n in enumerate(local))
    return placement.from_shards(shape, sharding, shards, weak_type)
