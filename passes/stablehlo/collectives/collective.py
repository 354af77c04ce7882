"""Which ops are collectives that the runtime does, and how they tell it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.constants import array_in
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.stablehlo.analysis.facts import reducer_of
from lamina.records import Record

# In the order of the runtime's CollectiveKind.
KINDS = (
    "stablehlo.all_reduce",
    "stablehlo.reduce_scatter",
    "stablehlo.all_gather",
    "stablehlo.all_to_all",
    "stablehlo.collective_permute",
    "stablehlo.collective_broadcast",
    "stablehlo.partition_id",
)
REDUCTIONS = frozenset(KINDS[:2])
CHANNEL = 1
"""Of all our collectives: devices meet in the order of the program."""
# In the order of the runtime's ReduceOp and ElementKind.
_REDUCERS = ("add", "multiply", "minimum", "maximum", "and", "or", "xor")
_ELEMENTS = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex64 complex128"
).split()
_BUILDERS = {"and": "and_", "or": "or_"}


class Collective(Record):
    """A collective on dense memory, as the runtime takes it (see runtime/src/cpu/collective.h)."""

    kind: int
    words: tuple[int, ...]

    @property
    def count(self) -> int:
        """Of elements, as the runtime's CollectiveKind counts them."""
        return self.words[2]

    @property
    def element_size(self) -> int:
        """In bytes."""
        return self.words[3]

    @classmethod
    def of(cls, op: ir.Operation) -> Collective | None:
        """What an op tells the runtime; None for ops that are no collectives. Expects those whose
        operand or result has a dimension of its own for the devices to have it first."""
        if op.name not in KINDS:
            return None
        kind = KINDS.index(op.name)
        if op.name == "stablehlo.partition_id":
            return cls(kind, ())
        x, result = op.operands[0].type, op.results[0].type
        dtype = dtype_of(x)
        sizes = (prod(x.shape), prod(result.shape))
        pairs = op.name == "stablehlo.collective_permute"
        table = groups_of(op, "source_target_pairs" if pairs else "replica_groups")
        count = min(sizes)
        if op.name == "stablehlo.all_to_all":
            count //= table.shape[1]
        return cls(
            kind,
            (
                _element(op, dtype.name),
                _REDUCERS.index(reducer(op)) if op.name in REDUCTIONS else 0,
                count,
                dtype.itemsize,
                *table.shape,
                *map(int, table.reshape(-1)),
            ),
        )


def reducer(op: ir.Operation) -> str:
    """What a reduction between devices combines with. Raises CompileError where the runtime does
    not know it."""
    name = (reducer_of(op) or "").removeprefix("stablehlo.")
    if name not in _REDUCERS:
        raise CompileError.at(
            op,
            "combines values of devices with something else than add, multiply, minimum, maximum, "
            "and, or, xor",
            "gather the values (all_gather) and reduce them on each device",
        )
    return name


def combine(op: ir.Operation) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """Builds what a reduction between devices combines two values with."""
    name = reducer(op)
    return getattr(hlo, _BUILDERS.get(name, name))


def _element(op: ir.Operation, name: str) -> int:
    if name in _ELEMENTS:
        return _ELEMENTS.index(name)
    if op.name in REDUCTIONS:
        raise CompileError.at(op, f"devices can't combine elements of type {name}")
    return 0


def groups_of(op: ir.Operation, attribute: str = "replica_groups") -> np.ndarray:
    """The groups or pairs of a collective, one a row."""
    return array_in(op, attribute, op.attributes[attribute].type).astype(np.int64)


def groups_among(op: ir.Operation, devices: int) -> list[list[int]]:
    """The groups of a collective among so many devices. Those of an all_reduce may be of unequal size, with
    -1 after the devices of shorter ones; the verifier refuses others."""
    table = groups_of(op)
    if table.size == 0:
        return [list(range(devices))]
    return [[device for device in row if device >= 0] for row in table.tolist()]


def device_counts(module: ir.Module) -> tuple[int, int]:
    """How many replicas, and how many partitions, run the module."""
    attributes = module.operation.attributes
    names = ("mhlo.num_replicas", "mhlo.num_partitions")
    replicas, partitions = (
        int(attributes[name].value) if name in attributes else 1 for name in names
    )
    return replicas, partitions
