"""About how long a step of a loop, or a branch, takes: what `stablehlo-outline-control` decides by.

Nanoseconds on one core of code that runs in the caches; only their order of magnitude matters.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2

from lamina.dialects.attributes import TRIP_COUNT, integer_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.machine import REFERENCE
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    CONTROL,
    COSTLY,
    TERMINATORS,
    is_pure,
    size_of,
)
from lamina.passes.stablehlo.analysis.gemm import Gemm
from lamina.passes.stablehlo.analysis.scan_order import Scan
from lamina.passes.stablehlo.fusion import fuse_ops
from lamina.records import Record

# Of an element of an array that an instruction or two makes; of one of a transcendental function; of one that is read
# or written at an index of its own; of a multiplication of a contraction. The same on all machines, as code for a loop
# may round otherwise than kernels of its own for what is in it.
_CHEAP = REFERENCE.on_elements(REFERENCE.op_ps + 2 * REFERENCE.access_ps)
COSTLY_NS = REFERENCE.on_elements(REFERENCE.function_ps)
_RANDOM = 3 * REFERENCE.apart_ps / 1000
_PRODUCT = REFERENCE.on_elements(REFERENCE.access_ps)
_UNKNOWN_TRIPS = 16  # steps of a loop inside a step that doesn't say how many


class Step(Record):
    """How many ops a step has, inner loops' included, and how many nanoseconds it takes."""

    ops: int
    cost: float


class Refusal(Exception):
    """Why an op with regions should not be one kernel."""


def step_of(op: ir.Operation, max_cost: float, max_ops: int) -> Step:
    """One step of a `while`, or the dearest branch of an `if` or `case`.

    Raises Refusal where an op in it takes more than `max_cost`, has an effect, or is one that only
    a kernel of its own can do, or where there are more than `max_ops`.
    """
    ops, costs = 0, []
    for region in op.regions:
        cost = 0.0
        for view in region.blocks[0].operations:
            inner = view.operation
            name = inner.name
            if name in TERMINATORS or name == CONSTANT:
                continue
            if name in CONTROL:
                step = step_of(inner, max_cost, max_ops)
                trips = 1
                if name == "stablehlo.while":
                    trips = integer_of(inner, TRIP_COUNT, _UNKNOWN_TRIPS)
                ops += step.ops
                cost += step.cost * trips
            else:
                _check(inner)
                own = cost_of(inner)
                if own > max_cost:
                    short = name.split(".", 1)[-1]
                    raise Refusal(f"{short} takes about {own / 1000:.0f} us: a kernel of its own")
                ops += 1
                cost += own
        if ops > max_ops:
            raise Refusal(f"more than {max_ops} ops")
        costs.append(cost)
    return Step(ops, sum(costs) if op.name == "stablehlo.while" else max(costs))


def _check(op: ir.Operation) -> None:
    if op.name == fuse_ops.BARRIER:
        return
    short = op.name.split(".", 1)[-1]
    alone = op.name in ("stablehlo.custom_call", "stablehlo.fft") or Scan.any_of(op) is not None
    if alone or not is_pure(op):
        raise Refusal(f"{short}: a kernel of its own")


def cost_of(op: ir.Operation) -> float:
    """Nanoseconds of an op without regions."""
    special = _SPECIAL.get(op.name)
    if special is not None:
        return special(op)
    read = max((_size(v) for v in op.operands), default=0)
    made = max((_size(v) for v in op.results), default=0)
    return max(read, made) * (COSTLY_NS if op.name in COSTLY else _CHEAP)


def _size(value: ir.Value) -> int:
    return size_of(value.type) if isinstance(value.type, ir.RankedTensorType) else 0


def _of_result(factor: float) -> Callable[[ir.Operation], float]:
    return lambda op: _size(op.results[0]) * factor


def _dot(op: ir.Operation) -> float:
    product = Gemm.of(op)
    if product is not None:
        batch = 1
        for size in product.batch:
            batch *= size
        return batch * product.m * product.n * product.k * _PRODUCT
    lhs, rhs, result = (_size(v) for v in (*op.operands, op.results[0]))
    return (lhs * rhs * result) ** 0.5 * _PRODUCT


def _convolution(op: ir.Operation) -> float:
    return _size(op.results[0]) * _size(op.operands[1]) * _PRODUCT


def _sort(op: ir.Operation) -> float:
    size = _size(op.operands[0])
    return size * log2(size + 2) * _RANDOM


def _cubic(op: ir.Operation) -> float:
    shape = op.operands[0].type.shape
    return _size(op.operands[0]) * (shape[-1] if shape else 1) * COSTLY_NS


_SPECIAL: dict[str, Callable[[ir.Operation], float]] = {
    "stablehlo.reshape": lambda op: 0.0,
    "stablehlo.dynamic_slice": _of_result(_CHEAP),
    "stablehlo.slice": _of_result(_CHEAP),
    "stablehlo.gather": _of_result(_RANDOM),
    "stablehlo.dynamic_update_slice": lambda op: _size(op.operands[1]) * _CHEAP,
    "stablehlo.scatter": lambda op: _size(op.operands[-1]) * _RANDOM,
    "stablehlo.dot_general": _dot,
    "stablehlo.convolution": _convolution,
    "stablehlo.sort": _sort,
    "chlo.top_k": lambda op: _size(op.operands[0]) * COSTLY_NS,
    "stablehlo.cholesky": _cubic,
    "stablehlo.triangular_solve": _cubic,
}
