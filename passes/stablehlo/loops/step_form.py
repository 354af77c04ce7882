"""How one kernel on a GPU does a loop or branch: what `stablehlo-outline-control{gpu}` decides by.

A step of a few scalars is one thread's, which keeps them in registers: nothing is faster where the
next operation waits for the last one. A step on more is one block's, with barriers in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Literal

from lamina.dialects.attributes import LANES
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import (
    CONSTANT,
    CONTROL,
    COSTLY,
    TERMINATORS,
    is_pure,
    size_of,
)
from lamina.passes.stablehlo.analysis.scan_order import Scan
from lamina.passes.stablehlo.loops.step_cost import Refusal

_MOST_ELEMENTS = 32  # code: of an array of one thread
_MOST_OF_AN_OP = 128  # code: instructions
_MOST_OF_A_STEP = 1024  # code
_FEW, _MOST_OF_FEW = 4, 64  # code
_INSTRUCTIONS = 8  # of a transcendental function, and more
_SERIAL = frozenset(
    "stablehlo.scatter stablehlo.select_and_scatter stablehlo.sort chlo.top_k stablehlo.cholesky "
    "stablehlo.triangular_solve".split()
)
"""Ops that a block does by kernels which look at no loops (`gpu-write-kernels`)."""
_NOT_IN_LANES = frozenset(("stablehlo.custom_call", "stablehlo.fft", "stablehlo.composite"))


def form_of(op: ir.Operation) -> Literal["thread", "block"]:
    """How a `while`, `if` or `case` is done. Raises Refusal where neither does it."""
    if any(LANES in inner.attributes for inner in _control_in(op)):
        raise Refusal("lanes of a batch: a kernel of their own")
    if _is_a_threads([op]):
        return "thread"
    for inner in _computing([op]):
        if inner.name in _SERIAL:
            raise Refusal(f"{inner.name.split('.', 1)[1]}: a kernel of its own")
    return "block"


def is_few(kernel: ir.Operation) -> bool:
    """Whether a kernel in a block's step is a few instructions that one thread had better do."""
    inner = list(_computing([view.operation for view in kernel.regions[0].blocks[0].operations]))
    sizes = [size_of(v.type) for op in inner for v in op.results]
    return max(sizes, default=0) <= _FEW and sum(map(_work, inner)) <= _MOST_OF_FEW


def is_a_lanes(function: ir.Operation, functions: dict[str, ir.Operation]) -> bool:
    """Whether a thread should do what a function does, and those it calls."""
    operations = [view.operation for view in function.regions[0].blocks[0].operations]
    inner = list(_computing(operations))
    if any(op.name in _NOT_IN_LANES or Scan.of(op) is not None for op in inner):
        return False
    called = {op.attributes["callee"].value for op in inner if op.name == "func.call"}
    own = [op for op in inner if op.name != "func.call"]
    return (
        all(is_pure(op) for op in own)
        and _is_a_threads(operations)
        and all(is_a_lanes(functions[name], functions) for name in called)
    )


def _control_in(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for view in region.blocks[0].operations if region.blocks else ():
            if view.operation.name in CONTROL:
                yield view.operation
                yield from _control_in(view.operation)


def _is_a_threads(operations: list[ir.Operation]) -> bool:
    inner = list(_computing(operations))
    works = [_work(op) for op in inner]
    if any(_made(op) > _MOST_ELEMENTS for op in inner):
        return False
    return max(works, default=0) <= _MOST_OF_AN_OP and sum(works) <= _MOST_OF_A_STEP


def _computing(operations: list[ir.Operation]) -> Iterator[ir.Operation]:
    """The ops on values in these and in their regions of control flow."""
    for op in operations:
        if op.name in CONTROL:
            for region in op.regions:
                yield from _computing([v.operation for v in region.blocks[0].operations])
        elif op.name not in TERMINATORS and op.name != CONSTANT:
            yield op


def _made(op: ir.Operation) -> int:
    """Elements that an op makes."""
    if op.name == "stablehlo.dynamic_update_slice":
        return size_of(op.operands[1].type)
    sizes = [size_of(v.type) for v in op.results if isinstance(v.type, ir.RankedTensorType)]
    return max(sizes, default=0)


def _work(op: ir.Operation) -> int:
    """How many instructions a thread takes, at least."""
    made = _made(op)
    if op.name in ("stablehlo.dot_general", "stablehlo.convolution"):
        read = prod(size_of(v.type) for v in op.operands)
        return max(made, round((read * made) ** 0.5))
    if op.name in ("stablehlo.reduce", "stablehlo.scatter", "stablehlo.sort", *_SERIAL):
        made = max(made, *(size_of(v.type) for v in op.operands))
    return made * (_INSTRUCTIONS if op.name in COSTLY else 1)
