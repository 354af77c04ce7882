"""Replace what devices say to each other by what it means where there is one.

    all_reduce %x, groups of one   ->   %x           replica_id   ->   0
    collective_permute %x, [[0, 0]] ->  %x           collective_permute %x, []   ->   0
    custom_call @Sharding(%x)      ->   %x

Leaves collectives of groups of several devices alone, and all of a program that several run: devices
meet there.
example: test/passes/stablehlo/collectives/expand_collectives.mlir
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lamina.dialects import constants
from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.stablehlo.canonicalize.rewriting import rewrite
from lamina.passes.stablehlo.collectives.collective import device_counts

_IN_GROUPS = (
    "all_gather", "all_reduce", "all_to_all", "collective_broadcast", "cross-replica-sum",
    "reduce_scatter",
)  # fmt: skip
_PLACEMENTS = frozenset(
    ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
     "LayoutConstraint")
)  # fmt: skip
"""Custom calls that say where or how a value lies in memory, and compute nothing."""


class ExpandCollectives(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        rules: dict[str, tuple[Callable[[ir.Operation], object], ...]] = {
            "stablehlo.custom_call": (_placement,)
        }
        if device_counts(module) == (1, 1):
            rules |= {f"stablehlo.{name}": (_alone,) for name in _IN_GROUPS}
            rules["stablehlo.collective_permute"] = (_to_itself,)
            rules["stablehlo.replica_id"] = rules["stablehlo.partition_id"] = (_first,)
        self.count("expanded", rewrite(module, rules).total())


def _alone(op: ir.Operation) -> list[ir.Value] | None:
    groups = op.attributes["replica_groups"]
    shape = groups.type.shape if hasattr(groups, "type") else [0, 0]
    if shape[0] > 1 or shape[-1] > 1:
        return None
    operands = list(op.operands)
    if any(x.type != result.type for x, result in zip(operands, op.results, strict=True)):
        return None
    return operands


def _to_itself(op: ir.Operation) -> list[ir.Value] | None:
    of = op.attributes["source_target_pairs"].type
    (x,) = op.operands
    if of.shape[0] == 0:
        return [hlo.full(0, list(x.type.shape), dtype_of(x.type))]
    pairs = constants.array_in(op, "source_target_pairs", of)
    return [x] if np.array_equal(pairs, [[0, 0]]) else None


def _first(op: ir.Operation) -> list[ir.Value]:
    return [hlo.full(0, [], np.dtype(np.uint32))]


def _placement(op: ir.Operation) -> list[ir.Value] | None:
    if op.attributes["call_target_name"].value not in _PLACEMENTS:
        return None
    operands = list(op.operands)
    same = len(operands) == len(op.results) and all(
        x.type == result.type for x, result in zip(operands, op.results)
    )
    return operands if same else None
