"""Kernels that are one collective, as NCCL is asked for them: a step of the launch plan.

    {"collective": "all_reduce", "count": 1024, "bytes": 4, "type": 7, "op": 0, "groups": [[0, 1], [2, 3]]}

`count` and `bytes` of an element are as the runtime's CPU collectives have them (runtime/src/cpu/collective.h); type
and op are NCCL's numbers, of reductions alone: all else moves bytes. A sum of complex numbers is one of twice as many
reals. What NCCL can't combine `stablehlo-legalize-reductions` has made something that it can.
"""

from __future__ import annotations

from typing import Any

from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.stablehlo.collectives.collective import (
    KINDS,
    REDUCTIONS,
    Collective,
    groups_of,
    reducer,
)

OPERATIONS = {"add": 0, "multiply": 1, "maximum": 2, "minimum": 3}
"""By their names in StableHLO, the numbers of NCCL's ncclRedOp_t."""

TYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5,
    "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9,
}  # fmt: skip
"""The numbers of ncclDataType_t. Those of f8 are left out: how their sums are rounded is not documented."""

_PARTS = {"complex64": "float32", "complex128": "float64"}


def collective_step(function: ir.Operation) -> dict[str, Any]:
    """What a kernel that holds one collective is in a launch plan, but for its buffers."""
    op = next(one.operation for one in function.regions[0].blocks[0].operations if one.operation.name in KINDS)
    name = op.name.removeprefix("stablehlo.")
    if name == "partition_id":
        return {"collective": name}
    found = Collective.of(op)
    assert found is not None
    count, size = found.count, found.element_size
    step: dict[str, Any] = {"collective": name, "type": 0, "op": 0}
    if op.name in REDUCTIONS:
        of, how = dtype_of(op.operands[0].type).name, reducer(op)
        if of in _PARTS and how == "add":
            of, count, size = _PARTS[of], 2 * count, size // 2
        if of not in TYPES or how not in OPERATIONS:
            raise CompileError.at(op, f"GPUs can't combine elements of type {of} by {how}")
        step |= {"type": TYPES[of], "op": OPERATIONS[how]}
    pairs = name == "collective_permute"
    table = groups_of(op, "source_target_pairs" if pairs else "replica_groups")
    groups = [[device for device in row if device >= 0] for row in table.tolist()]
    return step | {"count": count, "bytes": size, "groups": groups}
