"""Calls of programs that several devices run together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina import placement, runtime
from lamina.array import ArrayImpl
from lamina.core import tree
from lamina.sharding.shardings import NamedSharding


class DeviceProgram:
    """A compiled program as a function of the leaves of a call: hands each device its blocks, and
    gives results as arrays whose shards are what the devices made."""

    def __init__(self, plan: Any, executable: Any, out_tree: tree.PyTreeDef) -> None:
        self.plan, self.executable, self.out_tree = plan, executable, out_tree
        local = plan.local
        self.in_shardings = [NamedSharding(local.mesh, s) for s in local.in_specs]
        self.out_shardings = [NamedSharding(local.mesh, s) for s in local.out_specs]
        self.consts = [runtime.to_array(c) for c in plan.const_args]
        self.donated = [plan.kept[i] for i in (*plan.aliases, *plan.donors)]

    def __call__(self, leaves: Sequence[Any]) -> Any:
        arrays = [runtime.to_array(x) for x in leaves]
        mesh, plan = self.plan.local.mesh, self.plan
        blocks = [placement.shards_of(arrays[i], self.in_shardings[i]) for i in plan.kept]
        per_device = [[*self.consts, *(block[d] for block in blocks)] for d in range(mesh.size)]
        if plan.closed.jaxpr.outvars:
            results = runtime.run_on_devices(self.executable, per_device)
        for i in self.donated:
            arrays[i].delete()
        outs: list[Any] = []
        for at, weak, sharding in zip(
            plan.outputs, plan.weak_types, self.out_shardings, strict=True
        ):
            if at < 0:
                outs.append(arrays[~at])
                continue
            shards = [results[d][at] for d in range(mesh.size)]
            outs.append(_whole(shards, sharding, weak))
        return tree.unflatten(self.out_tree, outs)


def _whole(shards: list[ArrayImpl], sharding: NamedSharding, weak_type: bool) -> ArrayImpl:
    local = shards[0].shape
    shape = tuple(n * sharding.parts(i) for i, n in enumerate(local))
    return placement.from_shards(shape, sharding, shards, weak_type)
